"""Any order of messages, faults, crashes and restarts, against a plain model of the protocol.

The model below is the protocol's tables in a few lines. After each step the session must hold
exactly what the model says: no message lost or doubled, no call orphaned, nothing billed twice, no
lock left behind, and every reader has heard exactly one ending, last.
"""

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from actors.directory import open_directory
from actors.parts import Durations, Parts
from smista.core.errors import ProviderRejected, ProviderUnavailable, SmistaError
from smista.core.events import Status, TurnEnd
from smista.core.messages import (
    Break,
    Execute,
    Inject,
    InjectData,
    InjectMessage,
    ToolResults,
    ToolResultsData,
)
from smista.core.phase import AwaitingTool
from smista.core.stream import TextDelta, Usage
from smista.ports.sessions import Call
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, request, result
from tests.actors.portal import Portal
from tests.fakes import (
    FakeProviders,
    ScriptedProvider,
    Stall,
    TickingClock,
    called,
    descriptor,
    said,
)

POLICY = {
    **request().policy.model_dump(mode="json"),
    "tools": {"permissions": {"file_write": "ask", "shell": "deny"}},
}
EDIT = '{"path": "a.txt", "old": "a", "new": "b"}'
KINDS = st.sampled_from(["say", "tool", "deny", "stall", "silent", "fail", "late", "two"])


@dataclass
class Said:
    """One message as the model of the protocol expects it."""

    role: str
    text: str
    interrupted: bool = False
    calls: int = 0


@dataclass
class Expected:
    """What storage must hold. *pending*: how many calls wait; *serving*: a turn stands still."""

    messages: list[Said] = field(default_factory=list)
    pending: int = 0
    bills: int = 0
    failed: int = 0
    completed: int = 0


