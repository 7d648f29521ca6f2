"""A client that brings its run to the end, however often the router dies meanwhile.

It repeats what was not answered, word for word and under the same key, and never does twice what
it did once. All the while it holds the router to what it acknowledged.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any
from uuid import UUID

import trio

from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.core.messages import (
    ApprovalDecision,
    ApprovalDecisions,
    ApprovalDecisionsData,
    Break,
    Continuation,
    Decision,
    Inject,
    ToolResultEntry,
    ToolResults,
    ToolResultsData,
)
from smista.core.request import ExecuteRequest
from smista.sdk.answers import SessionDetail
from smista.sdk.client import Client, EventStream
from smista.sdk.errors import ApiError, Unreachable
from tests.e2e.fate import Fate, Moment

Said = list[tuple[str, str]]
Words = ExecuteRequest | Continuation


def said_in(kept: SessionDetail) -> Said:
    return [(message.role, message.content["plaintext"]) for message in kept.messages]


def outcome_of(ending: TurnEnd) -> str:
    """Return the status of a turn's end, for an error its code."""
    is_error = ending.status is Status.ERROR
    return ending.data["error"]["code"] if is_error else ending.status.value


def open_turn(
    client: Client, session_id: str, words: Words, key: str
) -> AbstractAsyncContextManager[EventStream]:
    """Send *words* and lend what is said in answer."""
    if isinstance(words, ExecuteRequest):
        return client.stream_execute(session_id, words, key=key)
    return client.stream_continue(session_id, words, key=key)


