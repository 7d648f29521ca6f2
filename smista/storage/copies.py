"""A whole session read out of storage, and put in again as one transaction.

Reading takes what the run state counts, so what a turn writes meanwhile is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from smista.core.errors import InvalidRequest
from smista.core.intents import TaskIntent
from smista.core.records import (
    ApprovalRecord,
    EventBatch,
    MemoryScope,
    PlanRecord,
    RoutingRecord,
    Session,
    StoredMessage,
)
from smista.core.secret import Sealed
from smista.core.session_copy import SessionCopy, record_of
from smista.storage import states
from smista.storage.facts import facts_from
from smista.storage.packing import events_from, references_from
from smista.storage.rows import Row, Unit, key_text, secret_from_text, session_row
from smista.storage.turns import turn_unit
from smista.storage.values import Unstorable

_COUNTED: Final = {
    "messages": ("session_message", "messages"),
    "contents": ("session_message_content", "messages"),
    "references": ("session_context_reference", "references"),
    "events": ("trace_event", "events"),
    "payloads": ("trace_event_content", "events"),
}
_WHOLE: Final = {
    "calls": "session_tool_call",
    "call_contents": "session_tool_call_content",
    "diffs": "session_diff",
    "diff_contents": "session_diff_content",
    "plans": "session_plan",
    "plan_contents": "session_plan_content",
    "approvals": "session_approval",
    "routing": "session_routing_decision",
    "facts": "context_memory",
    "fact_contents": "context_memory_content",
}
READ: Final = ";".join(
    (
        "LET $run = (SELECT * FROM ONLY $state)",
        *(
            f"SELECT * FROM {table}:[$s, 0]..[$s, $run.`{counter}` ?? 0]"
            for table, counter in _COUNTED.values()
        ),
        *(f"SELECT * FROM {table}:[$s, NONE]..[$s, []]" for table in _WHOLE.values()),
    )
)
"""Reads what `StoredCopy` holds, in its order, after one result to leave out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCopy:
    """The rows of one session, each table's in the order of its keys."""

    messages: Sequence[Row]
    contents: Sequence[Row]
    references: Sequence[Row]
    events: Sequence[Row]
    payloads: Sequence[Row]
    calls: Sequence[Row]
    call_contents: Sequence[Row]
    diffs: Sequence[Row]
    diff_contents: Sequence[Row]
    plans: Sequence[Row]
    plan_contents: Sequence[Row]
    approvals: Sequence[Row]
    routing: Sequence[Row]
    facts: Sequence[Row]
    fact_contents: Sequence[Row]


def stored_copy(results: Iterable[Sequence[Row]]) -> StoredCopy:
    """Return what READ gave, without its first result."""
    return StoredCopy(**dict(zip((*_COUNTED, *_WHOLE), results, strict=True)))


def tables_of_copy() -> tuple[Mapping[str, tuple[str, str]], Mapping[str, str]]:
    """Return where the members of `StoredCopy` lie: counted by the run state, and whole."""
    return _COUNTED, _WHOLE


def copy_from(session: Session, stored: StoredCopy) -> SessionCopy:
    """Return the session that *stored* holds."""
    calls = states.by_key(stored.call_contents)
    bodies = states.by_key(stored.diff_contents)
    plans = states.by_key(stored.plan_contents)
    return SessionCopy(
        session=session,
        messages=tuple(map(_message, stored.messages, stored.contents)),
        tool_calls=tuple(states.call_from(c, calls[key_text(c["id"])]) for c in stored.calls),
        diffs=tuple(states.diff_from(d, bodies[key_text(d["id"])]) for d in stored.diffs),
        plans=tuple(_plan(plan, plans[key_text(plan["id"])]) for plan in stored.plans),
        approvals=tuple(map(_approval, stored.approvals)),
        routing=tuple(map(_routing, stored.routing)),
        references=references_from(stored.references),
        batches=tuple(_batches(stored.events, stored.payloads)),
        facts=facts_from(MemoryScope.SESSION, stored.facts, stored.fact_contents),
    )


def _message(base: Row, content: Row) -> StoredMessage:
    body = secret_from_text(content["content"])
    if body is None:
        raise ValueError("a message without content")
    return StoredMessage(
        uuid=str(base["uuid"]),
        n=base["id"].key[1],
        role=base["role"],
        run_id=base["run_id"],
        format=base["format"],
        content=body,
        created_at=base["created_at"],
        provider=base.get("provider"),
        model=base.get("model"),
        restricted=base.get("restricted") is not False,
        interrupted=bool(base.get("interrupted")),
        calls=states.calls_of(base) if isinstance(body, Sealed) else (),
    )


def _plan(base: Row, content: Row) -> PlanRecord:
    plan = states.plan_from(base, content)
    if plan is None:
        raise ValueError("a plan without content")
    return plan


def _approval(stored: Row) -> ApprovalRecord:
    return ApprovalRecord(
        id=key_text(stored["id"]),
        target_type=stored["target_type"],
        target_id=stored["target_id"],
        decision=stored["decision"],
        created_at=stored["created_at"],
        reason=stored.get("reason"),
    )


def _routing(stored: Row) -> RoutingRecord:
    return RoutingRecord(
        id=key_text(stored["id"]),
        task_type=TaskIntent(stored["task_type"]),
        provider=stored["provider"],
        model=stored["model"],
        reason=stored["reason"],
        created_at=stored["created_at"],
        matched_rule=stored.get("matched_rule"),
        fallback_used=bool(stored.get("fallback_used")),
        override_used=bool(stored.get("override_used")),
    )


def _batches(events: Sequence[Row], payloads: Sequence[Row]) -> Iterable[EventBatch]:
    """Yield the turns' events: the rows of one turn follow each other and share its id."""
    pairs = zip(events, payloads, strict=True)
    for first_id, group in groupby(pairs, key=lambda pair: str(pair[0]["uuid"])):
        rows = list(group)
        if rows[0][0].get("skip"):
            continue  # the begin of that turn was over age and is deleted; its ids are lost with it
        told = [event for pair in rows for event in events_from(*pair)]
        yield EventBatch(
            first=told[0][0],
            first_id=first_id,
            # Their ids follow from the first one's.
            events=tuple(replace(event, id="") for _, event in told),
        )


def copy_unit(copy: SessionCopy) -> Unit:
    """Return the rows of *copy*, the session's own first, so that a torn write can be mended.

    Raises InvalidRequest for what cannot be stored: the document is wrong then, not the store.
    """
    try:
        unit = turn_unit(record_of(copy))
    except Unstorable as error:
        raise InvalidRequest(f"the session cannot be imported: {error}") from None
    own = session_row(copy.session)
    return replace(unit, inserts={"session": [own], **unit.inserts}, session=None, touched=None)


def take_in(unit: Unit) -> tuple[str, dict[str, Any]]:
    """Return the statements that write *unit*, unless its session is there, with their values."""
    (own,) = unit.inserts["session"]
    values: dict[str, Any] = {"own": own["id"]}
    lines = ["IF (SELECT VALUE id FROM $own) { THROW 'the session is there already' }"]
    tables = dict(unit.inserts)
    for row in unit.puts:
        tables[row["id"].table] = [*tables.get(row["id"].table, ()), row]
    for n, (table, rows) in enumerate(tables.items()):
        lines.append(f"INSERT INTO {table} $rows{n} RETURN NONE")
        values[f"rows{n}"] = list(rows)
    return ";".join(lines), values