class House:
    """The directory over one journal, able to die and come back."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.journal = MemoryJournal()
        self.parts = Parts(
            journal=self.journal,
            providers=FakeProviders(
                provider, models=[descriptor("openai-compat:a", "m", local=True)]
            ),
            slots=trio.CapacityLimiter(8),
            clock=TickingClock(),
            durations=Durations(orphan_grace=10, idle=60, backoff=0),
        )
        self.readers = []

    async def run(self, *, task_status=trio.TASK_STATUS_IGNORED) -> None:
        with trio.CancelScope() as self.life:
            async with open_directory(self.parts) as self.directory:
                task_status.started()
                await trio.sleep_forever()

    async def tell(self, session_id, message, key=None):
        call = Call(user_id=USER, session_id=session_id, message=message, idempotency_key=key)
        try:
            reader = await self.directory.tell(call)
        except SmistaError as error:
            return error
        self.readers.append((reader, []))
        return reader

    async def restart(self, *, drain: bool) -> None:
        if drain:
            await self.directory.drain(grace=0, settle=5)
            await trio.testing.wait_all_tasks_blocked()
            self.collect()
        self.life.cancel()
        await trio.testing.wait_all_tasks_blocked()
        self.readers.clear()
        await self.nursery.start(self.run)

    def collect(self) -> None:
        for reader, heard in self.readers:
            heard += reader.ready()


class Runs(RuleBasedStateMachine):
    """Drives the house and the expectation side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.provider = ScriptedProvider()
        self.portal = Portal(self._open)
        self.house = self.portal.house
        self.want = Expected()
        self.base: Expected | None = None  # what a crash falls back to, while a turn stands still
        self.partial = ""
        self.texts = 0
        self.last = None  # the last continuation that was served to its end, and its ending
        self.served = None  # the message of the turn that stands still
        self.stall = None

    @asynccontextmanager
    async def _open(self):
        house = House(self.provider)
        async with trio.open_nursery() as nursery:
            house.nursery = nursery
            await nursery.start(house.run)
            yield house
            nursery.cancel_scope.cancel()

    @initialize()
    def begin(self) -> None:
        async def create():
            session = await self.house.directory.create(USER, title="t", scope=None, key_id=None)
            return session.id

        self.session_id = self.portal.call(create)

    def teardown(self) -> None:
        self.portal.close()

    # --- scripts and what they lead to -------------------------------------------------------

    def text(self) -> str:
        self.texts += 1
        return f"text {self.texts}"

    def prepare(self, kind: str) -> list[str]:
        """Queue the model's answers of *kind*; return the texts in them."""
        first, second = self.text(), self.text()
        self.provider.scripts.clear()
        usage = Usage(input_tokens=1, output_tokens=1)
        scripts = {
            "say": [said(first)],
            "tool": [called("edit_file", EDIT, text=first)],
            "two": [
                [*called("edit_file", EDIT, text=first)[:-2], *called("edit_file", EDIT, index=1)]
            ],
            "deny": [called("shell", '{"command": "ls"}', text=first), said(second)],
            "stall": [[TextDelta(text=first), usage, Stall()]],
            "silent": [[Stall()]],
            "fail": [[ProviderRejected("no")]],
            "late": [[TextDelta(text=first), ProviderUnavailable("gone")]],
        }
        self.provider.scripts.extend(scripts[kind])
        self.kind = kind
        return [first, second]

    def lead(self, texts: list[str]) -> Status:
        """Say what the prepared answers lead to, from the present expectation."""
        want, first = self.want, texts[0]
        match self.kind:
            case "say":
                want.messages.append(Said("assistant", first))
                want.bills += 1
                return Status.COMPLETED
            case "tool" | "two":
                count = 2 if self.kind == "two" else 1
                want.messages.append(Said("assistant", first, calls=count))
                want.pending, want.bills = count, want.bills + 1
                return Status.AWAITING_TOOL
            case "deny":
                want.messages += [
                    Said("assistant", first, calls=1),
                    Said("tool", "*"),
                    Said("assistant", texts[1]),
                ]
                want.bills += 2
                want.failed += 1
                return Status.COMPLETED
            case "late":
                want.messages.append(Said("assistant", first, interrupted=True))
                return Status.ERROR
            case "fail":
                return Status.ERROR
        raise AssertionError(self.kind)

    def serve(self, message, texts: list[str], before: Expected, reader) -> None:
        """Take what a message that was accepted must have led to."""
        if self.kind in ("stall", "silent"):
            self.base, self.served = before, message
            self.partial = texts[0] if self.kind == "stall" else ""
            return
        status = self.lead(texts)
        ending = self.ending(reader)
        assert ending.status is status
        if isinstance(message, ToolResults):
            self.last = (message, ending)

    def ending(self, reader) -> TurnEnd:
        self.house.collect()
        heard = next(heard for known, heard in self.house.readers if known is reader)
        assert isinstance(heard[-1], TurnEnd)
        assert sum(isinstance(e, TurnEnd) for e in heard) == 1
        return heard[-1]

    def snapshot(self) -> Expected:
        want = self.want
        messages = [Said(m.role, m.text, m.interrupted, m.calls) for m in want.messages]
        return Expected(messages, want.pending, want.bills, want.failed, want.completed)

    def fail_pending(self, want: Expected) -> None:
        self.answer_pending(want, "*", failed=True)

    def answer_pending(self, want: Expected, text: str, *, failed: bool = False) -> None:
        if not want.pending:
            return
        place = max(n for n, m in enumerate(want.messages) if m.calls) + 1
        want.messages[place:place] = [Said("tool", text)] * want.pending
        if failed:
            want.failed += want.pending
        else:
            want.completed += want.pending
        want.pending = 0

    def interrupt(self) -> None:
        """The turn that stands still was cancelled by the user: keep what it had said."""
        if self.partial:
            self.want.messages.append(Said("assistant", self.partial, interrupted=True))
            self.want.bills += 1
        self.base = self.served = None

    def interrupt_at_checkpoint(self) -> None:
        """It was cancelled by the house: a continued run falls back to its pause."""
        if isinstance(self.served, ToolResults):
            self.want = self.base
        self.interrupt()

    @property
    def serving(self) -> bool:
        return self.base is not None

    # --- what can happen ---------------------------------------------------------------------

    @rule(kind=KINDS)
    def execute(self, kind) -> None:
        texts = self.prepare(kind)
        prompt = self.text()
        message = Execute(request=request(prompt, policy=POLICY))
        answer = self.portal.call(self.house.tell, self.session_id, message)
        if self.serving:
            assert answer.code == "run_in_flight"
            return
        before = self.snapshot()
        self.fail_pending(self.want)
        self.want.messages.append(Said("user", prompt))
        self.serve(message, texts, before, answer)

    def results(self, text: str) -> ToolResults:
        async def pending():
            session = await self.house.journal.session(USER, self.session_id)
            state = await self.house.journal.load(session)
            phase = state.run.phase
            return [c.call_id for c in phase.calls] if isinstance(phase, AwaitingTool) else ["x"]

        calls = self.portal.call(pending)
        entries = tuple(result(call, text, decision="approved") for call in calls)
        return ToolResults(data=ToolResultsData(results=entries))

    @rule(kind=KINDS)
    def answer(self, kind) -> None:
        texts = self.prepare(kind)
        done = self.text()
        message = self.results(done)
        answer = self.portal.call(self.house.tell, self.session_id, message)
        if self.serving:
            assert answer.code == "run_in_flight"
            return
        if not self.want.pending:
            assert answer.code == "invalid_request"
            return
        before = self.snapshot()
        self.answer_pending(self.want, done)
        self.serve(message, texts, before, answer)

    @precondition(lambda self: self.want.pending and not self.serving)
    @rule()
    def answer_wrongly(self) -> None:
        message = ToolResults(data=ToolResultsData(results=(result("nobody"),)))
        assert self.portal.call(self.house.tell, self.session_id, message).code == "invalid_request"

    @precondition(lambda self: self.last is not None and not self.serving)
    @rule()
    def answer_again(self) -> None:
        message, ending = self.last
        reader = self.portal.call(self.house.tell, self.session_id, message)
        assert self.ending(reader).status is ending.status

    @precondition(lambda self: isinstance(self.served, ToolResults))
    @rule()
    def answer_again_while_it_is_served(self) -> None:
        reader = self.portal.call(self.house.tell, self.session_id, self.served)
        assert not isinstance(reader, SmistaError)

    @rule()
    def stop(self) -> None:
        reader = self.portal.call(self.house.tell, self.session_id, Break())
        if self.serving:
            self.interrupt()
        self.fail_pending(self.want)
        assert self.ending(reader).status is Status.IDLE

    @rule(kind=KINDS)
    def inject(self, kind) -> None:
        texts = self.prepare(kind)
        prompt = self.text()
        message = Inject(data=InjectData(messages=(InjectMessage(text=prompt),)))
        answer = self.portal.call(self.house.tell, self.session_id, message)
        if not self.serving and not self.want.pending:
            assert answer.code == "invalid_request"
            return
        if self.serving:
            self.interrupt()
        before = self.snapshot()
        self.fail_pending(self.want)
        self.want.messages.append(Said("user", prompt))
        self.serve(message, texts, before, answer)

    @precondition(lambda self: self.serving)
    @rule()
    def everybody_leaves(self) -> None:
        async def leave():
            for reader, _ in self.house.readers:
                reader.close()

        self.portal.call(leave)
        self.house.readers.clear()
        self.portal.jump(10.5)
        self.interrupt_at_checkpoint()

    @rule()
    def time_passes(self) -> None:
        self.house.collect()
        self.portal.jump(61)

    @rule(drain=st.booleans())
    def restart(self, drain) -> None:
        async def step():
            await self.house.restart(drain=drain)

        self.portal.call(step)
        if self.serving and drain:
            self.interrupt_at_checkpoint()
        elif self.serving:
            self.want, self.base, self.served = self.base, None, None

    # --- what must hold ----------------------------------------------------------------------

    @invariant(check_during_init=False)
    def storage_holds_what_the_model_says(self) -> None:
        async def read():
            session = await self.house.journal.session(USER, self.session_id)
            state = await self.house.journal.load(session, messages=None)
            self.house.collect()
            return state, await self.house.journal.usage(self.session_id)

        state, usage = self.portal.call(read)
        want = self.base if self.serving else self.want
        got = [(m.role.value, m.text, m.interrupted) for m in state.messages]
        expected = [(m.role, m.text, m.interrupted) for m in want.messages]
        assert len(got) == len(expected)
        for (role, text, cut), wanted in zip(got, expected, strict=True):
            assert (role, "*" if wanted[1] == "*" else text, cut) == wanted
        phase = state.run.phase
        assert (len(phase.calls) if isinstance(phase, AwaitingTool) else 0) == want.pending
        assert sum(each.requests for each in usage) == want.bills
        statuses = [call.status.value for call in state.calls.values()]
        assert statuses.count("pending") == want.pending
        assert statuses.count("failed") == want.failed
        assert statuses.count("completed") == want.completed

    @invariant()
    def the_lock_is_held_only_while_a_turn_is_served(self) -> None:
        assert self.house.directory.busy == self.serving

    @invariant()
    def every_reader_hears_one_ending_and_it_is_the_last(self) -> None:
        for _, heard in self.house.readers:
            endings = [n for n, event in enumerate(heard) if isinstance(event, TurnEnd)]
            assert len(endings) <= 1
            assert not endings or endings[0] == len(heard) - 1
            assert endings or self.serving


TestRuns = Runs.TestCase
TestRuns.settings = settings(
    max_examples=500 if os.environ.get("CI") else 50,  # 50 steps each: over 20,000 in CI
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
