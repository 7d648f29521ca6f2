"""The sweep: what is over age goes, and a clock in doubt deletes nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.retention import sweep
from smista.core.errors import RunInFlight, StorageUnavailable
from smista.core.records import Session
from smista.core.retention import Retention, Share, jumped
from smista.storage.memory import MemoryJournal

START = datetime(2026, 6, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
POLICY = Retention(trace_days=90, session_days=30, archived_days=7)


class Store(MemoryJournal):
    """A journal that deletes sessions like the directory, or refuses to."""

    def __init__(self) -> None:
        super().__init__()
        self.held: set[str] = set()
        self.broken = False

    async def delete(self, user_id: str, session_id: str) -> None:
        if session_id in self.held:
            raise RunInFlight("it is served elsewhere")
        await self.delete_session(session_id)

    async def due_sessions(self, bounds):
        if self.broken:
            raise StorageUnavailable("the disk is full")
        return await super().due_sessions(bounds)

    async def add(self, *ages: timedelta, **more) -> None:
        for age in ages:
            number = len(await self.sessions("u"))
            at = START - age
            made = Session(
                id=f"s{number}", user_id="u", title="t", created_at=at, updated_at=at, **more
            )
            await self.create_session(made)

    async def left(self) -> int:
        return len(await self.sessions("u"))


class Time:
    """A wall clock beside Trio's own; *off* is how wrong it is."""

    def __init__(self, clock: MockClock) -> None:
        self._clock = clock
        self._begun = clock.current_time()
        self.off = timedelta()

    def now(self) -> datetime:
        passed = self._clock.current_time() - self._begun
        return START + timedelta(seconds=passed) + self.off

    async def after(self, passed: timedelta) -> None:
        for _ in range(int(passed / HOUR)):
            await wait_all_tasks_blocked()
            self._clock.jump(3600.0)
        await wait_all_tasks_blocked()


@asynccontextmanager
async def sweeping(clock: MockClock, policy: Retention = POLICY) -> AsyncIterator:
    store, time = Store(), Time(clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(sweep, store, store, policy, every=3600.0, now=time.now))
        yield store, time
        nursery.cancel_scope.cancel()


async def test_what_is_over_age_goes_with_the_next_sweep(mock_clock: MockClock):
    async with sweeping(mock_clock) as (store, time):
        await store.add(31 * DAY, 29 * DAY, DAY)
        await store.add(8 * DAY, archived_at=START - 8 * DAY)
        await store.add(8 * DAY, archived_at=START - 6 * DAY)
        assert await store.left() == 5
        await time.after(HOUR)
        assert await store.left() == 3
        await time.after(DAY + HOUR)
        assert await store.left() == 1


async def test_zero_days_keep_for_ever(mock_clock: MockClock):
    forever = Retention(trace_days=0, session_days=0, archived_days=0)
    async with sweeping(mock_clock, forever) as (store, time):
        await store.add(9999 * DAY)
        await store.add(9999 * DAY, archived_at=START - 9999 * DAY)
        await time.after(2 * HOUR)
        assert await store.left() == 2


@pytest.mark.parametrize("jump", [365 * DAY, -365 * DAY])
async def test_a_clock_that_jumps_deletes_nothing_for_a_day(mock_clock: MockClock, jump):
    async with sweeping(mock_clock) as (store, time):
        await store.add(DAY)
        time.off = jump
        await time.after(23 * HOUR)
        assert await store.left() == 1
        time.off = timedelta()
        await time.after(30 * HOUR)
        assert await store.left() == 1


async def test_a_clock_that_stays_where_it_jumped_to_is_believed_in_the_end(mock_clock: MockClock):
    async with sweeping(mock_clock) as (store, time):
        await store.add(DAY)
        time.off = 365 * DAY
        await time.after(26 * HOUR)
        assert await store.left() == 0


async def test_when_much_is_due_at_once_it_waits_a_day(mock_clock: MockClock):
    async with sweeping(mock_clock) as (store, time):
        await store.add(*[31 * DAY] * 15, *[DAY] * 15)
        await time.after(23 * HOUR)
        assert await store.left() == 30
        await time.after(3 * HOUR)
        assert await store.left() == 15


async def test_all_there_is_waits_a_day_too_however_little_it_is(mock_clock: MockClock):
    async with sweeping(mock_clock) as (store, time):
        await store.add(31 * DAY)
        await time.after(23 * HOUR)
        assert await store.left() == 1
        await time.after(3 * HOUR)
        assert await store.left() == 0


async def test_a_session_in_use_elsewhere_is_left_for_later(mock_clock: MockClock):
    async with sweeping(mock_clock) as (store, time):
        await store.add(31 * DAY, 31 * DAY, DAY)
        store.held = {"s0"}
        await time.after(HOUR)
        assert await store.left() == 2
        store.held.clear()
        await time.after(HOUR)
        assert await store.left() == 1


async def test_a_store_out_of_reach_is_asked_again(mock_clock: MockClock):
    async with sweeping(mock_clock) as (store, time):
        await store.add(31 * DAY, DAY)
        store.broken = True
        await time.after(HOUR)
        assert await store.left() == 2
        store.broken = False
        await time.after(HOUR)
        assert await store.left() == 1


@pytest.mark.parametrize(
    ("due", "of", "doubtful"),
    [
        (0, 0, False),
        (9, 10, False),
        (10, 10, True),
        (11, 11, True),
        (11, 55, False),
        (12, 55, True),
    ],
)
def test_many_at_once_or_all_there_is_are_doubtful_and_a_handful_is_not(due, of, doubtful):
    assert Share(due=due, of=of).doubtful is doubtful


def test_a_clock_jumps_if_it_is_a_day_off_steady_time():
    assert not jumped(25 * HOUR, HOUR)
    assert jumped(26 * HOUR, HOUR)
    assert jumped(-24 * HOUR, HOUR)


def test_more_days_than_there_have_been_dates_keep_for_ever():
    bounds = Retention(trace_days=10**12, session_days=800_000, archived_days=1).bounds(START)
    assert (bounds.events, bounds.updated) == (None, None)
    assert bounds.archived == START - DAY