class Stubborn:
    """Speaks for one session. *executed* counts what its tools did, *by_call* by whose order.

    *spoken* counts the messages that the router has to recognise. *restated*: new input came to
    a run that was over when it arrived, and was sent as a task of its own.
    """

    def __init__(self, client: Client, session_id: str, fate: Fate, random: Random) -> None:
        self.client = client
        self.session_id = session_id
        self.fate = fate
        self.executed: Counter[str] = Counter()
        self.by_call: Counter[str] = Counter()
        self.spoken = 0
        self.restated = False
        self._random = random
        self._sure: Said = []
        self._pause: dict[str, Any] | None = None

    # --- what it says ------------------------------------------------------------------------

    async def say(self, words: Words) -> TurnEnd:
        """Send *words* until they are answered; return the outcome."""
        key = self._new_key(words)
        while True:
            self.fate.meet(Moment.BETWEEN)
            life = self.fate.life
            try:
                ending = await self._hear(words, key)
                break
            except Unreachable:
                taken = await self._return(life)
            if taken is not None:
                # It was committed, but the answer was lost: the pause says all that it said.
                if self._random.random() < 0.5:
                    ending = taken
                    break
                assert await self._hear_again(words, key) == taken.envelope()
        await self._believe(ending)
        return ending

    async def use_tools(self, asked: TurnEnd, decision: Decision = "approved") -> TurnEnd:
        """Do what *asked* wants done, and say what became of it."""
        self.fate.meet(Moment.PAUSED)
        assert asked.status is Status.AWAITING_TOOL, asked
        results = tuple(self._result(each, decision) for each in asked.data["tool_requests"])
        return await self.say(ToolResults(data=ToolResultsData(results=results)))

    def _result(self, request: dict[str, Any], decision: Decision) -> ToolResultEntry:
        name, call_id, ask = request["name"], request["call_id"], request["requires_approval"]
        if decision == "rejected":
            return ToolResultEntry(call_id=call_id, content="", decision=decision)
        self.executed[name] += 1
        self.by_call[call_id] += 1
        word = decision if ask == "ask" else None
        return ToolResultEntry(call_id=call_id, content=f"{name} is done", decision=word)

    async def decide(
        self,
        asked: TurnEnd,
        kind: str,
        decision: Decision = "approved",
        reason: str | None = None,
    ) -> TurnEnd:
        """Answer a question of the given *kind*."""
        self.fate.meet(Moment.PAUSED)
        assert asked.status is Status.AWAITING_APPROVAL, asked
        approval = asked.data["approval"]
        assert approval["kind"] == kind
        word = ApprovalDecision(
            approval_id=approval["approval_id"], decision=decision, reason=reason
        )
        return await self.say(ApprovalDecisions(data=ApprovalDecisionsData(decisions=(word,))))

    async def interrupt(self, task: ExecuteRequest, by: Inject | Break) -> tuple[str, str]:
        """Send *task* and, as soon as it speaks, *by* beside it; return both outcomes in words."""
        keys = self._new_key(task), self._new_key(by)
        known: list[str | None] = [None, None]
        while None in known:
            self.fate.meet(Moment.BETWEEN)
            life, begun = self.fate.life, trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._outcome, task, keys[0], known, 0, begun)
                await begun.wait()
                await self._outcome(by, keys[1], known, 1)
            if None in known:
                await self._return(life)
                # Without its task, a refusal says nothing yet: it came to a new router first.
                known[1] = None if known[0] is None else known[1]
        first, second = known
        assert first is not None
        assert second is not None
        return first, second

    async def restate(self, task: ExecuteRequest) -> TurnEnd:
        """Send the words of a refused inject as a task."""
        self.restated = True
        self.spoken -= 1  # what was refused is not remembered
        return await self.say(task)

    # --- how it listens ----------------------------------------------------------------------

    def _new_key(self, words: Words) -> str:
        self.spoken += not isinstance(words, Break)
        return str(UUID(int=self._random.getrandbits(128)))

    async def _hear(self, words: Words, key: str, begun: trio.Event | None = None) -> TurnEnd:
        last = None
        async with open_turn(self.client, self.session_id, words, key) as events:
            async for last in events:
                if begun is not None and isinstance(last, TextDeltaEvent):
                    begun.set()
                self.fate.meet(Moment.HEARD)
        assert isinstance(last, TurnEnd)
        return last

    async def _hear_again(self, words: Words, key: str) -> dict[str, Any]:
        """Return what the router answers to *words* that it has served."""
        while True:
            life = self.fate.life
            try:
                return (await self._hear(words, key)).envelope()
            except Unreachable:
                assert await self._return(life) is not None

    async def _outcome(
        self,
        words: Words,
        key: str,
        known: list[str | None],
        place: int,
        begun: trio.Event | None = None,
    ) -> None:
        """Note what becomes of *words*, if they are answered. What was told stays true."""
        try:
            ending = await self._hear(words, key, begun)
            outcome = outcome_of(ending)
        except ApiError as error:
            outcome = error.code
        except Unreachable:
            return
        finally:
            if begun is not None:
                begun.set()
        assert known[place] in (None, outcome)
        known[place] = outcome

    # --- what it holds the router to -----------------------------------------------------------

    async def fetch(self) -> SessionDetail:
        while True:
            life = self.fate.life
            try:
                return await self.client.session(self.session_id)
            except Unreachable:
                self.fate.revive(life)

    async def _return(self, life: int) -> TurnEnd | None:
        """Have the router back; return the pause that it got into without our knowing."""
        self.fate.revive(life)
        kept = await self.fetch()
        assert said_in(kept)[: len(self._sure)] == self._sure
        pause = kept.metadata.get("run")
        if pause is None or pause == self._pause:
            return None
        return TurnEnd(
            Status(pause["status"]), pause["data"], tuple(pause["allowed_continuations"])
        )

    async def _believe(self, ending: TurnEnd) -> None:
        """Take *ending* for a fact: from now on all that it says has to be there."""
        self._pause = ending.envelope() if ending.allowed_continuations else None
        kept = await self.fetch()
        said = said_in(kept)
        assert kept.metadata.get("run") == self._pause
        assert said[: len(self._sure)] == self._sure
        if ending.status is Status.COMPLETED:
            assert said[-1] == ("assistant", ending.data["message"]["content"])
        self._sure = said


def inject(*texts: str) -> Inject:
    return Inject.model_validate({"data": {"messages": [{"text": text} for text in texts]}})


def roles(said: Sequence[tuple[str, str]], role: str) -> int:
    return sum(each == role for each, _ in said)
