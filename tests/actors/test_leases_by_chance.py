"""Routers on one store that stall, crash and come back by chance: the session stays one story."""

from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.parts import Durations
from smista.core.errors import RunInFlight
from smista.core.events import Status, TurnEnd
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, House, open_house, request
from tests.actors.leased import Draws, StoreTime
from tests.fakes import ScriptedProvider, said

NAMES = "ab"
DURATIONS = Durations()
ACTIONS = ("execute", "begin", "go on", "break", "preview", "stall", "wait", "crash", "sleep")
steps = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(NAMES)), max_size=25)


class Gated(ScriptedProvider):
    """Answers once its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = trio.Event()

    def shut(self) -> None:
        """Let the next answer wait, behind those that do already."""
        if self.gate.is_set():
            self.gate = trio.Event()

    @asynccontextmanager
    async def open_stream(self, prompt, *, key):
        async with super().open_stream(prompt, key=key) as events:
            await self.gate.wait()
            yield events


@dataclass
class Asked:
    """A task that was taken, and what may come of it."""

    router: str
    reader: object
    whole: list[str]


class Router:
    """One router, able to die and come back under its name."""

    def __init__(self, name: str, rows: dict, time: StoreTime) -> None:
        self.name = name
        self.clock = Draws(name)
        self.provider = Gated()
        self.journal = MemoryJournal(rows, shared=True, now=time.now)
        self.house: House | None = None

    async def run(self, *, task_status=trio.TASK_STATUS_IGNORED) -> None:
        opened = open_house(
            self.provider,
            journal=self.journal,
            clock=self.clock,
            router=self.name,
            durations=DURATIONS,
        )
        with trio.CancelScope() as self.life:
            await self.journal.unlock(router=self.name)
            async with opened as self.house:
                task_status.started()
                await trio.sleep_forever()


class World:
    """Two routers, one session, and what its story must be: what was told as committed."""

    def __init__(self, nursery: trio.Nursery, clock: MockClock) -> None:
        self.nursery, self.clock = nursery, clock
        self.time, self.rows = StoreTime(), {}
        self.routers = {name: Router(name, self.rows, self.time) for name in NAMES}
        self.session_id = ""
        self.asked: list[Asked] = []
        self.story: list[str] = []
        self.count = 0

    async def start(self, router: Router) -> None:
        await self.nursery.start(router.run)
        self.session_id = self.session_id or router.house.session_id
        router.house.session_id = self.session_id

    async def perform(self, action: str, router: Router) -> None:
        match action:
            case "execute":
                router.provider.gate.set()
                await self.execute(router)
            case "begin":
                router.provider.shut()
                await self.execute(router)
            case "go on":
                router.provider.gate.set()
            case "break":
                await self.tell(router, router.house.stop, [])
            case "preview":
                await self.preview(router)
            case "stall":
                self.time.missed += DURATIONS.lease
            case "wait":
                self.clock.jump(DURATIONS.lease_renewal)
            case "sleep":
                self.clock.jump(DURATIONS.idle + 1)
            case "crash":
                await self.crash(router)
        await wait_all_tasks_blocked()
        self.collect()

    async def execute(self, router: Router) -> bool:
        self.count += 1
        text, answer = f"q{self.count}", f"a{self.count}"
        router.provider.scripts.append(said(answer))
        taken = await self.tell(router, partial(router.house.execute, text), [text, answer])
        if not taken:
            router.provider.scripts.pop()
        return taken

    async def tell(self, router: Router, tell, whole: list[str]) -> bool:
        try:
            reader = await tell()
        except RunInFlight:
            return False
        self.asked.append(Asked(router.name, reader, whole))
        return True

    async def preview(self, router: Router) -> None:
        decision = await router.house.directory.preview(
            USER, self.session_id, request("what if"), {}
        )
        assert [m.text for m in decision.prompt.messages] == [*self.story, "what if"]

    async def crash(self, router: Router) -> None:
        router.life.cancel()
        await wait_all_tasks_blocked()
        self.asked = [each for each in self.asked if each.router != router.name]
        router.provider.scripts.clear()
        await self.start(router)

    def collect(self) -> None:
        for each in list(self.asked):
            events = each.reader.ready()
            if events and isinstance(events[-1], TurnEnd):
                self.asked.remove(each)
                self.tell_on(each, events[-1])

    def tell_on(self, asked: Asked, ending: TurnEnd) -> None:
        match ending.status:
            case Status.COMPLETED:
                self.story += asked.whole
            case Status.IDLE:
                self.story += asked.whole[:1]
            case _:
                assert ending.error.retryable

    async def check(self) -> None:
        house = self.routers["a"].house
        assert [m.text for m in (await house.state()).messages] == self.story
        tables = Counter(ref.table for ref in self.rows)
        assert tables["session_message"] == tables["session_message_content"] == len(self.story)


async def live(given_steps: list[tuple[str, str]], clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        world = World(nursery, clock)
        for router in world.routers.values():
            await world.start(router)
        for action, name in given_steps:
            await world.perform(action, world.routers[name])
            await world.check()
        for name in NAMES:
            await world.perform("go on", world.routers[name])
        await world.perform("stall", world.routers["a"])
        for router in world.routers.values():
            router.provider.gate.set()
            assert await world.execute(router)
            await wait_all_tasks_blocked()
            world.collect()
            await world.check()
        assert not world.asked
        nursery.cancel_scope.cancel()


@settings(max_examples=150, deadline=None)
@given(steps)
def test_what_was_told_as_done_is_the_story_whatever_happens(given_steps):
    clock = MockClock()
    trio.run(live, given_steps, clock, clock=clock)
