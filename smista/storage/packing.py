"""Packed rows: the events and references of a turn, many to a row, and back. Pure.

The engine keeps every key in memory and replays its log at start, so rows are what costs. A row
holds up to PACK items under the key [session, position of the first].
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from smista.core.ids import derived
from smista.core.intents import TaskIntent
from smista.core.records import ContextReference, EventBatch, EventType, TraceEvent, TurnRecord
from smista.core.secret import Envelope, Plain, Sealed
from smista.storage.rows import (
    Row,
    encode,
    json_text,
    key,
    place,
    ref,
    row,
    secret_from,
    secret_object,
)
from smista.storage.values import Ref, Unstorable, clean

PACK: Final = 64
TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")

# The default context would round to 28 digits; what is too long is refused instead.
_EXACT: Final = Context(prec=80)


@dataclass(slots=True)
class CostSums:
    """The sums of a row's cost events: all of one provider and model."""

    provider: str | None = None
    model: str | None = None
    requests: int = 0
    tokens: dict[str, int] = field(default_factory=dict[str, int])
    cost: Decimal | None = None

    def fits(self, event: TraceEvent) -> bool:
        return self.requests == 0 or _charged(event) in (None, (self.provider, self.model))

    def add(self, event: TraceEvent) -> None:
        charged, payload = _charged(event), event.payload
        if charged is None:
            return
        self.provider, self.model = charged
        self.requests += 1
        if isinstance(payload, Envelope):  # that there was a call is no secret, what it used is
            return
        for name in TOKENS:
            if (count := payload.get(name)) is not None:
                self.tokens[name] = self.tokens.get(name, 0) + int(count)
        if (cost := payload.get("cost")) is not None:
            self.cost = _EXACT.add(self.cost or Decimal(0), _money(cost))

    def columns(self) -> dict[str, Any]:
        if not self.requests:
            return {}
        charged = {"cost_provider": self.provider, "cost_model": self.model}
        return {**charged, "requests": self.requests, **self.tokens, "cost": self.cost}


def _charged(event: TraceEvent) -> tuple[str, str] | None:
    """Return the provider and model that a cost event charges, None for other events."""
    payload = event.payload
    if event.event_type is not EventType.COST:
        return None
    if isinstance(payload, Envelope):
        return event.provider, event.model
    return payload.get("provider", event.provider), payload.get("model", event.model)


def _money(amount: Any) -> Decimal:
    try:
        money = Decimal(str(amount))
    except InvalidOperation:
        raise Unstorable("a cost is not a decimal number") from None
    clean(money)
    return money


@dataclass(slots=True)
class _Chunk:
    first: int
    events: list[TraceEvent] = field(default_factory=list[TraceEvent])
    sums: CostSums = field(default_factory=CostSums)

    def takes(self, event: TraceEvent) -> bool:
        if not self.events:
            return True
        same = _context(event) == _context(self.events[0])
        return same and len(self.events) < PACK and self.sums.fits(event)

    def add(self, event: TraceEvent) -> None:
        self.events.append(event)
        self.sums.add(event)


def _context(event: TraceEvent) -> tuple[str, str, str, str | None]:
    return event.task_type, event.provider, event.model, event.matched_rule


def _chunks(events: Iterable[TraceEvent]) -> list[_Chunk]:
    chunks = [_Chunk(0)]
    for n, event in enumerate(events):
        if not chunks[-1].takes(event):
            chunks.append(_Chunk(n))
        chunks[-1].add(event)
    return chunks if chunks[0].events else []


def event_rows(record: TurnRecord) -> list[Row]:
    """Return the trace rows of *record*, each followed by its content row."""
    own = EventBatch(first=record.first_event, first_id=record.events_id, events=record.events)
    return [each for batch in (*record.batches, own) for each in _batch_rows(record, batch)]


def _batch_rows(record: TurnRecord, batch: EventBatch) -> list[Row]:
    rows: list[Row] = []
    for chunk in _chunks(batch.events):
        n = place(key(record.session_id), batch.first + chunk.first)
        rows.append(_event_row(Ref("trace_event", n), record, batch, chunk))
        contents = [_event_content(event) for event in chunk.events]
        rows.append(row(Ref("trace_event_content", n), content=encode(contents)))
    return rows


