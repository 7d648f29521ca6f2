"""One turn: take the message, decide, ask the model, mediate its tools, commit, then end.

A turn is a task of its session's actor. Whatever happens in it, `run` returns exactly one ending,
and the client is told of nothing that has not been committed before.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

import trio

from actors.answer import Answer
from actors.approvals import store_plan
from actors.asking import may_fall_back, may_retry, served_model, wait_before_retry
from actors.calls import mediate_call
from actors.deciding import decided_on, take_snapshot
from actors.draft import Draft
from actors.endings import (
    ToOpen,
    awaiting_approval,
    awaiting_opening,
    awaiting_tools,
    completed,
    idle,
    tool_requests,
)
from actors.envelope import Envelope
from actors.masking import stored_form
from actors.noting import note_decision, note_refusal, place
from actors.opening import Opening, take_message
from actors.own_calls import run_own_call
from actors.parts import Parts
from actors.slots import slot
from smista.core.answers import GONE
from smista.core.decision import Decision, Refusal
from smista.core.errors import (
    InvalidRequest,
    ProviderError,
    ProviderUnavailable,
    ServiceError,
    ShuttingDown,
    SmistaError,
    StorageError,
    StorageUnavailable,
    Superseded,
)
from smista.core.events import Status, ToolCallRequested, TurnEnd, UsageEvent, failed
from smista.core.gates import Gate, next_gate
from smista.core.history import Call
from smista.core.identity import Identity
from smista.core.lifecycle import Lock
from smista.core.mediation import announced
from smista.core.messages import Break, Execute, Inject
from smista.core.model_ref import ModelRef
from smista.core.opening import own_sealed, sealed_facts, unopened
from smista.core.outcomes import remember
from smista.core.phase import (
    AwaitingEncrypt,
    Idle,
    PendingCall,
    Phase,
)
from smista.core.prices import call_cost
from smista.core.records import AnsweredRecord, Before, EventType, SessionState
from smista.core.sealing import Told, clear_run
from smista.core.secret import Envelope as Sealing
from smista.core.session_views import lists, sealing_of, with_rows
from smista.core.snapshot import Attempt, Snapshot
from smista.core.stream import Usage
from smista.core.totals import Totals
from smista.core.views import failure_payload

Outcome = tuple[SessionState | None, TurnEnd]


class Spent(NamedTuple):
    """What one model call used, by which decision it was made, and which model served it."""

    decision: Decision
    usage: Usage
    cost: Decimal | None
    served: str | None


class Turn:
    """Serves *inputs* (one message, or several injects) on top of *state*.

    *why* tells, at any moment, what the session's lock says: after a cancel, the reason for it.
    """

    def __init__(
        self,
        inputs: tuple[Envelope, ...],
        state: SessionState,
        parts: Parts,
        *,
        why: Callable[[], Lock],
    ) -> None:
        self.scope = trio.CancelScope()
        self.stream = inputs[-1].stream
        self._inputs = inputs
        self._parts = parts
        self._why = why
        self._draft = Draft(state, parts.clock.now())
        self._opening = Opening()
        self._decision: Decision | None = None
        self._snapshot: Snapshot | None = None
        self._answer: Answer | None = None
        self._spent: list[Spent] = []
        self._lost: SmistaError | None = None
        self.left: SessionState | None = None  # what storage holds since the turn's commit
        self.answered: tuple[AnsweredRecord, ...] = ()

    @property
    def committed(self) -> bool:
        return self.left is not None

    @property
    def identity(self) -> Identity | None:
        """What the turn's message is recognised by when it is sent again."""
        return self._inputs[-1].identity

    @classmethod
    async def break_off(cls, state: SessionState, parts: Parts) -> SessionState:
        """End the pause that *state* is in, as a break does; return what storage then holds."""
        draft = Draft(state, parts.clock.now())
        draft.cancel_pending("cancelled: the session was archived")
        record = draft.record(Idle())
        if state.session.encrypted:
            record = draft.sealed_record(record, Told(listing=False))
        await parts.journal.record_turn(await stored_form(record, state.session, parts))
        return draft.state

    def say(self, ending: TurnEnd) -> None:
        """Put the turn's last event, unless it was said already."""
        if not self.stream.ended:
            self.stream.put(ending)

    def lose(self, error: SmistaError) -> None:
        """End the turn in *error* without writing it, unless it is written already."""
        if not self.committed:
            self._lost = error
            self.scope.cancel(reason="the session's lease was lost")

    def forget_fact(self, fact_id: str) -> None:
        """Take a fact back that the user deletes while the turn is served."""
        self._draft.forget_fact(fact_id)

    async def run(self) -> Outcome:
        """Serve the turn; return the state that storage then holds, and the turn's ending."""
        for earlier in self._inputs[:-1]:
            earlier.stream.put(failed(_superseded()))
        outcome: Outcome | None = None
        with self.scope:
            try:
                for envelope in self._inputs:
                    self._opening = take_message(self._draft, envelope.message, self._parts.clock)
                outcome = await self._drive()
            except SmistaError as error:
                outcome = await self._fail(error)
        if outcome is None:
            outcome = await self._settle()
        return outcome

    # --- the way through ---------------------------------------------------------------------

    async def _drive(self) -> Outcome:
        if self._opening.over:
            return await self._end_run()
        if isinstance(self._inputs[-1].message, Inject):
            return await self._think()  # the way out of a run never waits for a place
        async with slot(self._parts.slots, patience=self._parts.durations.slot_wait):
            return await self._think()

    async def _think(self) -> Outcome:
        """Ask models until one pauses the run or is done."""
        own = own_sealed(self._draft.state)
        if own:
            return await self._await_opening(own)
        if self._draft.state.input is None:
            raise InvalidRequest(GONE)
        await self._run_approved()
        while True:
            asked = await self._ask()
            if isinstance(asked, Gate):
                return await self._await_approval(asked)
            if isinstance(asked, ToOpen):
                return await self._await_opening(asked.rows)
            decision, answer = asked
            pending = self._keep(decision, answer)
            if pending:
                return await self._await_tools(pending)
            if not answer.calls and self._draft.input.plan_active:
                return await self._await_approval(store_plan(self._draft, decision, answer.text))
            if not answer.calls:
                return await self._complete(decision, answer)

    async def _run_approved(self) -> None:
        """Run the calls of the router's own tools that the user has just approved."""
        draft, parts = self._draft, self._parts
        if not draft.own_calls:
            return
        with trio.move_on_after(parts.durations.own_tool) as scope:
            user_id = draft.state.session.user_id
            draft.memory.user = await parts.memories.of(user_id, parts.journal)
        if scope.cancelled_caught:
            draft.cancel_own("the store did not answer in time")
        while draft.own_calls:
            run_own_call(draft, draft.own_calls.pop(0), local=False)

    async def _ask(self) -> tuple[Decision, Answer] | Gate | ToOpen:
        """Ask the routed model, then its fallbacks; each is decided, and gated, anew."""
        passed_over: tuple[Attempt, ...] = ()
        while True:
            decision = await self._decide(passed_over)
            if isinstance(decision, ToOpen):
                return decision
            state = self._draft.state
            gate = next_gate(decision, self._draft.input.request, state.run, state.disclosed)
            if gate is not None:
                return gate
            answer = self._begin_call(decision)
            try:
                await self._ask_model(decision, answer)
            except ProviderError as error:
                if not may_fall_back(error, answer):
                    raise
                tried = ModelRef(decision.routing.provider, decision.routing.model)
                failure = Attempt(model=tried, code=error.code, reason=error.message)
                passed_over = (*passed_over, failure)
            else:
                return decision, answer

    async def _decide(self, passed_over: tuple[Attempt, ...]) -> Decision | ToOpen:
        snapshot = await take_snapshot(
            self._draft,
            self._inputs[-1].credentials,
            self._opening.command,
            passed_over,
            self._parts,
            closed=self._opening.closed or bool(passed_over),
        )
        decided = await decided_on(snapshot, self._parts)
        self._snapshot = snapshot
        self._draft.now = self._parts.clock.now()
        match decided:
            case Refusal():
                note_refusal(self._draft, decided)
                raise decided.error
            case Decision():
                rows = self._chosen_sealed(decided)
                if rows:
                    place(self._draft, decided)
                    return ToOpen(rows)
                note_decision(self._draft, decided, again=bool(passed_over))
                return decided

    def _chosen_sealed(self, decision: Decision) -> dict[str, Sealing]:
        """Return what of the prompt is still sealed, and then all that is remembered with it."""
        facts = sealed_facts(self._draft.state)
        return {**unopened(decision.prompt.messages), **facts}

    def _begin_call(self, decision: Decision) -> Answer:
        limit = self._parts.limits.model_calls
        if self._draft.model_calls >= limit:
            raise InvalidRequest(f"the run made {limit} model calls; send a new task to go on")
        self._draft.begin_model_call()
        self._decision = decision
        self._answer = Answer(self.stream, announced(decision))
        self.stream.open()
        return self._answer

    async def _ask_model(self, decision: Decision, answer: Answer) -> None:
        """Ask one model, again if its fault may pass; what it used is noted in any case."""
        tries = 1
        while True:
            try:
                await self._listen(decision, answer)
            except ProviderError as error:
                failure = failure_payload(decision.routing, error, tries)
                self._draft.note(EventType.ROUTING_DECISION, failure)
                self._spend(decision, answer)
                if not may_retry(error, answer, tries=tries, parts=self._parts):
                    raise
                await wait_before_retry(error, tries=tries, parts=self._parts)
                tries += 1
                answer.forget()
            else:
                self._spend(decision, answer)
                return

    async def _listen(self, decision: Decision, answer: Answer) -> None:
        provider = self._parts.providers.provider(decision.routing.provider)
        if provider is None:
            raise ProviderUnavailable(f"{decision.routing.provider} left the registry")
        key = self._inputs[-1].credentials.get(decision.routing.provider)
        async with provider.open_stream(decision.prompt, key=key) as events:
            async for event in events:
                answer.hear(event, self._draft.new_id)
                if self.stream.full:
                    await self._wait_for_reader()

    async def _wait_for_reader(self) -> None:
        # A slow reader slows its own model, and nobody else; one that is stuck counts as gone.
        await self.stream.room(patience=self._parts.durations.reader_stall)

    # --- what it leaves ----------------------------------------------------------------------

    def _spend(self, decision: Decision, answer: Answer) -> None:
        """Note what the call used, once; the client hears of it too."""
        usage, answer.usage = answer.usage, None
        if usage is None:
            return
        served = None if answer.end is None else answer.end.model
        cost = call_cost(usage, served_model(decision, self._snapshot, served))
        spent = Spent(decision, usage, cost, served)
        self._spent.append(spent)
        self._draft.add_cost(*spent)
        self.stream.put(UsageEvent(Totals().plus(usage, spent.cost).view()))

    def _keep(self, decision: Decision, answer: Answer) -> tuple[PendingCall, ...]:
        """Keep what the model said, and decide on its calls; return those for the client."""
        draft = self._draft
        draft.now = self._parts.clock.now()
        calls = tuple(
            Call(
                call_id=answer.call_ids[ended.index],
                provider_call_id=ended.id or answer.call_ids[ended.index],
                name=ended.name,
                arguments=ended.arguments.strip() or "{}",
            )
            for ended in answer.calls
        )
        draft.add_assistant(answer.text, calls, decision)
        self._answer = None
        self._opening = replace(self._opening, command=None)  # it was for this answer
        mediated = [self._mediate(decision, call, cut=answer.cut) for call in calls]
        return tuple(pending for pending in mediated if pending is not None)

    def _mediate(self, decision: Decision, call: Call, *, cut: bool) -> PendingCall | None:
        if self._snapshot is None:
            raise TypeError("a call is mediated by the snapshot its model was chosen on")
        return mediate_call(self._draft, decision, self._snapshot, call, cut=cut)

    async def _await_tools(self, pending: tuple[PendingCall, ...]) -> Outcome:
        requests = tool_requests(self._draft.state, pending)
        outcome = await self._commit(*awaiting_tools(self._draft.state, pending, requests))
        for request in requests:
            self.stream.put(ToolCallRequested(request))
        return outcome

    async def _await_approval(self, gate: Gate) -> Outcome:
        approval_id = self._draft.new_id("session_approval")
        state, command = self._draft.state, self._opening.command
        return await self._commit(*awaiting_approval(state, approval_id, gate, command))

    async def _await_opening(self, rows: Mapping[str, Sealing]) -> Outcome:
        """Have the client open *rows*: without them nothing can be decided, or no prompt built."""
        self._draft.cancel_own("the run had to be opened first; ask again")
        state, command = self._draft.state, self._opening.command
        return await self._commit(*awaiting_opening(state, rows, command))

    async def _complete(self, decision: Decision, answer: Answer) -> Outcome:
        return await self._commit(*completed(self._draft.state, decision, answer))

    async def _end_run(self) -> Outcome:
        """End the run without a model; what an encrypted session has not sealed is asked for."""
        left = isinstance(self._inputs[-1].message, Break) and isinstance(
            self._draft.base.run.phase, AwaitingEncrypt
        )
        if not self._encrypted or left:
            return await self._commit(Idle(), idle(self._draft.state))
        return await self._commit(AwaitingEncrypt(()), sealing_of(self._draft.state))

    @property
    def _encrypted(self) -> bool:
        return self._draft.state.session.encrypted

    # --- the end -----------------------------------------------------------------------------

    async def _commit(
        self, phase: Phase, ending: TurnEnd, *, again: bool = False, unanswered: bool = False
    ) -> Outcome:
        """Make the turn durable; only then may *ending* be told.

        *unanswered*: its message did not get what it asked for, and is served anew if it comes
        again. *again* says so too, of a message that answered a pause.
        """
        self._draft.now = self._parts.clock.now()
        answered = () if again or unanswered else self._remembered(ending)
        record = self._draft.record(phase, again=again, answered=answered)
        if self._encrypted:
            before = self._draft.base.run.before if again else self._before(phase, ending)
            told = Told(listing=not again and lists(phase), before=before)
            record = self._draft.sealed_record(record, told)
            ending = with_rows(ending, self._draft.state)
        try:
            with trio.CancelScope(shield=True):  # a begun write ends, so its outcome is known
                session = self._draft.state.session
                record = await stored_form(record, session, self._parts)
                await self._parts.journal.record_turn(record)
        finally:
            if self._draft.memory.touch_user:
                self._parts.memories.changed(record.user_id)
        self.answered, self.left = answered, self._draft.state
        return self._draft.state, self._draft.memory.shown(ending)

    def _before(self, phase: Phase, ending: TurnEnd) -> Before | None:
        """Return from where this turn's message is served anew if its output is lost."""
        stopped = isinstance(self._inputs[-1].message, Break) or ending.status is Status.IDLE
        if isinstance(phase, Idle) or stopped:
            return None
        run = clear_run(replace(self._draft.base.run, before=None))
        return Before(run=run, at=self._draft.now)

    def _remembered(self, ending: TurnEnd) -> tuple[AnsweredRecord, ...]:
        """Return what is to be told when this turn's message, or one it replaced, comes again."""
        superseded = failed(_superseded())
        endings = [*(superseded for _ in self._inputs[:-1]), ending]
        return tuple(
            AnsweredRecord(
                route=envelope.identity.route,
                key=envelope.identity.key,
                digest=envelope.identity.digest,
                outcome=remember(told, self._draft.state),
                created_at=self._draft.now,
            )
            for envelope, told in zip(self._inputs, endings, strict=True)
            if envelope.identity is not None
        )

    async def _fail(self, error: SmistaError) -> Outcome:
        """End the run in *error*, keeping what was said; a busy router leaves it as it was."""
        if isinstance(error, StorageError):
            return None, failed(error)
        if isinstance(error, ServiceError):
            return self._draft.base, failed(error)
        self._keep_partial()
        try:
            return await self._commit(Idle(), failed(error))
        except StorageError as broken:
            return None, failed(broken)

    async def _settle(self) -> Outcome:
        """Commit a cancelled turn as the session's lock demands, and say how it ended."""
        if self._lost is not None:
            return None, failed(self._lost)
        lock = self._why()
        with trio.move_on_after(self._parts.durations.settle, shield=True):
            try:
                if lock is Lock.ABANDONED:
                    return await self._settle_at_checkpoint()
                self._keep_partial()
                if lock is Lock.SUPERSEDED:
                    return await self._commit(Idle(), failed(_superseded()))
                # The break that stopped it will tell what has to be sealed.
                rest = AwaitingEncrypt(()) if self._encrypted else Idle()
                return await self._commit(rest, idle(self._draft.state))
            except StorageError as broken:
                return None, failed(broken)
        return None, failed(StorageUnavailable("the turn's last write did not end in time"))

    async def _settle_at_checkpoint(self) -> Outcome:
        """Keep what was said and spent; the run stays where it was, to be continued."""
        ending = failed(ShuttingDown("the turn was interrupted; send the same message again"))
        base = self._draft.base
        if isinstance(self._inputs[-1].message, Execute | Inject | Break):
            self._keep_partial()
            return await self._commit(Idle(), ending, unanswered=True)
        if self._answer is not None and self._decision is not None:
            self._spend(self._decision, self._answer)
        partial, decision, spent = self._partial(), self._decision, self._spent
        self._draft = Draft(base, self._parts.clock.now())
        for each in spent:
            self._draft.add_routing(each.decision)
            self._draft.add_cost(*each)
        if decision is not None and partial:
            self._draft.add_routing(decision)
            self._draft.add_assistant(partial, (), decision, interrupted=True)
        return await self._commit(base.run.phase, ending, again=True)

    def _partial(self) -> str:
        return self._answer.text if self._answer is not None else ""

    def _keep_partial(self) -> None:
        """Append what the interrupted model had said, with what it had used."""
        self._draft.cancel_own("cancelled before it was run")
        if self._answer is None or self._decision is None:
            return
        self._spend(self._decision, self._answer)
        if self._answer.text:
            self._draft.add_assistant(self._answer.text, (), self._decision, interrupted=True)
        self._answer = None


def _superseded() -> Superseded:
    return Superseded("newer input took this turn's place")
