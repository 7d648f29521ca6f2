"""What a turn has produced so far, and the record it becomes.

A draft belongs to one turn. It gives rows their deterministic ids, keeps the session's state as
it will be, and writes nothing: `record()` is what the journal makes durable, `state` what the
actor then knows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from actors.memories import FactChanges, with_fact, without_fact
from actors.restricted import forgotten
from actors.seals import Seals
from actors.wording import call_payload, message_payload, with_calls
from smista.core.decision import Decision, Item
from smista.core.exchanges import with_result
from smista.core.history import Call, Role
from smista.core.history import Message as Said
from smista.core.ids import row_id
from smista.core.intents import TaskIntent
from smista.core.messages import Message
from smista.core.opening import opened
from smista.core.phase import AwaitingEncrypt, AwaitingTool, Idle, Phase
from smista.core.records import (
    AnsweredRecord,
    ApprovalRecord,
    CallStatus,
    ContextReference,
    DiffRecord,
    DiffStatus,
    EventType,
    MemoryRecord,
    MemoryScope,
    PlanRecord,
    RouteContext,
    RoutingRecord,
    RunInput,
    SessionState,
    StoredMessage,
    ToolCallRecord,
    TraceEvent,
    TurnRecord,
)
from smista.core.request import ExecuteRequest
from smista.core.sealing import Told, split
from smista.core.secret import Opened, Plain
from smista.core.stream import Usage
from smista.core.totals import Totals
from smista.core.views import cost_payload, selection_payload

Over = Idle | AwaitingEncrypt
"""Where a run is over; in an encrypted session its last words may still have to be sealed."""


class Draft:
    """Accumulates the rows of one turn on top of the *state* that storage holds."""

    def __init__(self, state: SessionState, now: datetime) -> None:
        self.base = state
        self.state = state
        self.now = now
        self.model_calls = self.base_calls = state.run.turn
        self._first_turn = state.run.turn + 1
        self._attempt = state.run.attempt
        self._ordinal = 0
        self._stored: list[StoredMessage] = []
        self._routing: list[RoutingRecord] = []
        self._references: list[ContextReference] = []
        self._calls: dict[str, ToolCallRecord] = {}
        self._diffs: dict[str, DiffRecord] = {}
        self._approvals: list[ApprovalRecord] = []
        self._plans: dict[str, PlanRecord] = {}
        self._seals = Seals()
        self.memory = FactChanges()
        self.own_calls: list[str] = []  # approved calls that the router has still to run
        self._events: list[TraceEvent] = []
        self._early: list[tuple[EventType, Mapping[str, Any]]] = []
        self._context = state.run.route
        self._selected: dict[tuple[str, str | None], tuple[bool, str]] = {
            (r.kind, r.path): (r.included, r.reason) for r in state.references
        }

    # --- the run -----------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        return self.state.run.run_id

    @property
    def input(self) -> RunInput:
        if self.state.input is None:
            raise ValueError("a turn without a run's input")
        return self.state.input

    def begin_run(self, run_id: str, request: ExecuteRequest) -> None:
        """Start a run; what the old one left pending ends failed."""
        self.cancel_pending("the task was abandoned for a new one")
        run = self.state.run
        self.state = replace(
            self.state,
            run=replace(
                run,
                run_id=run_id,
                turn=0,
                attempt=0,
                phase=Idle(),
                run_references=run.references,
                spent=Totals(),
                barred=None,
                ceiling=None,
                unpriced_agreed=False,
                route=None,
                unsealed=replace(run.unsealed, input=None, notes_id=None),
            ),
            sealed_input=None,
            noted="",
            input=RunInput(
                run_id=run_id,
                request=request,
                created_at=self.now,
                plan_active=request.input.command is TaskIntent.PLAN,
            ),
            references=(),
        )
        self._selected = {}
        self._context = None
        self.model_calls = self.base_calls = 0
        self._first_turn, self._attempt, self._ordinal = 1, 0, 0

    def begin_model_call(self) -> None:
        """Count one more model call; its rows get ids of their own."""
        self.model_calls += 1

    def new_id(self, table: str) -> str:
        self._ordinal += 1
        turn = max(self.model_calls, self._first_turn)
        return row_id(self.run_id, turn, self._attempt, self._ordinal, table)

    def take_envelopes(self, message: Message) -> None:
        """Take what *message* brings for rows that wait; without any, lost rows are given up."""
        self.state = self._seals.take(self.state, message)

    def take_opened(self, texts: Mapping[str, str]) -> None:
        self.state = opened(self.state, texts)

    # --- rows --------------------------------------------------------------------------------

    def add_user(self, text: str) -> None:
        """Append what the user wrote; it is filed under the route it leads to."""
        self._context = None
        self._append(self.new_id("session_message"), Role.USER, text, {})

    def add_note(self, text: str) -> None:
        """Append the router's own words to the model, in the user's place."""
        self._append(self.new_id("session_message"), Role.USER, text, {}, note=True)

    def add_assistant(
        self,
        text: str,
        calls: tuple[Call, ...],
        decision: Decision,
        *,
        interrupted: bool = False,
    ) -> None:
        """Append what a model said."""
        model = {
            "provider": decision.routing.provider,
            "model": decision.routing.model,
            "restricted": decision.restricted_in_view,
            "interrupted": interrupted,
        }
        uuid = self.new_id("session_message")
        self._append(uuid, Role.ASSISTANT, text, model, calls)

    def _append(
        self,
        uuid: str,
        role: Role,
        text: str,
        about: Mapping[str, Any],
        calls: tuple[Call, ...] = (),
        *,
        note: bool = False,
    ) -> None:
        run = self.state.run
        content = with_calls(text, calls) if calls else text
        form = "calls" if calls else ("note" if note else "text")
        self._stored.append(
            StoredMessage(
                uuid=uuid,
                n=run.messages,
                role=role.value,
                run_id=self.run_id,
                format=form,
                content=Plain(content),
                created_at=self.now,
                calls=tuple(call.call_id for call in calls),
                **about,
            )
        )
        message = Said(
            uuid=uuid, role=role, text=text, run_id=self.run_id, calls=calls, note=note, **about
        )
        self.state = replace(
            self.state,
            run=replace(run, messages=run.messages + 1),
            messages=(*self.state.messages, message),
        )
        self.note(EventType.MESSAGE, message_payload(role, about))

    def add_routing(self, decision: Decision) -> None:
        """Record which model was chosen and why, and set the context of the events to come."""
        routing = decision.routing
        self.context(routing.task_type, routing.provider, routing.model, routing.matched_rule)
        self._routing.append(
            RoutingRecord(
                id=self.new_id("session_routing_decision"),
                task_type=routing.task_type,
                provider=routing.provider,
                model=routing.model,
                reason=routing.reason,
                created_at=self.now,
                matched_rule=routing.matched_rule,
                fallback_used=routing.fallback_used,
                override_used=routing.override_used,
            )
        )

    def add_selection(self, items: Iterable[Item]) -> None:
        """Record what was selected or left out, where that changed since the turn before."""
        for item in items:
            key, value = (item.kind, item.path or item.label), (item.included, item.reason)
            if self._selected.get(key) == value:
                continue
            self._selected[key] = value
            reference = ContextReference(
                kind=item.kind,
                included=item.included,
                reason=item.reason,
                path=item.path or item.label,
            )
            self._references.append(reference)
            self.note(EventType.CONTEXT_SELECTION, selection_payload(reference))

    def put_call(self, call: ToolCallRecord) -> None:
        """Write a tool call, new or changed."""
        self._calls[call.id] = call
        self.state = replace(self.state, calls={**self.state.calls, call.id: call})
        self.note(EventType.TOOL_CALL, call_payload(call))

    def put_diff(self, diff: DiffRecord) -> None:
        self._diffs[diff.id] = diff
        self.state = replace(self.state, diffs={**self.state.diffs, diff.id: diff})

    def answer_call(
        self,
        call_id: str,
        content: str,
        *,
        is_error: bool,
        paths: tuple[str, ...] | None = None,
        restricted: bool = False,
    ) -> None:
        """Store the result of a call, move its diff, and append the result to the history."""
        call = self.state.calls[call_id]
        restricted = restricted or call.restricted
        sealed = self._seals.of_result(call_id, content)
        body = Plain(content) if sealed is None else Opened(content, sealed.envelope)
        self.put_call(
            replace(
                call,
                format=None if sealed is None else sealed.form,
                status=CallStatus.FAILED if is_error else CallStatus.COMPLETED,
                completed_at=self.now,
                result=None if is_error else body,
                error=body if is_error else None,
                paths=paths,
                restricted=restricted,
            )
        )
        diff = self.state.diffs.get(call_id)
        if diff is not None:
            status = DiffStatus.REJECTED if is_error else DiffStatus.APPLIED
            applied_at = None if is_error else self.now
            self.put_diff(replace(diff, status=status, applied_at=applied_at))
        message = Said(
            uuid=call_id,
            role=Role.TOOL,
            text=content,
            run_id=self.run_id,
            call_id=call_id,
            is_error=is_error,
            paths=paths,
            restricted=restricted,
            sealed=None if sealed is None else sealed.envelope,
        )
        self.state = replace(self.state, messages=with_result(self.state.messages, message))

    def write_fact(self, fact: MemoryRecord) -> None:
        self.memory.write(fact)
        if fact.scope is MemoryScope.SESSION:
            self.state = replace(self.state, facts=with_fact(self.state.facts, fact))

    def drop_fact(self, fact: MemoryRecord) -> None:
        self.memory.drop(fact)
        self.state = replace(self.state, facts=without_fact(self.state.facts, fact.id))

    def forget_fact(self, fact_id: str) -> None:
        """Take a fact of the session back that the user has deleted meanwhile."""
        self.memory.forget(fact_id)
        facts = without_fact(self.state.facts, fact_id)
        self.state = replace(self.state, facts=facts)
        self.base = replace(self.base, facts=without_fact(self.base.facts, fact_id))

    def approve(
        self, target_type: str, target_id: str, decision: str, reason: str | None = None
    ) -> None:
        """Record the user's word on a call, a disclosure, a cost or a plan."""
        approval = ApprovalRecord(
            id=self.new_id("session_approval"),
            target_type=target_type,
            target_id=target_id,
            decision=decision,
            created_at=self.now,
            reason=reason,
        )
        self._approvals.append(approval)
        payload = {"target_type": target_type, "target_id": target_id, "decision": decision}
        self.note(EventType.APPROVAL, payload if reason is None else {**payload, "reason": reason})

    def disclose(self, targets: Iterable[str]) -> None:
        """Remember for the session what the user agreed to disclose."""
        self.state = replace(self.state, disclosed=self.state.disclosed.union(targets))

    def put_plan(self, plan: PlanRecord) -> None:
        self._plans[plan.id] = plan
        self.state = replace(self.state, plan=plan)

    def change_run(self, **changes: Any) -> None:
        """Change what holds for the rest of the run (`barred`, `ceiling`, …)."""
        self.state = replace(self.state, run=replace(self.state.run, **changes))

    def end_planning(self) -> None:
        """Let the run act from now on; what it was started with need not be open for that."""
        state = self.state
        if state.input is not None:
            self.state = replace(state, input=replace(state.input, plan_active=False))
        elif state.sealed_input is not None:
            head = replace(state.sealed_input.head, plan_active=False)
            self.state = replace(state, sealed_input=replace(state.sealed_input, head=head))

    def cancel_pending(self, why: str) -> None:
        """Answer every call that still waits for its client with *why*, as failed."""
        phase = self.state.run.phase
        if isinstance(phase, AwaitingTool):
            for pending in phase.calls:
                if pending.call_id in self.state.calls:
                    self.answer_call(pending.call_id, why, is_error=True, paths=())

    def cancel_own(self, why: str) -> None:
        """Answer every approved call that the router has not run yet with *why*, as failed."""
        while self.own_calls:
            self.answer_call(self.own_calls.pop(0), why, is_error=True, paths=())

    def add_cost(
        self, decision: Decision, usage: Usage, cost: Decimal | None, served: str | None
    ) -> None:
        """Record what one model call used, and which model served it by its provider's word."""
        run = self.state.run
        self.state = replace(self.state, run=replace(run, spent=run.spent.plus(usage, cost)))
        self.note(EventType.COST, cost_payload(decision.routing, usage, cost, served))

    def _forget_restricted(self) -> None:
        """Replace the bodies of the run's restricted items: they live only while it does."""
        gone = forgotten(self.state)
        self._calls |= gone.calls
        for diff in gone.diffs:
            self.put_diff(diff)
        self.state = replace(
            self.state, calls={**self.state.calls, **gone.calls}, messages=gone.messages
        )

    # --- events ------------------------------------------------------------------------------

    def context(
        self, task_type: TaskIntent, provider: str, model: str, matched_rule: str | None
    ) -> None:
        """Set the routing context of events, and place those that came before it was known."""
        self._context = RouteContext(task_type, provider, model, matched_rule)
        self.change_run(route=self._context)
        early, self._early = self._early, []
        for event_type, payload in early:
            self.note(event_type, payload)

    def note(self, event_type: EventType, payload: Mapping[str, Any]) -> None:
        """Append a trace event; before the route is known it waits for it."""
        if self._context is None:
            self._early.append((event_type, payload))
            return
        self._events.append(
            TraceEvent(
                event_type=event_type,
                created_at=self.now,
                payload=payload,
                **self._context._asdict(),
            )
        )

    def _place_the_rest(self) -> None:
        """File what never came to a route under the one before it, or under none at all."""
        if self._early:
            given, intent = self.state.input, TaskIntent.CHAT
            if given is not None:
                intent = given.request.policy.classification.default_intent
            route = self.state.run.route or RouteContext(intent, "", "")
            self.context(*route)

    # --- the end -----------------------------------------------------------------------------

    def record(
        self, phase: Phase, *, again: bool = False, answered: tuple[AnsweredRecord, ...] = ()
    ) -> TurnRecord:
        """Return what becomes durable, with *phase* as the new checkpoint.

        *again*: the turn did not get to its end and may be asked for once more.
        """
        self._place_the_rest()
        over, stored = isinstance(phase, Over), not isinstance(self.base.run.phase, Idle)
        if over:
            self._forget_restricted()
        run = self.state.run
        ended = again or self.model_calls == self.base_calls
        counted = replace(
            run,
            phase=phase,
            turn=self.base.run.turn if again else self.model_calls,
            attempt=self._attempt + 1 if ended else 0,
            updated_at=self.now,
            events=run.events + len(self._events),
            references=run.references + len(self._references),
        )
        new_input = not stored or self.state.input is not self.base.input
        self.state = replace(
            self.state,
            run=counted,
            session=replace(self.state.session, updated_at=self.now),
            references=(*self.state.references, *self._references),
        )
        return TurnRecord(
            session_id=self.state.session.id,
            user_id=self.state.session.user_id,
            run=counted,
            at=self.now,
            lease=counted.lease or None,
            input=self.state.input if new_input and not over else None,
            drop_input=over and stored,
            messages=tuple(self._stored),
            routing=tuple(self._routing),
            references=tuple(self._references),
            first_reference=self.base.run.references,
            references_id=self.new_id("session_context_reference"),
            tool_calls=tuple(self._calls.values()),
            diffs=tuple(self._diffs.values()),
            approvals=tuple(self._approvals),
            plans=tuple(self._plans.values()),
            answered=answered,
            facts=self.memory.written,
            forgotten=self.memory.dropped,
            events=tuple(self._events),
            first_event=self.base.run.events,
            events_id=self.new_id("trace_event"),
        )

    def sealed_record(self, record: TurnRecord, told: Told) -> TurnRecord:
        """Return what may be stored of an encrypted session's *record*; the state learns it too."""
        done = split(
            record,
            self.base,
            self.state,
            arrived=self._seals.arrived,
            told=told,
            new_id=lambda: self.new_id("session_run_input"),
        )
        self.state = done.state
        return done.record
