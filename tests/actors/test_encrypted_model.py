"""Any order of messages, faults, crashes and restarts of an encrypted session.

The client seals when it likes. Nothing readable ever reaches the store; what was acknowledged as
sealed stays; what a live router knows is what the store holds and what waits to be sealed.
"""

import os
from contextlib import asynccontextmanager
from dataclasses import replace

import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from smista.core.errors import ProviderRejected, ProviderUnavailable, SmistaError
from smista.core.events import Status, TurnEnd
from smista.core.messages import (
    Break,
    Decrypted,
    DecryptedData,
    Execute,
    Inject,
    InjectData,
    InjectMessage,
    SealedData,
    SealedRows,
    ToolResultEntry,
    ToolResults,
    ToolResultsData,
)
from smista.core.opening import lost, reference
from smista.core.secret import Envelope
from smista.core.stream import TextDelta, Usage
from smista.sdk.sealing import Sealer, new_key
from tests.actors.house import USER, request
from tests.actors.portal import Portal
from tests.actors.sealed import PLANTED, Watched
from tests.actors.test_model import KINDS, House
from tests.fakes import ScriptedProvider, Stall, called, said

POLICY = {
    **request().policy.model_dump(mode="json"),
    "tools": {"permissions": {"file_write": "ask", "shell": "deny"}},
}
EDIT = f'{{"path": "{PLANTED}.txt", "old": "{PLANTED}", "new": "b"}}'
MESSAGES = ("message:", "tool_call:")


class WatchedHouse(House):
    def __init__(self, provider: ScriptedProvider) -> None:
        super().__init__(provider)
        self.journal = Watched()
        self.parts = replace(self.parts, journal=self.journal)


