"""Runs with tools, questions, plans and new input, and a router that is killed in all of them.

SMISTA_KILLS is how often; without it 8 times, and 40 times where CI is set.
"""

import json
import logging
import os
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from smista.core.events import Status
from smista.sdk.answers import TraceEntry
from smista.sdk.client import Client
from smista.storage.bridge import Target
from smista.storage.store import open_directory_store
from tests.e2e.fate import Fate, Moment, Point, open_watched_client
from tests.e2e.house import House, Router
from tests.e2e.stories import PROVIDERS, STORIES, Story, scripted_model, task
from tests.e2e.stubborn import Stubborn, roles, said_in

_log = logging.getLogger(__name__)

SEED = 20261130
POINTS = int(os.environ.get("SMISTA_KILLS") or (40 if "CI" in os.environ else 8))
AGAIN = 3
"""At one point of so many the router is killed once more, while its clients come back."""

SIDE_BY_SIDE = 3
"""So many runs are served at once at every other point."""

LAST_WORDS = [("user", "hello"), ("assistant", "You wrote: hello")]
PAGE = 200
_UUID = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
_COUNTED = (
    "session_message",
    "session_tool_call",
    "session_diff",
    "session_approval",
    "session_plan",
    "context_memory",
    "context_memory_content",
    "idempotency_record",
)


@dataclass
class Tale:
    """What one run was, and what its client knows of it."""

    story: Story
    session_id: str
    points: tuple[Point, ...] = ()
    rows: Counter[str] = field(default_factory=Counter)
    events: int = 0

    def __str__(self) -> str:
        return f"{self.story.name}, session {self.session_id}, killed at {self.points}"


@dataclass
class Teller:
    """Has stories played; *usual* is each one's way without a kill."""

    client: Client
    fate: Fate
    random: Random
    usual: dict[str, tuple[Counter[Moment], list[Any]]] = field(default_factory=dict)

    async def rehearse(self, story: Story) -> Tale:
        """Play *story* in peace, and remember its moments and its trace."""
        with self.fate.deciding(()):
            (run,) = await self._play([story], ())
        passed = Counter(self.fate.passed)
        self.usual[story.name] = passed, await self._check(*run)
        return run[0]

    async def kill(self, stories: Sequence[Story], *, again: bool) -> list[Tale]:
        """Play *stories* at the same time, with a kill at a moment that chance picks."""
        points = [self._point(stories)]
        if again:
            points.append(Point(self.random.choice(list(Moment)), self.random.randint(1, 2)))
        with self.fate.deciding(points):
            runs = await self._play(stories, tuple(points))
            if not self.fate.kills:
                self.fate.strike()
        for tale, hero in runs:
            told = await self._check(tale, hero)
            if not hero.restated:
                assert told == self.usual[tale.story.name][1]
        return [tale for tale, _ in runs]

    def _point(self, stories: Sequence[Story]) -> Point:
        usual = sum((self.usual[story.name][0] for story in stories), Counter[Moment]())
        moment = self.random.choice([each for each in Moment if usual[each]])
        return Point(moment, self.random.randint(1, usual[moment]))

    async def _play(
        self, stories: Sequence[Story], points: tuple[Point, ...]
    ) -> list[tuple[Tale, Stubborn]]:
        runs = [await self._begin(story, points) for story in stories]
        async with trio.open_nursery() as nursery:
            for tale, hero in runs:
                nursery.start_soon(tale.story.play, hero)
        return runs

    async def _begin(self, story: Story, points: tuple[Point, ...]) -> tuple[Tale, Stubborn]:
        session = await self.client.create_session(story.name)
        tale = Tale(story, session.id, points)
        _log.info("%s", tale)
        # A choice of its own: the order in which heroes ask for one is not ours to decide.
        random = Random(self.random.getrandbits(64))
        return tale, Stubborn(self.client, session.id, self.fate, random)

    async def _check(self, tale: Tale, hero: Stubborn) -> list[Any]:
        """Give the session a last task; return what the API then tells, held against the story."""
        assert (await hero.say(task("hello"))).status is Status.COMPLETED
        story, kept = tale.story, await hero.fetch()
        assert said_in(kept) == [*story.said, *LAST_WORDS]
        assert "run" not in kept.metadata
        assert hero.executed == story.executed
        assert set(hero.by_call.values()) <= {1}
        trace = await self._trace(tale.session_id)
        _check_events(story, trace)
        usage = await self.client.usage(tale.session_id)
        assert sum(row["request_count"] for row in usage["by_model"]) == story.model_calls + 1
        tale.events, tale.rows = len(trace), _rows_of(story, hero)
        return [usage, *map(_told, trace)]

    async def _trace(self, session_id: str) -> tuple[TraceEntry, ...]:
        events = await self.client.trace(session_id, limit=PAGE)
        assert len(events) < PAGE
        return events


