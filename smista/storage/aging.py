"""Queries for what is over age. A session's trace is in the order of its time, so one look at its
first row tells whether there is anything to find.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from smista.core.records import Session
from smista.core.retention import Bounds
from smista.storage.rows import Row, key
from smista.storage.values import LAST, Ref

DUE: Final = """
SELECT * FROM session WHERE
    (archived_at = NONE AND $updated != NONE AND updated_at <= $updated)
    OR (archived_at != NONE AND $archived != NONE AND archived_at <= $archived);
SELECT count() FROM session GROUP ALL;
"""
OLD_SESSIONS: Final = "SELECT VALUE id FROM session WHERE created_at <= $before"
ALL_EVENTS: Final = "SELECT count() FROM trace_event GROUP ALL"
DROP: Final = """
DELETE $rows RETURN NONE;
DELETE $contents RETURN NONE;
UPSERT $vacuum CONTENT { wanted: true } RETURN NONE
"""
MANY: Final = 100
"""How many sessions one read looks at."""
ROWS: Final = 1_000
"""How many rows one transaction deletes."""


def is_due(session: Session, bounds: Bounds) -> bool:
    if session.archived_at is not None:
        return bounds.archived is not None and session.archived_at <= bounds.archived
    return bounds.updated is not None and session.updated_at <= bounds.updated


def first_text(count: int) -> str:
    """Return the statements that look at the first trace row of *count* sessions."""
    return ";".join(
        f"SELECT id, created_at FROM trace_event:[$s{n}, 0]..[$s{n}, $last] LIMIT 1"
        for n in range(count)
    )


def old_text(count: int) -> str:
    """Return the statements that find the old trace rows of *count* sessions."""
    return ";".join(
        f"SELECT VALUE id FROM trace_event:[$s{n}, 0]..[$s{n}, $last] WHERE created_at <= $before"
        for n in range(count)
    )


def session_values(sessions: Iterable[Ref]) -> dict[str, Any]:
    return {"last": LAST} | {f"s{n}": each.key for n, each in enumerate(sessions)}


def contents_of(rows: Sequence[Ref]) -> list[Ref]:
    return [Ref("trace_event_content", each.key) for each in rows]


def begins(stored: Iterable[Row], session_id: str) -> int:
    """Return where the trace of a session begins, of trace rows at hand."""
    own = (row["id"].key for row in stored)
    return min((n for session, n in own if session == key(session_id)), default=0)