class SealedRuns(RuleBasedStateMachine):
    """*heard* is the last ending that lists or asks; *kept* all rows acknowledged as sealed."""

    def __init__(self) -> None:
        super().__init__()
        self.provider = ScriptedProvider()
        self.portal = Portal(self._open)
        self.house = self.portal.house
        self.heard: TurnEnd | None = None
        self.standing = None  # reader and envelopes of the turn that stands still
        self.kept: dict[str, str] = {}
        self.texts = 0
        self.last = None

    @asynccontextmanager
    async def _open(self):
        house = WatchedHouse(self.provider)
        async with trio.open_nursery() as nursery:
            house.nursery = nursery
            await nursery.start(house.run)
            yield house
            nursery.cancel_scope.cancel()

    @initialize()
    def begin(self) -> None:
        async def create():
            return await self.house.directory.create(USER, title="t", scope=None, key_id=key.key_id)

        key = new_key()
        self.session = self.portal.call(create)
        self.sealer = Sealer(key, self.session.id)

    def teardown(self) -> None:
        self.portal.close()

    # --- words -------------------------------------------------------------------------------

    def text(self) -> str:
        self.texts += 1
        return f"{PLANTED} {self.texts} é"

    def prepare(self, kind: str) -> None:
        first, second = self.text(), self.text()
        usage = Usage(input_tokens=1, output_tokens=1)
        scripts = {
            "say": [said(first)],
            "tool": [called("edit_file", EDIT, text=first)],
            "two": [
                [*called("edit_file", EDIT, text=first)[:-2], *called("edit_file", EDIT, index=1)]
            ],
            "deny": [called("shell", f'{{"command": "{PLANTED}"}}', text=first), said(second)],
            "stall": [[TextDelta(text=first), usage, Stall()]],
            "silent": [[Stall()]],
            "fail": [[ProviderRejected(PLANTED)]],
            "late": [[TextDelta(text=first), ProviderUnavailable(PLANTED)]],
        }
        self.provider.scripts.clear()
        self.provider.scripts.extend(scripts[kind])

    def tell(self, message, envelopes=None, key=None):
        """Tell *message* and hear its ending, opening what it asks for; None: refused or stands."""
        reader = self.portal.call(self.house.tell, self.session.id, message, key)
        if isinstance(reader, SmistaError):
            return reader
        ending = self.ending(reader)
        if ending is None:
            self.standing = (reader, envelopes, message)
            return None
        return self.take(ending, envelopes)

    def ending(self, reader) -> TurnEnd | None:
        self.house.collect()
        heard = next(heard for known, heard in self.house.readers if known is reader)
        return heard[-1] if heard and isinstance(heard[-1], TurnEnd) else None

    def take(self, ending: TurnEnd, envelopes) -> TurnEnd | None:
        if envelopes and not self.was_dropped(ending):
            self.kept |= {k: v for k, v in envelopes.items() if k.startswith(MESSAGES)}
        self.heard = ending
        if ending.status is not Status.AWAITING_DECRYPT:
            return ending
        opened = {
            name: self.sealer.open_one(name, Envelope.model_validate(each))
            for name, each in ending.data["to_decrypt"].items()
        }
        texts, envelopes = self.sealed(ending)
        data = DecryptedData(plaintext=opened, encrypted=envelopes)
        return self.tell(Decrypted(data=data), texts)

    @staticmethod
    def was_dropped(ending: TurnEnd) -> bool:
        """A router that is shutting down wrote nothing of the message."""
        code = ending.data.get("error", {}).get("code")
        return code in ("shutting_down", "storage_error", "router_busy")

    def sealed(self, ending: TurnEnd, more=()):
        texts = {**ending.data.get("to_encrypt", {}), **dict(more)}
        return texts, {name: self.sealer.seal_one(name, text) for name, text in texts.items()}

    @property
    def serving(self) -> bool:
        return self.standing is not None

    # --- what can happen ---------------------------------------------------------------------

    @rule(kind=KINDS)
    def execute(self, kind) -> None:
        self.prepare(kind)
        message = Execute(request=request(self.text(), policy=POLICY))
        answer = self.tell(message)
        assert not isinstance(answer, SmistaError) or answer.code == "run_in_flight"

    @precondition(lambda self: not self.serving and self.waits_for("tool_results"))
    @rule(kind=KINDS)
    def answer(self, kind) -> None:
        self.prepare(kind)
        content = self.text()
        entries = tuple(
            ToolResultEntry(call_id=each["call_id"], content=content, decision="approved")
            for each in self.heard.data["tool_requests"]
        )
        own = [(f"tool_call:{each.call_id}", content) for each in entries]
        texts, envelopes = self.sealed(self.heard, own)
        message = ToolResults(data=ToolResultsData(results=entries, encrypted=envelopes))
        answer = self.tell(message, texts)
        assert not isinstance(answer, SmistaError), answer
        self.last = (message, texts)

    @precondition(lambda self: not self.serving and self.waits_for("sealed"))
    @rule()
    def seal(self) -> None:
        texts, envelopes = self.sealed(self.heard)
        answer = self.tell(SealedRows(data=SealedData(encrypted=envelopes)), texts)
        assert answer.status in (Status.IDLE, Status.AWAITING_ENCRYPT)

    @precondition(lambda self: not self.serving and self.last is not None)
    @rule(kind=st.sampled_from(["say", "tool", "deny"]))
    def answer_again(self, kind) -> None:
        self.prepare(kind)
        message, texts = self.last
        answer = self.tell(message)
        if isinstance(answer, TurnEnd) and not self.was_dropped(answer):
            self.kept |= {k: v for k, v in texts.items() if k.startswith(MESSAGES)}

    def waits_for(self, word: str) -> bool:
        return self.heard is not None and word in self.heard.allowed_continuations

    @rule()
    def stop(self) -> None:
        standing, self.standing = self.standing, None
        answer = self.tell(Break())
        if standing is not None:
            self.heard_meanwhile(standing)
        assert answer.status in (Status.IDLE, Status.AWAITING_ENCRYPT)

    def heard_meanwhile(self, standing) -> None:
        """The turn that stood still has ended: with its commit its envelopes were taken."""
        reader, envelopes, _ = standing
        ending = self.ending(reader)
        assert ending is not None
        if envelopes and not self.was_dropped(ending):
            self.kept |= {k: v for k, v in envelopes.items() if k.startswith(MESSAGES)}

    @rule(kind=KINDS)
    def inject(self, kind) -> None:
        self.prepare(kind)
        standing, self.standing = self.standing, None
        if standing is not None:
            self.heard = None  # that turn's pause is gone, whatever becomes of the input
        words = InjectMessage(text=self.text())
        answer = self.tell(Inject(data=InjectData(messages=(words,))))
        if standing is not None:
            self.heard_meanwhile(standing)
        assert not isinstance(answer, SmistaError) or answer.code == "invalid_request"

    @precondition(lambda self: self.serving)
    @rule()
    def everybody_leaves(self) -> None:
        async def leave():
            for reader, _ in self.house.readers:
                reader.close()

        self.portal.call(leave)
        self.house.readers.clear()
        self.abandoned()
        self.portal.jump(10.5)

    def abandoned(self) -> None:
        """A turn that was cut off leaves its pause as it was; a task or new input leaves none."""
        if self.standing is not None and isinstance(self.standing[2], Execute | Inject):
            self.heard = None
        self.standing = None

    @rule(seconds=st.sampled_from([61, 1801]))
    def time_passes(self, seconds) -> None:
        self.house.collect()
        self.portal.jump(seconds)

    @rule(drain=st.booleans())
    def restart(self, drain) -> None:
        async def step():
            await self.house.restart(drain=drain)

        self.portal.call(step)
        if drain:
            self.abandoned()
        self.standing = None

    # --- what must hold ----------------------------------------------------------------------

    @invariant(check_during_init=False)
    def storage_holds_what_was_acknowledged_and_nothing_else(self) -> None:
        async def read():
            state = await self.house.journal.load(self.session, messages=None)
            trace = await self.house.journal.trace(self.session.id, limit=10_000)
            actor = self.house.directory._awake.get(self.session.id)
            return state, trace, actor.state if actor else state

        state, trace, live = self.portal.call(read)
        sealed = {reference(m): m.sealed for m in state.messages}
        stored = {name: self.sealer.open_one(name, each) for name, each in sealed.items()}
        assert len(stored) == len(state.messages)
        for name, text in self.kept.items():
            assert name not in stored or stored[name] == text
            assert name.startswith("tool_call:") or name in stored
        assert stored.keys() <= self.kept.keys()
        for each in trace:
            self.sealer.open_one(f"trace:{each.id}", each.payload)
        if not self.serving and live is not state and not lost(live):
            known = [reference(m) for m in live.messages]
            assert [name for name in known if name in stored] == list(stored)
            assert set(known) - stored.keys() <= live.texts.keys()

    @invariant()
    def the_lock_is_held_only_while_a_turn_is_served(self) -> None:
        assert self.house.directory.busy == self.serving


TestSealedRuns = SealedRuns.TestCase
TestSealedRuns.settings = settings(
    max_examples=150 if os.environ.get("CI") else 30,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
