"""A router that is killed at any moment: what it acknowledged is there, once, and runs go on."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.core.messages import Continuation
from smista.sdk.client import Client, open_client
from smista.sdk.errors import Unreachable
from smista.storage.bridge import Target
from smista.storage.store import open_directory_store
from tests.e2e.house import COUNTED, PATIENCE, House, Router, done, request

SEED = 20261130
POINTS = 5
DELTAS = COUNTED.count(" ")
WHOLE = [("user", "count"), ("assistant", COUNTED)]
FIX = "fix the typo slowly"


async def rows(house: House, *tables: str) -> dict[str, int]:
    """Return how many rows each of *tables* holds; no router may be running."""
    place = house.home / "db"
    target = Target(url=f"surrealkv://{place / 'data'}", namespace="smista", database="local")
    async with open_directory_store(place, target, durable=True) as store:
        text = "".join(f"SELECT VALUE id FROM {table};" for table in tables)
        found = await store.read(text)
    return {table: len(ids) for table, ids in zip(tables, found, strict=True)}


async def said(client: Client, session_id: str) -> list[tuple[str, str]]:
    kept = await client.session(session_id)
    return [(message.role, message.content["plaintext"]) for message in kept.messages]


@dataclass(frozen=True)
class Interrupt:
    """Kill the router once so many deltas were heard."""

    router: Router
    deltas: int


async def hear(
    client: Client,
    session_id: str,
    message: Continuation,
    key: str,
    interrupt: Interrupt | None = None,
) -> TurnEnd:
    """Send *message* and return how its turn ended."""
    heard, last = 0, None
    async with client.stream_continue(session_id, message, key=key) as stream:
        async for last in stream:
            heard += isinstance(last, TextDeltaEvent)
            if interrupt is not None and heard == interrupt.deltas:
                interrupt.router.kill()
    assert isinstance(last, TurnEnd)
    return last


def restart(router: Router) -> None:
    router.kill()
    router.start()


async def test_the_same_continuation_finishes_a_run_whose_router_was_killed_around_it(
    house: House, open_router: Callable[[House], Router]
) -> None:
    router = open_router(house)
    async with open_client(house.client_config) as client:
        await client.bootstrap()
        session = await client.create_session("killed")
        turn = await client.execute(session.id, request(FIX))
        assert turn.status is Status.AWAITING_TOOL
        asked = turn.data["tool_requests"]
        restart(router)
        paused = (await client.session(session.id)).metadata["run"]
        assert paused["status"] == "awaiting_tool"
        assert paused["data"]["tool_requests"] == asked
        result, key = done(asked), "the same key"
        with pytest.raises(Unreachable):
            await hear(client, session.id, result, key, Interrupt(router, deltas=5))
        router.start()
        ended = await hear(client, session.id, result, key)
        assert ended.status is Status.COMPLETED
        restart(router)
        repeated = await hear(client, session.id, result, key)
        assert repeated.data["message"] == ended.data["message"]
        assert await said(client, session.id) == [
            ("user", FIX),
            ("assistant", "I will mend it. "),
            ("tool", "written"),
            ("assistant", COUNTED),
        ]
        kinds = [event.event_type for event in await client.trace(session.id, limit=200)]
        assert kinds.count("approval") == 1
        assert kinds.count("cost") == 2
    assert router.leave() == 0
    # A result lies with its call, so it is no row of its own.
    assert await rows(house, "session", "session_tool_call", "session_message") == {
        "session": 1,
        "session_tool_call": 1,
        "session_message": 3,
    }


async def _stream_until(
    client: Client, session_id: str, router: Router, deltas: int
) -> TurnEnd | None:
    """Kill the router once *deltas* were heard; return the ending if that came first."""
    heard, ended = 0, None
    try:
        async with client.stream_execute(session_id, request("count")) as stream:
            async for event in stream:
                heard += isinstance(event, TextDeltaEvent)
                ended = event if isinstance(event, TurnEnd) else None
                if heard == deltas:
                    router.kill()
    except Unreachable:
        assert ended is None
    if deltas > DELTAS:
        router.kill()
    return ended


async def test_killed_at_random_points_of_a_stream_nothing_acknowledged_is_lost_or_doubled(
    house: House, open_router: Callable[[House], Router]
) -> None:
    random = Random(SEED)
    router = open_router(house)
    points = [0, DELTAS + 1, *(random.randint(1, DELTAS) for _ in range(POINTS - 2))]
    acknowledged: dict[str, list[tuple[str, str]]] = {}
    async with open_client(house.client_config) as client:
        await client.bootstrap()
        for point in points:
            session = await client.create_session(f"killed after {point}")
            async with trio.open_nursery() as nursery:
                if point == 0:
                    # Not yet a word was said: the request is on its way, or being decided.
                    nursery.start_soon(_expect_no_ending, client, session.id)
                    await wait_all_tasks_blocked()
                    router.kill()
                    ended = None
                else:
                    ended = await _stream_until(client, session.id, router, point)
            router.start()
            before = await said(client, session.id)
            # What was not acknowledged is there as a whole or not at all.
            assert before == WHOLE or (before == [] and ended is None)
            again = await client.execute(session.id, request("go on"))
            assert again.status is Status.COMPLETED
            acknowledged[session.id] = [
                *before,
                ("user", "go on"),
                ("assistant", "You wrote: go on"),
            ]
        for session_id, expected in acknowledged.items():
            assert await said(client, session_id) == expected
    assert router.leave() == 0
    total = sum(len(each) for each in acknowledged.values())
    assert await rows(house, "session", "session_message") == {
        "session": POINTS,
        "session_message": total,
    }


async def _expect_no_ending(client: Client, session_id: str) -> None:
    with pytest.raises(Unreachable):
        await client.execute(session_id, request("never end"))


def test_a_command_whose_router_is_killed_says_so_and_the_next_one_works(
    house: House, open_router: Callable[[House], Router]
) -> None:
    router = open_router(house)
    assert house.run("login").returncode == 0
    with house.begun("never end", mark="it begins") as command:
        router.kill()
        assert command.wait(PATIENCE) == 3
        assert command.stderr is not None
        assert b"error: no router answers at" in command.stderr.read()
    router.start()
    assert house.run("hello").stdout == "You wrote: hello\n"
