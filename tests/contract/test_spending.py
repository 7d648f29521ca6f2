"""Usage over all sessions: what was spent, by model, intent, day and project, and by whom."""

from dataclasses import replace
from datetime import timedelta

import pytest

from smista.core.intents import TaskIntent
from smista.core.records import EventType
from smista.core.usage import UsageBy, UsageQuery
from smista.ports.journal import Journal, UsageSum
from smista.storage import spending
from tests.contract.builders import AT, ENVELOPE, OTHER, USER, cost, event, id_of, new_session, turn

DAY = timedelta(days=1)


async def _spend(journal: Journal, session, first_event: int, *events) -> None:
    await journal.record_turn(turn(session, first_event=first_event, events=events))


async def _spent(journal: Journal, user: str = USER, **query) -> dict:
    sums = await journal.spending(user, UsageQuery(**query))
    return {each.group: (each.requests, each.input_tokens, each.cost) for each in sums}


@pytest.fixture
async def spent(journal: Journal) -> Journal:
    """Three sessions of one user in two projects over two days, and one of another user."""
    first = await new_session(journal, 10, scope="/a")
    second = await new_session(journal, 11, scope="/b", created_at=AT - DAY)
    third = await new_session(journal, 12, archived_at=AT)
    theirs = await new_session(journal, 13, user_id=OTHER, scope="/a")
    edit = {"task_type": TaskIntent.EDIT}
    await _spend(journal, first, 0, cost(0, input_tokens=3, cost="0.1"), event(1))
    await _spend(journal, first, 2, cost(2, input_tokens=4, cost="0.25"))
    late = cost(0, input_tokens=5, cost="1", provider="openai", model="g")
    await _spend(journal, second, 0, _at(late, -DAY, **edit))
    await _spend(journal, third, 0, cost(3))
    await _spend(journal, theirs, 0, cost(0, input_tokens=1000, cost="1000"))
    return journal


def _at(event_, shift: timedelta, **changes):
    return replace(event_, created_at=event_.created_at + shift, **changes)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (UsageBy.MODEL, {("ollama", "m"): (3, 7, "0.35"), ("openai", "g"): (1, 5, "1")}),
        (UsageBy.INTENT, {("chat",): (3, 7, "0.35"), ("edit",): (1, 5, "1")}),
        (UsageBy.DAY, {("2026-11-29",): (1, 5, "1"), ("2026-11-30",): (3, 7, "0.35")}),
        (
            UsageBy.PROJECT,
            {(None,): (1, None, None), ("/a",): (2, 7, "0.35"), ("/b",): (1, 5, "1")},
        ),
    ],
)
async def test_what_a_user_spent_is_summed_by_what_is_asked(spent: Journal, by, expected):
    assert await _spent(spent, by=by) == expected


async def test_a_window_of_time_is_closed_at_its_begin_and_open_at_its_end(spent: Journal):
    assert await _spent(spent, since=AT) == {("ollama", "m"): (3, 7, "0.35")}
    assert await _spent(spent, until=AT) == {("openai", "g"): (1, 5, "1")}
    assert await _spent(spent, since=AT, until=AT + timedelta(milliseconds=1)) == {
        ("ollama", "m"): (1, 3, "0.1")
    }


async def test_one_project_is_told_alone(spent: Journal):
    assert await _spent(spent, scope="/a") == {("ollama", "m"): (2, 7, "0.35")}
    assert await _spent(spent, scope="/nowhere") == {}


async def test_another_users_costs_are_theirs(spent: Journal):
    assert await _spent(spent, OTHER) == {("ollama", "m"): (1, 1000, "1000")}
    assert await _spent(spent, id_of(99)) == {}


async def test_what_was_deleted_is_counted_no_more(spent: Journal):
    await spent.delete_session(id_of(10))
    assert await _spent(spent, scope="/a") == {}


async def test_more_sessions_than_fit_a_statement_are_summed_all_the_same(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spending, "RANGES", 2)
    for number in range(5):
        session = await new_session(journal, 20 + number, scope=f"/{number % 2}")
        await _spend(journal, session, 0, cost(number, input_tokens=1, cost="0.1"))
    (whole,) = await journal.spending(USER, UsageQuery())
    assert whole == UsageSum(group=("ollama", "m"), requests=5, input_tokens=5, cost="0.5")
    assert await _spent(journal, by=UsageBy.PROJECT) == {
        ("/0",): (3, 3, "0.3"),
        ("/1",): (2, 2, "0.2"),
    }


async def test_calls_of_an_encrypted_session_are_counted_without_figures(journal: Journal):
    session = await new_session(journal, 30, key_id=ENVELOPE.key_id)
    await _spend(journal, session, 0, event(0, EventType.COST, payload=ENVELOPE))
    assert await _spent(journal) == {("ollama", "m"): (1, None, None)}
