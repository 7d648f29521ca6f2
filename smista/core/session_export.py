"""The document of an exported session: checked when it comes back, so that storage can trust it.

It holds what the API shows of a session and its trace, entity by entity, with their ids. An
encrypted session's contents are its envelopes, as they are stored.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import AwareDatetime

from smista.core.envelopes import fault_of
from smista.core.errors import InvalidRequest
from smista.core.intents import TaskIntent
from smista.core.policy import Frozen
from smista.core.records import (
    ApprovalRecord,
    ContextReference,
    DiffRecord,
    EventBatch,
    EventType,
    MemoryRecord,
    MemoryScope,
    PlanRecord,
    RoutingRecord,
    Session,
    StoredMessage,
    ToolCallRecord,
    TraceEvent,
)
from smista.core.secret import Envelope, Plain, Sealed
from smista.core.session_copy import SessionCopy, positions
from smista.core.unsealed import BLANK

FORMAT: Final = "smista-session"
VERSION: Final = 1
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_CALL: Final = ("call_id", "provider_call_id", "name", "arguments")


class ExportedSession(Frozen):
    id: str
    title: str | None = None
    scope: str | None = None
    key_id: str | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime


class ExportedEvent(Frozen):
    """A trace event; its payload is `plaintext` or `encrypted`."""

    event_type: EventType
    task_type: TaskIntent
    provider: str
    model: str
    matched_rule: str | None = None
    created_at: AwareDatetime
    plaintext: dict[str, Any] | None = None
    encrypted: Envelope | None = None


class ExportedBatch(Frozen):
    """The events of one turn; *id* is that of the first."""

    id: str
    events: tuple[ExportedEvent, ...]


class SessionExport(Frozen):
    """A whole session; *version* rises when a reader of the one before would misread it."""

    format: Literal["smista-session"]
    version: Literal[1]
    session: ExportedSession
    messages: tuple[StoredMessage, ...] = ()
    tool_calls: tuple[ToolCallRecord, ...] = ()
    diffs: tuple[DiffRecord, ...] = ()
    plans: tuple[PlanRecord, ...] = ()
    approvals: tuple[ApprovalRecord, ...] = ()
    routing: tuple[RoutingRecord, ...] = ()
    references: tuple[ContextReference, ...] = ()
    trace: tuple[ExportedBatch, ...] = ()
    facts: tuple[MemoryRecord, ...] = ()


def export_of(copy: SessionCopy) -> SessionExport:
    """Return the document of *copy*."""
    session = copy.session
    return SessionExport(
        format=FORMAT,
        version=VERSION,
        session=ExportedSession(
            id=session.id,
            title=session.title,
            scope=session.scope,
            key_id=session.key_id,
            created_at=session.created_at,
            updated_at=session.updated_at,
        ),
        messages=copy.messages,
        tool_calls=copy.tool_calls,
        diffs=copy.diffs,
        plans=copy.plans,
        approvals=copy.approvals,
        routing=copy.routing,
        references=copy.references,
        trace=tuple(map(_batch_out, copy.batches)),
        facts=copy.facts,
    )


def _batch_out(batch: EventBatch) -> ExportedBatch:
    return ExportedBatch(id=batch.first_id, events=tuple(map(_event_out, batch.events)))


def _event_out(event: TraceEvent) -> ExportedEvent:
    payload = event.payload
    return ExportedEvent(
        event_type=event.event_type,
        task_type=event.task_type,
        provider=event.provider,
        model=event.model,
        matched_rule=event.matched_rule,
        created_at=event.created_at,
        plaintext=None if isinstance(payload, Envelope) else dict(payload),
        encrypted=payload if isinstance(payload, Envelope) else None,
    )


def copy_of(export: SessionExport, user_id: str) -> SessionCopy:
    """Return what *export* holds as a session of *user_id*. Raises InvalidRequest."""
    told = export.session
    session = Session(
        id=told.id,
        user_id=user_id,
        title=told.title,
        scope=told.scope,
        key_id=told.key_id,
        created_at=told.created_at,
        updated_at=told.updated_at,
    )
    faults = _Faults()
    faults.check(export)
    faults.tell()
    return SessionCopy(
        session=session,
        messages=tuple(replace(each, n=n) for n, each in enumerate(export.messages)),
        tool_calls=export.tool_calls,
        diffs=export.diffs,
        plans=export.plans,
        approvals=export.approvals,
        routing=export.routing,
        references=export.references,
        batches=positions(map(_batch_in, export.trace)),
        facts=export.facts,
    )


def _batch_in(batch: ExportedBatch) -> EventBatch:
    return EventBatch(first=0, first_id=batch.id, events=tuple(map(_event_in, batch.events)))


def _event_in(event: ExportedEvent) -> TraceEvent:
    return TraceEvent(
        event_type=event.event_type,
        task_type=event.task_type,
        provider=event.provider,
        model=event.model,
        matched_rule=event.matched_rule,
        created_at=event.created_at,
        payload=event.encrypted or event.plaintext or {},
    )


class _Faults:
    """Collects what is wrong with a document, by place and kind; values are never told."""

    _MOST: Final = 50

    def __init__(self) -> None:
        self._found: list[dict[str, str]] = []

    def tell(self) -> None:
        """Raise InvalidRequest if anything was found."""
        if self._found:
            places = ", ".join(field["place"] for field in self._found[:3])
            raise InvalidRequest(
                f"this is not a session as it was exported: see {places}",
                fields=self._found[: self._MOST],
            )

    def _add(self, place: str, kind: str) -> None:
        self._found.append({"place": f"body.{place}", "kind": kind})

    def check(self, export: SessionExport) -> None:
        self._ids(export)
        self._messages(export.messages)
        for name in ("messages", "tool_calls", "diffs", "plans", "approvals", "routing", "facts"):
            self._records(name, getattr(export, name), export.session.key_id)
        self._events(export)
        self._facts(export.facts)

    def _ids(self, export: SessionExport) -> None:
        for name, ids in _ids_in(export):
            for n, each in enumerate(ids):
                if not _is_id(each):
                    self._add(f"{name}.{n}", "uuid_version")
            if len(set(ids)) < len(ids):
                self._add(name, "id_twice")

    def _facts(self, facts: Sequence[MemoryRecord]) -> None:
        for n, fact in enumerate(facts):
            if fact.scope is not MemoryScope.SESSION:
                self._add(f"facts.{n}.scope", "not_of_the_session")
        keys = [fact.key for fact in facts if fact.key is not None]
        if len(set(keys)) < len(keys):
            self._add("facts", "key_twice")

    def _messages(self, messages: Sequence[StoredMessage]) -> None:
        for n, message in enumerate(messages):
            place = f"messages.{n}"
            if message.role not in ("user", "assistant"):
                self._add(f"{place}.role", "enum")
            if message.format not in ("text", "calls", "note"):
                self._add(f"{place}.format", "enum")
            elif message.format == "calls" and not _is_spoken(message):
                self._add(f"{place}.content", "not_a_message_with_calls")
            if message.run_id and not _is_id(message.run_id):
                self._add(f"{place}.run_id", "uuid_version")

    def _records(self, name: str, records: Sequence[Any], key_id: str | None) -> None:
        for n, record in enumerate(records):
            for field in fields(record):
                self._value(f"{name}.{n}.{field.name}", getattr(record, field.name), key_id)

    def _value(self, place: str, value: Any, key_id: str | None) -> None:
        match value:
            case datetime(tzinfo=None):
                self._add(place, "timezone_aware")
            case Sealed(envelope):
                self._envelope(place, envelope, key_id)
            case Plain() if key_id is not None and value != BLANK:
                self._add(place, "readable_in_an_encrypted_session")
            case _:
                pass

    def _envelope(self, place: str, envelope: Envelope, key_id: str | None) -> None:
        if key_id is None:
            self._add(place, "sealed_in_a_plain_session")
        elif fault := fault_of(envelope, key_id):
            other = fault == "key_id"
            self._add(place, "sealed_with_another_key" if other else f"malformed_{fault}")

    def _events(self, export: SessionExport) -> None:
        key_id = export.session.key_id
        for b, batch in enumerate(export.trace):
            for n, event in enumerate(batch.events):
                place = f"trace.{b}.events.{n}"
                if event.encrypted is not None:
                    self._envelope(place, event.encrypted, key_id)
                elif key_id is not None:
                    self._add(place, "readable_in_an_encrypted_session")
                elif event.event_type is EventType.COST and not _is_cost(event.plaintext or {}):
                    self._add(f"{place}.plaintext", "not_a_cost")


def _ids_in(export: SessionExport) -> Iterator[tuple[str, list[str]]]:
    yield "session.id", [export.session.id]
    yield "messages", [message.uuid for message in export.messages]
    yield "tool_calls", [call.id for call in export.tool_calls]
    yield "diffs", [diff.id for diff in export.diffs]
    yield "plans", [plan.id for plan in export.plans]
    yield "approvals", [approval.id for approval in export.approvals]
    yield "routing", [routing.id for routing in export.routing]
    yield "trace", [batch.id for batch in export.trace]
    yield "facts", [fact.id for fact in export.facts]


def _is_id(text: str) -> bool:
    return _ID.match(text) is not None


def _is_spoken(message: StoredMessage) -> bool:
    if isinstance(message.content, Sealed):
        return _are_ids(message.calls)
    try:
        said = json.loads(message.content.text)
        calls = said["tool_calls"]
        whole = all(isinstance(call[name], str) for call in calls for name in _CALL)
        return whole and isinstance(said["text"], str) and _are_ids(c["call_id"] for c in calls)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _are_ids(texts: Iterable[str]) -> bool:
    return all(map(_is_id, texts))


def _is_cost(payload: dict[str, Any]) -> bool:
    """Say if the figures of *payload* can be summed."""
    counts = (payload.get(name) for name in payload if name.endswith("_tokens"))
    if not all(isinstance(count, int) and 0 <= count < 2**53 for count in counts):
        return False
    names = (payload.get(name, "") for name in ("provider", "model"))
    if not all(isinstance(name, str) for name in names):
        return False
    cost = payload.get("cost", "0")
    return isinstance(cost, str) and cost.replace(".", "", 1).isdecimal() and len(cost) < 40
