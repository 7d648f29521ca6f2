"""The rows of an encrypted session that wait for their envelopes: how they are named and kept.

They are kept as metadata alone, in the run's checkpoint; what they say is in memory, or lost.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any, Final, Protocol, TypeVar

from pydantic import TypeAdapter

from smista.core.ids import derived
from smista.core.intents import TaskIntent
from smista.core.records import EventBatch, EventType, TraceEvent, Unsealed
from smista.core.secret import Envelope, Plain, Sealed

BLANK: Final = Plain("")
"""What stands in a row for the content that is sealed apart."""

_ROWS: Final = TypeAdapter(Unsealed)
_NONE: Final = Envelope(version=0, algorithm="", key_id="", nonce="", ciphertext="")


class _Named(Protocol):
    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=_Named)


def trace_references(batch: EventBatch) -> list[str]:
    """Return the references of the events in *batch*, in order."""
    return [f"trace:{derived(batch.first_id, n)}" for n in range(len(batch.events))]


def references(waiting: Unsealed) -> tuple[str, ...]:
    """Return the references (`kind:id`) of all that waits."""
    return tuple(_references(waiting))


def listed(waiting: Unsealed) -> tuple[str, ...]:
    """Return the references that the last response listed: its answer has to seal these."""
    return tuple(each for each in _references(waiting) if each not in waiting.late)


def _references(waiting: Unsealed) -> Iterator[str]:
    return chain.from_iterable(groups(waiting))


def groups(waiting: Unsealed) -> Iterator[tuple[str, ...]]:
    """Yield the references of all that waits, in order: what is in one group is sealed together."""
    if waiting.input is not None:
        yield (f"run_input:{waiting.input.run_id}",)
    if waiting.notes_id is not None:
        yield (f"run_input:{waiting.notes_id}",)
    yield from ((f"message:{message.uuid}",) for message in waiting.messages)
    for kind, rows in _by_id(waiting):
        yield from ((f"{kind}:{row.id}",) for row in rows)
    for batch in waiting.batches:
        yield tuple(trace_references(batch))


def _by_id(waiting: Unsealed) -> tuple[tuple[str, tuple[_Named, ...]], ...]:
    return (
        ("tool_call", waiting.calls),
        ("diff", waiting.diffs),
        ("plan", waiting.plans),
        ("memory", waiting.facts),
    )


def joined(older: Unsealed, newer: Unsealed) -> Unsealed:
    """Return both; a row that changed meanwhile waits as it is now."""
    known = {message.uuid for message in older.messages}
    fresh = tuple(message for message in newer.messages if message.uuid not in known)
    return Unsealed(
        messages=(*older.messages, *fresh),
        calls=_newest(older.calls, newer.calls),
        diffs=_newest(older.diffs, newer.diffs),
        plans=_newest(older.plans, newer.plans),
        facts=_newest(older.facts, newer.facts),
        batches=(*older.batches, *newer.batches),
        input=newer.input or older.input,
        notes_id=newer.notes_id or older.notes_id,
        pending=_newest(older.pending, newer.pending),
        routing=_newest(older.routing, newer.routing),
        approvals=_newest(older.approvals, newer.approvals),
        late=older.late | newer.late,
    )


def _newest(older: Iterable[R], newer: Iterable[R]) -> tuple[R, ...]:
    return tuple({row.id: row for row in (*older, *newer)}.values())


def filled(waiting: Unsealed, given: Mapping[str, Envelope]) -> tuple[Unsealed, Unsealed]:
    """Return the rows whose envelopes were *given*, with them as their content, and the rest.

    What has no content comes along. Input and notes are rows of another shape: they are only
    taken out of the rest.
    """
    named = waiting.input is not None and f"run_input:{waiting.input.run_id}" in given
    noted = waiting.notes_id is not None and f"run_input:{waiting.notes_id}" in given
    there = Unsealed(
        messages=tuple(
            replace(m, content=Sealed(given[f"message:{m.uuid}"]))
            for m in waiting.messages
            if f"message:{m.uuid}" in given
        ),
        calls=tuple(
            replace(
                c,
                result=c.result and Sealed(given[f"tool_call:{c.id}"]),
                error=c.error and Sealed(given[f"tool_call:{c.id}"]),
            )
            for c in waiting.calls
            if f"tool_call:{c.id}" in given
        ),
        diffs=tuple(
            replace(d, body=Sealed(given[f"diff:{d.id}"]))
            for d in waiting.diffs
            if f"diff:{d.id}" in given
        ),
        plans=tuple(
            replace(p, content=Sealed(given[f"plan:{p.id}"]))
            for p in waiting.plans
            if f"plan:{p.id}" in given
        ),
        facts=tuple(
            replace(f, content=Sealed(given[f"memory:{f.id}"]))
            for f in waiting.facts
            if f"memory:{f.id}" in given
        ),
        batches=tuple(
            _filled_batch(batch, given) for batch in waiting.batches if _is_given(batch, given)
        ),
        pending=waiting.pending,
        routing=waiting.routing,
        approvals=waiting.approvals,
    )
    rest = Unsealed(
        messages=tuple(m for m in waiting.messages if f"message:{m.uuid}" not in given),
        calls=tuple(c for c in waiting.calls if f"tool_call:{c.id}" not in given),
        diffs=tuple(d for d in waiting.diffs if f"diff:{d.id}" not in given),
        plans=tuple(p for p in waiting.plans if f"plan:{p.id}" not in given),
        facts=tuple(f for f in waiting.facts if f"memory:{f.id}" not in given),
        batches=tuple(batch for batch in waiting.batches if not _is_given(batch, given)),
        input=None if named else waiting.input,
        notes_id=None if noted else waiting.notes_id,
        late=waiting.late,
    )
    return there, rest


def without(waiting: Unsealed, names: Iterable[str]) -> Unsealed:
    """Return *waiting* without the rows of these *names*: nobody will seal them."""
    _, rest = filled(waiting, dict.fromkeys(names, _NONE))
    return replace(
        rest, pending=waiting.pending, routing=waiting.routing, approvals=waiting.approvals
    )


def _is_given(batch: EventBatch, given: Mapping[str, Envelope]) -> bool:
    # A batch is told as a whole, so it is sealed as a whole.
    return f"trace:{batch.first_id}" in given


def _filled_batch(batch: EventBatch, given: Mapping[str, Envelope]) -> EventBatch:
    pairs = zip(batch.events, trace_references(batch), strict=True)
    return replace(
        batch, events=tuple(replace(event, payload=given[name]) for event, name in pairs)
    )


def unsealed_to_json(waiting: Unsealed) -> dict[str, Any]:
    """Return the stored form: there is no content in it."""
    rows = _ROWS.dump_python(replace(waiting, batches=()), mode="json", exclude_defaults=True)
    return {"rows": rows, "batches": [_batch_to_json(batch) for batch in waiting.batches]}


def unsealed_from_json(stored: Mapping[str, Any]) -> Unsealed:
    """Return the rows that *stored* describes; raises ValueError if it makes no sense."""
    rows = _ROWS.validate_json(json.dumps(stored["rows"]))
    return replace(rows, batches=tuple(_batch_from_json(batch) for batch in stored["batches"]))


def _batch_to_json(batch: EventBatch) -> dict[str, Any]:
    # Most events of a turn share their route, so it is told once.
    routes: list[tuple[Any, list[list[str]]]] = []
    for event in batch.events:
        route = [event.task_type.value, event.provider, event.model, event.matched_rule]
        if not routes or routes[-1][0] != route:
            routes.append((route, []))
        routes[-1][1].append([event.event_type.value, event.created_at.isoformat()])
    return {"first": batch.first, "id": batch.first_id, "routes": routes}


def _batch_from_json(stored: Mapping[str, Any]) -> EventBatch:
    events = tuple(
        TraceEvent(
            event_type=EventType(kind),
            task_type=TaskIntent(task),
            provider=provider,
            model=model,
            matched_rule=rule,
            created_at=datetime.fromisoformat(at),
            payload={},
        )
        for (task, provider, model, rule), items in stored["routes"]
        for kind, at in items
    )
    return EventBatch(first=stored["first"], first_id=stored["id"], events=events)