def _check_events(story: Story, trace: tuple[TraceEntry, ...]) -> None:
    kinds = Counter(event.event_type for event in trace)
    said = [*story.said, *LAST_WORDS]
    assert kinds["message"] == roles(said, "user") + roles(said, "assistant")
    assert kinds["cost"] == story.model_calls + 1
    assert kinds["approval"] == story.approvals
    # One that was asked for, one that was answered.
    assert kinds["tool_call"] == 2 * story.calls


def _told(event: TraceEntry) -> Any:
    """Return *event* without what differs each time: ids and times."""
    body = event.model_dump(mode="json", exclude={"created_at"})
    return json.loads(_UUID.sub("*", json.dumps(body)))


def _rows_of(story: Story, hero: Stubborn) -> Counter[str]:
    said = [*story.said, *LAST_WORDS]
    return Counter(
        {
            "session_message": roles(said, "user") + roles(said, "assistant"),
            "session_tool_call": story.calls,
            "session_diff": story.diffs,
            "session_approval": story.approvals,
            "session_plan": story.plans,
            "context_memory": story.facts,
            "context_memory_content": story.facts,
            "idempotency_record": hero.spoken,
        }
    )


@pytest.fixture(scope="module")
def model_of_stories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with scripted_model(tmp_path_factory.mktemp("stories")) as url:
        yield url


@pytest.fixture
def storied(tmp_path: Path, model_of_stories: str) -> House:
    house = House(folder=tmp_path, model=model_of_stories)
    more = PROVIDERS.format(model=model_of_stories)
    house.router_file.write_text(house.router_file.read_text() + more)
    return house


@asynccontextmanager
async def open_teller(router: Router) -> AsyncGenerator[Teller]:
    fate = Fate(router)
    async with open_watched_client(router.house.client_config, fate) as client:
        await client.bootstrap()
        yield Teller(client, fate, Random(SEED))


async def test_killed_at_any_moment_a_run_ends_as_if_nothing_had_been(
    storied: House, open_router: Callable[[House], Router]
) -> None:
    router = open_router(storied)
    async with open_teller(router) as teller:
        stories = list(STORIES)
        teller.random.shuffle(stories)
        tales = [await teller.rehearse(story) for story in stories[: POINTS * SIDE_BY_SIDE]]
        turn = cycle(stories)
        for n in range(POINTS):
            # One after the other, or at once: then a kill meets writes that go together.
            cast = list(islice(turn, SIDE_BY_SIDE if n % 2 else 1))
            tales += await teller.kill(cast, again=n % AGAIN == 0)
    assert router.leave() == 0
    await check_store(storied, tales)


async def check_store(house: House, tales: list[Tale]) -> None:
    """Count the rows that the router has left; there is nothing but what it acknowledged."""
    place = house.home / "db"
    target = Target(url=f"surrealkv://{place / 'data'}", namespace="smista", database="local")
    async with open_directory_store(place, target, durable=True) as store:
        found = await store.read(
            "".join(f"SELECT VALUE id FROM {table};" for table in _COUNTED)
            + "SELECT id, count FROM trace_event; SELECT VALUE id FROM session_run_input"
        )
    *tables, packs, inputs = found
    assert inputs == []
    rows = Counter(
        (str(ref.key[0]), name) for name, ids in zip(_COUNTED, tables, strict=True) for ref in ids
    )
    expected = Counter({(t.session_id, name): n for t in tales for name, n in t.rows.items()})
    assert +rows == +expected, "\n".join(map(str, tales))
    _check_packs(packs, tales)


def _check_packs(packs: list[dict[str, Any]], tales: list[Tale]) -> None:
    """The positions of a session's events have no gap and no overlap."""
    ends: dict[str, int] = {}
    for pack in sorted(packs, key=lambda pack: pack["id"].key[1]):
        session_id, first = str(pack["id"].key[0]), pack["id"].key[1]
        assert ends.get(session_id, 0) == first
        ends[session_id] = first + pack["count"]
    assert ends == {tale.session_id: tale.events for tale in tales}
