"""Two routers on one store: only one serves a session, and who stalled writes nothing more."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import trio

from smista.core.errors import LeaseLost, StorageError
from smista.core.records import RunState, Session
from smista.ports.journal import Journal
from smista.storage.bridge import Target
from smista.storage.memory import MemoryJournal
from smista.storage.rows import Row
from smista.storage.store import open_plain_store
from smista.storage.surreal import SurrealJournal, open_surreal
from smista.storage.values import Ref
from tests.contract.builders import AT, full_turn, id_of, new_session, said, turn
from tests.storage.serving import serving


@dataclass(frozen=True)
class Pair:
    """Two journals over one store, as two routers have them."""

    one: Journal
    other: Journal


@asynccontextmanager
async def in_memory() -> AsyncIterator[Pair]:
    rows: dict[Ref, Row] = {}
    yield Pair(MemoryJournal(rows, shared=True), MemoryJournal(rows, shared=True))


@asynccontextmanager
async def on_surreal() -> AsyncIterator[Pair]:
    async with open_plain_store(Target(url="mem://", namespace="t", database="t")) as store:
        yield Pair(SurrealJournal(store, alone=False), SurrealJournal(store, alone=False))


@asynccontextmanager
async def over_sockets() -> AsyncIterator[Pair]:
    with serving() as port:
        url = f"ws://127.0.0.1:{port}/rpc"
        async with open_surreal(url) as one, open_surreal(url) as other:
            yield Pair(one, other)


PAIRS: dict[str, Callable[[], Any]] = {
    "memory": in_memory,
    "surreal": on_surreal,
    "sockets": over_sockets,
}


@pytest.fixture(params=PAIRS)
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    async with PAIRS[request.param]() as opened:
        yield opened


async def take(journal: Journal, session: Session, router: str, seconds: float = 60) -> int | None:
    return await journal.take_lease(session, router=router, seconds=seconds)


async def test_only_a_store_for_several_routers_asks_for_leases(journal: Journal, pair: Pair):
    assert not journal.shared
    assert pair.one.shared
    assert pair.other.shared


async def test_a_live_lease_keeps_other_routers_out(pair: Pair) -> None:
    session = await new_session(pair.one)
    assert await take(pair.one, session, "a") == 1
    assert await take(pair.other, session, "b") is None
    assert await pair.one.renew_lease(session.id, 1, seconds=60)

    active = (await pair.other.load(session)).run.active
    assert active is not None
    lease = active["lease"]
    assert (lease["router"], lease["number"]) == ("a", 1)
    assert (lease["until"] - active["started_at"]).total_seconds() >= 60


async def test_a_session_under_its_first_lease_is_otherwise_as_new(pair: Pair) -> None:
    session = await new_session(pair.one)
    await take(pair.one, session, "a")
    state = await pair.other.load(session, at=AT)
    assert replace(state.run, active=None, updated_at=None) == RunState(lease=1)
    assert (state.messages, state.input) == ((), None)


async def test_one_of_many_who_take_at_once_has_it(pair: Pair) -> None:
    session = await new_session(pair.one)
    won: dict[str, int | None] = {}

    async def one(router: str, journal: Journal) -> None:
        won[router] = await take(journal, session, router)

    async with trio.open_nursery() as nursery:
        for n in range(20):
            nursery.start_soon(one, f"r{n}", (pair.one, pair.other)[n % 2])
    assert sorted(won.values(), key=str) == [1, *[None] * 19]


async def test_a_lease_given_back_is_free_and_its_number_is_used_up(pair: Pair) -> None:
    session = await new_session(pair.one)
    await take(pair.one, session, "a")
    assert await pair.one.release_lease(session.id, 1)
    assert not await pair.one.release_lease(session.id, 1)
    run = (await pair.one.load(session)).run
    assert (run.active, run.lease) == (None, 2)
    with pytest.raises(LeaseLost):
        await pair.one.record_turn(replace(turn(session), lease=1))
    assert await take(pair.other, session, "b") == 3
    assert not await pair.one.release_lease(session.id, 1)
    assert await take(pair.one, session, "a") is None


async def test_a_turn_gives_its_lease_back_as_it_commits(pair: Pair) -> None:
    session = await new_session(pair.one)
    await take(pair.one, session, "a")
    record = full_turn(session)
    record = replace(record, lease=1, run=replace(record.run, lease=1))
    await pair.one.record_turn(record)
    assert (await pair.other.load(session)).run == record.run

    await pair.one.record_turn(record)
    assert await pair.one.renew_lease(session.id, 1, seconds=60)
    assert (await pair.other.load(session)).run == record.run
    assert await take(pair.other, session, "b") == 2


async def test_who_was_overtaken_writes_nothing(pair: Pair) -> None:
    session = await new_session(pair.one)
    await take(pair.one, session, "a", seconds=0)
    assert await take(pair.other, session, "b") == 2
    assert not await pair.one.renew_lease(session.id, 1, seconds=60)

    ours = turn(session, messages=(said(0, "user", "b's"),), run=RunState(lease=2, messages=1))
    late = turn(session, messages=(said(0, "user", "a's"),), run=RunState(lease=1, messages=1))
    with pytest.raises(LeaseLost) as caught:
        await pair.one.record_turn(replace(late, lease=1))
    assert caught.value.retryable
    await pair.other.record_turn(replace(ours, lease=2))
    with pytest.raises(LeaseLost):
        await pair.one.record_turn(replace(late, lease=1))
    state = await pair.other.load(session)
    assert [m.text for m in state.messages] == ["b's"]
    assert (state.run.lease, state.run.active) == (2, None)


async def test_an_expired_lease_that_nobody_took_is_still_good_for_its_commit(pair: Pair) -> None:
    session = await new_session(pair.one)
    await take(pair.one, session, "a", seconds=0)
    record = turn(session, messages=(said(0, "user", "late"),))
    await pair.one.record_turn(replace(record, lease=1, run=replace(record.run, lease=1)))
    assert len((await pair.other.load(session)).messages) == 1


async def test_a_lost_lease_does_not_take_other_turns_along(pair: Pair) -> None:
    sessions = [await new_session(pair.one, n) for n in range(10, 16)]
    for session in sessions:
        await take(pair.one, session, "a", seconds=0)
    assert await take(pair.other, sessions[3], "b") == 2
    failed: list[str] = []

    async def work(session: Session) -> None:
        record = full_turn(session)
        try:
            await pair.one.record_turn(replace(record, lease=1, run=replace(record.run, lease=1)))
        except LeaseLost:
            failed.append(session.id)

    async with trio.open_nursery() as nursery:
        for session in sessions:
            nursery.start_soon(work, session)
    assert failed == [sessions[3].id]


async def test_a_router_takes_its_own_lease_anew(pair: Pair) -> None:
    session = await new_session(pair.one)
    assert [await take(pair.one, session, "a") for _ in range(3)] == [1, 2, 3]


async def test_a_session_that_is_gone_has_no_lease(pair: Pair) -> None:
    session = await new_session(pair.one)
    await take(pair.one, session, "a")
    await pair.other.delete_session(session.id)
    assert not await pair.one.renew_lease(session.id, 1, seconds=60)
    with pytest.raises(StorageError):
        await pair.one.record_turn(replace(turn(session), lease=1))
    assert await take(pair.one, session, "a") is None
    assert (await pair.one.load(session)).run == RunState()


async def test_a_start_clears_its_own_leases_and_the_expired(pair: Pair) -> None:
    sessions = [await new_session(pair.one, n) for n in (10, 11, 12, 13)]
    await take(pair.one, sessions[0], "a")
    await take(pair.other, sessions[1], "b")
    await take(pair.other, sessions[2], "b", seconds=0)
    assert await pair.one.unlock(router="a") == 2
    assert await pair.one.unlock(router="a") == 0
    held = [(await pair.one.load(each)).run for each in sessions]
    assert [run.active is not None for run in held] == [False, True, False, False]
    assert [run.lease for run in held] == [2, 1, 2, 0]
    with pytest.raises(LeaseLost):
        await pair.other.record_turn(replace(turn(sessions[2]), lease=1))
    assert await take(pair.one, sessions[2], "a") == 3


async def test_a_turn_without_a_lease_needs_none(journal: Journal) -> None:
    session = await new_session(journal)
    await journal.record_turn(turn(session, run=RunState(run_id=id_of(100), updated_at=AT)))
    assert (await journal.load(session)).run.lease == 0
