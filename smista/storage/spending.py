"""Usage over many sessions: the query that sums in the database, and the sums it gives. Pure.

Each session's trace is a bounded range of its own. The database sums the packed rows, which hold
the sums of their cost events; here only the few groups it returns are put together.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from smista.core.model_ref import plain
from smista.core.records import Session
from smista.core.usage import UsageBy, UsageQuery
from smista.ports.journal import UsageSum
from smista.storage.packing import TOKENS
from smista.storage.rows import Row, key, key_text, ref
from smista.storage.values import LAST

RANGES: Final = 100
"""How many sessions one statement sums: each adds a range to its text."""

# An alias of a function needs its expression in the selection only.
_GROUPS: Final = {
    UsageBy.MODEL: ("cost_provider, cost_model", "cost_provider, cost_model"),
    UsageBy.INTENT: ("task_type", "task_type"),
    UsageBy.DAY: ("time::floor(created_at, 1d) AS day", "day"),
    UsageBy.PROJECT: ("session", "session"),
}
# What was never reported is told by its greatest value: counting costs the engine twice as much.
SUMS: Final = ", ".join(
    f"math::sum({name} ?? 0) AS {name}, math::max({name} ?? -1) AS {name}_most"
    for name in (*TOKENS, "cost")
)
_Group = tuple[str | None, ...]


def spending_text(sessions: int, query: UsageQuery) -> str:
    """Return the statements that sum *sessions* traces, RANGES to a statement."""
    firsts = range(0, sessions, RANGES)
    return ";".join(_statement(range(n, min(n + RANGES, sessions)), query) for n in firsts)


def _statement(numbers: Iterable[int], query: UsageQuery) -> str:
    selected, grouped = _GROUPS[query.by]
    ranges = ", ".join(f"trace_event:[$s{n}, 0]..[$s{n}, $last]" for n in numbers)
    since = "" if query.since is None else " AND created_at >= $since"
    until = "" if query.until is None else " AND created_at < $until"
    return (
        f"SELECT {selected}, math::sum(requests) AS requests, {SUMS} FROM {ranges} "
        f"WHERE requests > 0{since}{until} GROUP BY {grouped}"
    )


def spending_values(sessions: Sequence[Session], query: UsageQuery) -> dict[str, Any]:
    """Return what the statements of `spending_text` are bound to."""
    bounds = {"last": LAST, "since": query.since, "until": query.until}
    return bounds | {f"s{n}": key(session.id) for n, session in enumerate(sessions)}


def spending_from(
    results: Iterable[Sequence[Row]], sessions: Sequence[Session], query: UsageQuery
) -> tuple[UsageSum, ...]:
    """Return the sums of all statements, by group."""
    scopes = {session.id: session.scope for session in sessions}
    groups: dict[_Group, list[Row]] = {}
    for result in results:
        for stored in result:
            groups.setdefault(_group(stored, query.by, scopes), []).append(stored)
    return tuple(_sum(group, groups[group]) for group in sorted(groups, key=_order))


def _group(stored: Row, by: UsageBy, scopes: Mapping[str, str | None]) -> _Group:
    match by:
        case UsageBy.MODEL:
            return stored["cost_provider"], stored["cost_model"]
        case UsageBy.INTENT:
            return (stored["task_type"],)
        case UsageBy.DAY:
            return (stored["day"].date().isoformat(),)
        case UsageBy.PROJECT:
            return (scopes[key_text(stored["session"])],)


def _order(group: _Group) -> tuple[str, ...]:
    return tuple(part or "" for part in group)


def _sum(group: _Group, rows: Sequence[Row]) -> UsageSum:
    tokens = {name: sum(row[name] for row in rows) for name in TOKENS if _known(rows, name)}
    costs = [Decimal(str(row["cost"])) for row in rows]
    cost = plain(sum(costs, Decimal(0))) if _known(rows, "cost") else None
    requests = sum(row["requests"] for row in rows)
    return UsageSum(group=group, requests=requests, cost=cost, **tokens)


def is_known(row: Row, name: str) -> bool:
    """Say if any of the events that *row* sums up reported *name*."""
    return bool(row[f"{name}_most"] >= 0)


def _known(rows: Iterable[Row], name: str) -> bool:
    return any(is_known(row, name) for row in rows)


def spending_in(events: Iterable[Row], sessions: Sequence[Session], query: UsageQuery) -> list[Row]:
    """Return for trace rows at hand what the database would: each is a group of its own."""
    wanted = {ref("session", session.id) for session in sessions}
    return [
        _as_group(row)
        for row in events
        if row["session"] in wanted
        and "requests" in row
        and (query.since is None or row["created_at"] >= query.since)
        and (query.until is None or row["created_at"] < query.until)
    ]


def _as_group(row: Row) -> dict[str, Any]:
    sums = {name: row.get(name, 0) for name in (*TOKENS, "cost")}
    most = {f"{name}_most": row.get(name, -1) for name in (*TOKENS, "cost")}
    return {**row, "day": row["created_at"], **sums, **most}
