"""A run that is redirected and stopped from beside it, on a real router."""

from collections.abc import AsyncIterator
from functools import partial
from random import Random

import pytest
import trio
import trio.testing

from smista.core.events import Event, Status, TextDeltaEvent, TurnEnd
from smista.core.messages import ApprovalDecision, ToolResultEntry
from smista.core.request import ExecuteRequest
from smista.sdk.client import Client, open_client
from smista.sdk.pauses import Approval
from smista.sdk.run import Steering, drive
from tests.e2e.house import PATIENCE, House, request
from tests.e2e.stubborn import Said, said_in

RUNS = 5


class Desk:
    """A host whose tools never end by themselves."""

    def __init__(self) -> None:
        self.text, self.heard, self.busy = "", trio.Event(), trio.Event()
        self.count, self.over, self.bell = 0, False, trio.Event()

    async def show(self, event: Event) -> None:
        self.count += 1
        self.over = isinstance(event, TurnEnd)
        self.bell.set()
        self.bell = trio.Event()
        if isinstance(event, TextDeltaEvent):
            self.text += event.delta
            self.heard.set()

    async def hear(self, more: int) -> None:
        """Wait until so many *more* events were shown, or the run is over."""
        enough = self.count + more
        while self.count < enough and not self.over:
            await self.bell.wait()

    def say(self, line: str) -> None:
        raise AssertionError(line)

    async def run_tools(self, requests: object) -> tuple[ToolResultEntry, ...]:
        self.busy.set()
        await trio.sleep_forever()
        raise AssertionError

    async def decide(self, approval: Approval) -> ApprovalDecision:
        raise AssertionError


class Course:
    """A run in a session of its own, driven by a task of its own."""

    def __init__(self, client: Client, session_id: str) -> None:
        self.client, self.session_id = client, session_id
        self.desk, self.steering = Desk(), Steering()
        self.turn: TurnEnd | None = None

    async def run(self, what: ExecuteRequest, *, stream: bool = True) -> None:
        self.turn = await drive(
            self.client, self.session_id, what, self.desk, steering=self.steering, stream=stream
        )

    async def said(self) -> Said:
        return said_in(await self.client.session(self.session_id))


@pytest.fixture
async def course(shared: House) -> AsyncIterator[Course]:
    async with open_client(shared.client_config) as client:
        await client.bootstrap()
        session = await client.create_session("steered")
        yield Course(client, session.id)


async def test_input_replaces_what_is_said_and_then_a_stop_ends_it(course: Course) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(course.run, request("never end"))
            await course.desk.heard.wait()
            assert await course.steering.inject("never end, again")
            await course.steering.stop()
    assert course.turn is not None
    assert course.turn.status is Status.IDLE
    assert not await course.steering.inject("too late")
    # The second answer may have begun before it was stopped.
    said = await course.said()
    assert said[:3] == [
        ("user", "never end"),
        ("assistant", "it begins "),
        ("user", "never end, again"),
    ]
    assert course.desk.text.startswith("it begins ")


async def test_input_replaces_the_tools_that_run(course: Course) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(course.run, request("fix the typo"))
            await course.desk.busy.wait()
            assert await course.steering.inject("what is that?")
    assert course.turn is not None
    assert course.turn.status is Status.COMPLETED
    assert course.turn.data["message"]["content"] == "You wrote: what is that?"


async def test_a_stop_ends_the_tools_that_run(course: Course) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(course.run, request("fix the typo"))
            await course.desk.busy.wait()
            await course.steering.stop()
    assert course.turn is not None
    assert course.turn.status is Status.IDLE


async def test_a_run_without_streams_is_steered_as_well(course: Course) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(course.run, request("never end"), stream=False))
            await trio.testing.wait_all_tasks_blocked()
            assert await course.steering.inject("what is that?")
    assert course.turn is not None
    assert course.turn.status is Status.COMPLETED


async def test_a_stop_before_the_first_word_is_heard(course: Course) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(course.run, request("never end"))
            await trio.testing.wait_all_tasks_blocked()
            await course.steering.stop()
    assert course.turn is not None
    assert course.turn.status is Status.IDLE


@pytest.mark.parametrize("seed", range(RUNS))
async def test_whenever_input_comes_it_is_said_or_given_back(course: Course, seed: int) -> None:
    """Around the end of a turn above all, which says 40 words."""
    chance = Random(seed)
    taken: list[str] = []

    async def steer() -> None:
        await course.desk.heard.wait()
        for number in range(3):
            await course.desk.hear(chance.randint(0, 42))
            if await course.steering.inject(f"count {number}"):
                taken.append(f"count {number}")
        if chance.random() < 0.5:
            await course.steering.stop()

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(course.run, request("count"))
            await steer()
    assert course.turn is not None
    assert course.turn.status in (Status.COMPLETED, Status.IDLE)
    said = [text for role, text in await course.said() if role == "user"]
    assert said == ["count", *taken]
