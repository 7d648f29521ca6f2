"""A whole session as one value: what is exported, and what becomes a session again. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from smista.core.ids import row_id
from smista.core.masking import masked_record
from smista.core.records import (
    ApprovalRecord,
    CallStatus,
    ContextReference,
    DiffRecord,
    DiffStatus,
    EventBatch,
    EventType,
    MemoryRecord,
    PlanRecord,
    RoutingRecord,
    RunState,
    Session,
    StoredMessage,
    ToolCallRecord,
    TraceEvent,
    TurnRecord,
)
from smista.core.secret import Envelope, Plain

NOT_RUN: Final = "This call was not run: the session was exported before it was."
_DIGEST_BITS: Final = 40
_WAITING: Final = (CallStatus.PENDING, CallStatus.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCopy:
    """What storage holds of one session, oldest first, but for what belongs to a live run.

    *batches* are the trace: the events of each turn, under the id of its first one.
    """

    session: Session
    messages: tuple[StoredMessage, ...] = ()
    tool_calls: tuple[ToolCallRecord, ...] = ()
    diffs: tuple[DiffRecord, ...] = ()
    plans: tuple[PlanRecord, ...] = ()
    approvals: tuple[ApprovalRecord, ...] = ()
    routing: tuple[RoutingRecord, ...] = ()
    references: tuple[ContextReference, ...] = ()
    batches: tuple[EventBatch, ...] = ()
    facts: tuple[MemoryRecord, ...] = ()


def record_of(copy: SessionCopy) -> TurnRecord:
    """Return *copy* as what one turn would leave behind, with no run going on."""
    session = copy.session
    told = sum(len(batch.events) for batch in copy.batches)
    record = TurnRecord(
        session_id=session.id,
        user_id=session.user_id,
        at=session.updated_at,
        run=RunState(
            run_id=copy.messages[-1].run_id if copy.messages else "",
            updated_at=session.updated_at,
            messages=len(copy.messages),
            events=told,
            references=len(copy.references),
            run_references=len(copy.references),
        ),
        messages=copy.messages,
        tool_calls=copy.tool_calls,
        diffs=copy.diffs,
        plans=copy.plans,
        approvals=copy.approvals,
        routing=copy.routing,
        references=copy.references,
        references_id=row_id(session.id, 0, 0, 0, "session_context_reference"),
        batches=copy.batches,
        events_id=row_id(session.id, 0, 0, 0, "trace_event"),
        facts=copy.facts,
    )
    return record if session.encrypted else masked_record(record)


def settled(copy: SessionCopy) -> SessionCopy:
    """Return *copy* without anything that waits for a client: no run goes on in it."""
    waiting = {call.id for call in copy.tool_calls if call.status in _WAITING}
    at, sealed = copy.session.updated_at, copy.session.encrypted
    return replace(
        copy,
        tool_calls=tuple(
            replace(
                call,
                status=CallStatus.FAILED,
                completed_at=at,
                # A sealed session's text comes from its client, and there is none to ask.
                error=None if sealed else Plain(NOT_RUN),
            )
            if call.id in waiting
            else call
            for call in copy.tool_calls
        ),
        diffs=tuple(
            replace(diff, status=DiffStatus.REJECTED) if diff.id in waiting else diff
            for diff in copy.diffs
        ),
    )


def as_new(copy: SessionCopy, session: Session) -> SessionCopy:
    """Return *copy* as that of *session*, with ids of its own; times and their order stay."""
    new = _Renamed(session.id)
    return SessionCopy(
        session=session,
        messages=tuple(map(new.message, copy.messages)),
        tool_calls=tuple(replace(each, id=new(each.id)) for each in copy.tool_calls),
        diffs=tuple(replace(each, id=new(each.id)) for each in copy.diffs),
        plans=tuple(map(new.plan, copy.plans)),
        approvals=tuple(map(new.approval, copy.approvals)),
        routing=tuple(replace(each, id=new(each.id)) for each in copy.routing),
        references=copy.references,
        batches=tuple(map(new.batch, copy.batches)),
        facts=tuple(replace(each, id=new(each.id)) for each in copy.facts),
    )


class _Renamed:
    """New ids for old ones: the same time and place in the turn, another digest."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._given: dict[str, str] = {}

    def __call__(self, old: str) -> str:
        if old not in self._given:
            number = int(old.replace("-", ""), 16) >> _DIGEST_BITS << _DIGEST_BITS
            digest = sha256(f"{self._session_id}/{old}".encode()).digest()
            text = f"{number | int.from_bytes(digest[: _DIGEST_BITS // 8], 'big'):032x}"
            self._given[old] = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        return self._given[old]

    def message(self, message: StoredMessage) -> StoredMessage:
        content = message.content
        if message.format == "calls" and isinstance(content, Plain):
            content = Plain(self._spoken(content.text))
        run_id = self(message.run_id) if message.run_id else ""
        return replace(message, uuid=self(message.uuid), run_id=run_id, content=content)

    def _spoken(self, text: str) -> str:
        said: dict[str, Any] = json.loads(text)
        calls = [{**call, "call_id": self(call["call_id"])} for call in said["tool_calls"]]
        return json.dumps({**said, "tool_calls": calls}, ensure_ascii=False)

    def plan(self, plan: PlanRecord) -> PlanRecord:
        return replace(plan, id=self(plan.id), path=plan.path.replace(plan.id, self(plan.id)))

    def approval(self, approval: ApprovalRecord) -> ApprovalRecord:
        return replace(approval, id=self(approval.id), target_id=self._target(approval.target_id))

    def _target(self, target: str) -> str:
        # Calls and plans were renamed before; what may be disclosed to whom has no id.
        return self._given.get(target, target)

    def batch(self, batch: EventBatch) -> EventBatch:
        return replace(
            batch, first_id=self(batch.first_id), events=tuple(map(self._event, batch.events))
        )

    def _event(self, event: TraceEvent) -> TraceEvent:
        payload = event.payload
        if event.event_type is not EventType.APPROVAL or isinstance(payload, Envelope):
            return event
        return replace(event, payload=self._targeted(payload))

    def _targeted(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        target = payload.get("target_id")
        return (
            {**payload, "target_id": self._target(target)} if isinstance(target, str) else payload
        )


def positions(batches: Iterable[EventBatch]) -> tuple[EventBatch, ...]:
    """Return *batches* one behind the other."""
    placed: list[EventBatch] = []
    first = 0
    for batch in batches:
        placed.append(replace(batch, first=first))
        first += len(batch.events)
    return tuple(placed)
