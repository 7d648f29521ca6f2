"""How the engine goes about the reads that grow: by ranges of a session, over no whole table."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from smista.core.usage import UsageBy, UsageQuery
from smista.storage import surreal
from smista.storage.bridge import Target
from smista.storage.copies import READ
from smista.storage.rows import key, ref
from smista.storage.spending import spending_text, spending_values
from smista.storage.store import Store, open_plain_store
from smista.storage.surreal import SurrealJournal
from smista.storage.values import LAST
from tests.contract.builders import AT, full_turn, new_session

Work = list[list[dict[str, Any]]]


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    target = Target(url="mem://", namespace="test", database="test")
    async with open_plain_store(target) as store:
        yield store


async def _plans(store: Store, text: str, **values: Any) -> Work:
    """Return the plan of each SELECT in *text*; other statements stay as they are."""
    parts = [part.strip() for part in text.split(";") if part.strip()]
    explained = [f"{part} EXPLAIN" if part.startswith("SELECT") else part for part in parts]
    found = await store.read(";".join(explained), **values)
    return [plan for part, plan in zip(parts, found, strict=True) if part.startswith("SELECT")]


def _reads(plan: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return how the rows of *plan* are come by, and in which table."""
    iterations = (step for step in plan if step["operation"].startswith("Iterate"))
    return [(step["operation"], step["detail"].get("table", "")) for step in iterations]


async def _sessions(store: Store, count: int) -> list[Any]:
    journal = SurrealJournal(store)
    sessions = [await new_session(journal, 40 + n) for n in range(count)]
    for session in sessions:
        await journal.record_turn(full_turn(session))
    return sessions


async def test_a_page_of_the_trace_reads_two_ranges(store: Store):
    (session,) = await _sessions(store, 1)
    values = {"s": key(session.id), "from": 0, "to": 50}
    plans = await _plans(store, surreal._TRACE, **values)
    assert [_reads(plan) for plan in plans] == [
        [("Iterate Range", "trace_event")],
        [("Iterate Range", "trace_event_content")],
    ]


async def test_the_usage_of_a_session_reads_one_range(store: Store):
    (session,) = await _sessions(store, 1)
    (plan,) = await _plans(store, surreal._USAGE, s=key(session.id), last=LAST)
    assert _reads(plan) == [("Iterate Range", "trace_event")]
    assert any(step["detail"].get("type") == "Group" for step in plan)


@pytest.mark.parametrize("by", UsageBy)
async def test_the_usage_of_all_sessions_reads_a_range_of_each(store: Store, by: UsageBy):
    sessions = await _sessions(store, 3)
    query = UsageQuery(by=by, since=AT, until=AT)
    values = spending_values(sessions, query)
    (plan,) = await _plans(store, spending_text(3, query), **values)
    assert _reads(plan) == [("Iterate Range", "trace_event")] * 3
    assert any(step["detail"].get("type") == "Group" for step in plan)


@pytest.mark.parametrize("filters", [{}, {"scope": "/p"}, {"title": "w"}])
async def test_a_users_sessions_are_found_by_their_index(store: Store, filters: dict[str, str]):
    (session,) = await _sessions(store, 1)
    values = {"user": ref("user", session.user_id), **filters}
    (plan,) = await _plans(store, surreal.sessions_text(values), **values)
    assert _reads(plan)[0][0] == "Iterate Index"


async def test_an_export_reads_ranges_alone(store: Store):
    (session,) = await _sessions(store, 1)
    values = {"s": key(session.id), "state": ref("session_run_state", session.id)}
    plans = await _plans(store, READ, **values)
    reads = [read for plan in plans for read in _reads(plan)]
    assert len(reads) == 15
    assert {operation for operation, _ in reads} == {"Iterate Range"}