def _event_row(address: Ref, record: TurnRecord, batch: EventBatch, chunk: _Chunk) -> Row:
    first = chunk.events[0]
    items = [[e.event_type, _clock(e.created_at)] for e in chunk.events]
    return row(
        address,
        **_owner(record),
        uuid=key(batch.first_id),
        skip=chunk.first or None,
        count=len(chunk.events),
        task_type=first.task_type,
        provider=first.provider,
        model=first.model,
        matched_rule=first.matched_rule,
        created_at=first.created_at,
        items=json_text(items),
        **chunk.sums.columns(),
    )


def _clock(at: datetime) -> str:
    # clean() refuses a time without a zone; text would let it through.
    return str(clean(at).isoformat())


def _event_content(event: TraceEvent) -> dict[str, Any]:
    if isinstance(event.payload, Envelope):
        return secret_object(Sealed(event.payload))
    tagged = {"type": event.event_type, **event.payload}
    return secret_object(Plain(json_text(tagged)))


def events_from(stored: Row, content: Row) -> Iterator[tuple[int, TraceEvent]]:
    """Yield the events of a row pair with their positions."""
    first, skip = stored["id"].key[1], stored.get("skip", 0)
    items, payloads = json.loads(stored["items"]), json.loads(content["content"])
    for n, ((kind, at), payload) in enumerate(zip(items, payloads, strict=True), first):
        yield n, _event_from(stored, kind, at, payload, skip + n - first)


def _event_from(
    stored: Row, kind: str, at: str, content: Mapping[str, Any], number: int
) -> TraceEvent:
    payload = _payload_from(content)
    sealed = isinstance(payload, Envelope)
    return TraceEvent(
        id=derived(str(stored["uuid"]), number) if sealed else "",
        event_type=EventType(kind),
        task_type=TaskIntent(stored["task_type"]),
        provider=stored["provider"],
        model=stored["model"],
        matched_rule=stored.get("matched_rule"),
        created_at=datetime.fromisoformat(at),
        payload=payload,
    )


def _payload_from(content: Mapping[str, Any]) -> Mapping[str, Any] | Envelope:
    match secret_from(content):
        case Plain(text):
            tagged: dict[str, Any] = json.loads(text)
            return {name: value for name, value in tagged.items() if name != "type"}
        case Sealed(envelope):
            return envelope


def page(
    rows: Iterable[Row], contents: Iterable[Row], offset: int, limit: int
) -> tuple[TraceEvent, ...]:
    """Return events *offset* to *offset + limit* of the row pairs that cover them."""
    pairs = zip(rows, contents, strict=True)
    events = (pair for row_, content in pairs for pair in events_from(row_, content))
    return tuple(event for n, event in events if offset <= n < offset + limit)


def reference_rows(record: TurnRecord) -> list[Row]:
    """Return the reference rows of *record*."""
    whole = record.references
    return [_reference_row(record, n, whole[n : n + PACK]) for n in range(0, len(whole), PACK)]


def _reference_row(record: TurnRecord, skip: int, items: Sequence[ContextReference]) -> Row:
    n = place(key(record.session_id), record.first_reference + skip)
    return row(
        Ref("session_context_reference", n),
        **_owner(record),
        uuid=key(record.references_id),
        skip=skip or None,
        count=len(items),
        created_at=record.at,
        items=json_text([_reference_object(item) for item in items]),
    )


def _reference_object(item: ContextReference) -> dict[str, Any]:
    plain = {"kind": item.kind, "included": item.included, "reason": item.reason}
    return plain if item.path is None else {**plain, "path": item.path}


def references_from(rows: Iterable[Row]) -> tuple[ContextReference, ...]:
    items = (item for stored in rows for item in json.loads(stored["items"]))
    return tuple(ContextReference(**item) for item in items)


def _owner(record: TurnRecord) -> dict[str, UUID | Ref]:
    return {"session": ref("session", record.session_id), "user": ref("user", record.user_id)}
