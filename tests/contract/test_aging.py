"""What is over age is found and deleted, and nothing else."""

from dataclasses import replace
from datetime import datetime, timedelta

from smista.core.retention import Bounds, Share
from smista.ports.journal import Journal
from tests.contract.builders import AT, OTHER, cost, event, id_of, new_session, turn

DAY = timedelta(days=1)


def _bounds(**given: datetime) -> Bounds:
    return Bounds(**{"events": None, "updated": None, "archived": None, **given})


async def _due(journal: Journal, **bounds: datetime) -> tuple[Share, set[str]]:
    share, sessions = await journal.due_sessions(_bounds(**bounds))
    return share, {session.id for session in sessions}


async def test_sessions_are_due_by_their_last_update_or_by_when_they_were_archived(
    journal: Journal,
):
    old = await new_session(journal, 20, updated_at=AT - DAY)
    await new_session(journal, 21, user_id=OTHER)
    aside = await new_session(journal, 22, updated_at=AT - DAY, archived_at=AT - DAY)
    await new_session(journal, 23, updated_at=AT - 9 * DAY, archived_at=AT)
    assert await _due(journal, updated=AT - DAY) == (Share(due=1, of=4), {old.id})
    assert await _due(journal, archived=AT - DAY) == (Share(due=1, of=4), {aside.id})
    assert await _due(journal, updated=AT, archived=AT - DAY) == (
        Share(due=3, of=4),
        {old.id, id_of(21), aside.id},
    )
    assert await _due(journal) == (Share(due=0, of=4), set())


async def test_a_store_without_sessions_has_nothing_due(journal: Journal):
    assert await _due(journal, updated=AT) == (Share(due=0, of=0), set())
    assert await journal.due_events(AT) == Share(due=0, of=0)
    await journal.drop_events(AT)


async def _told(journal: Journal, number: int, days: int) -> str:
    """Write three turns of two events each, the first *days* before AT and one day apart."""
    session = await new_session(journal, number, created_at=AT - 99 * DAY)
    for n in range(3):
        at = AT - (days - n) * DAY
        events = (event(2 * n, created_at=at), replace(cost(2 * n, cost="1"), created_at=at))
        await journal.record_turn(turn(session, first_event=2 * n, events=events))
    return session.id


async def test_a_trace_begins_with_what_is_left_of_it(journal: Journal):
    aged, young = await _told(journal, 30, days=5), await _told(journal, 31, days=2)
    assert await journal.due_events(AT - 4 * DAY) == Share(due=2, of=6)
    whole = await journal.trace(aged)
    await journal.drop_events(AT - 4 * DAY)
    assert await journal.due_events(AT - 4 * DAY) == Share(due=0, of=4)
    assert await journal.trace(aged) == whole[4:]
    assert await journal.trace(aged, offset=1, limit=1) == whole[5:]
    assert await journal.trace(aged, offset=2) == ()
    assert len(await journal.trace(young)) == 6
    assert [(each.requests, each.cost) for each in await journal.usage(aged)] == [(1, "1")]


async def test_work_goes_on_after_its_begin_was_deleted(journal: Journal):
    aged = await _told(journal, 30, days=5)
    await journal.drop_events(AT)
    assert await journal.trace(aged) == ()
    (session,) = [each for each in await journal.sessions(id_of(1)) if each.id == aged]
    await journal.record_turn(turn(session, first_event=6, events=(event(6),)))
    assert [each.payload["number"] for each in await journal.trace(aged)] == [6]
    copy = await journal.read_out(session)
    assert [len(batch.events) for batch in copy.batches] == [1]
