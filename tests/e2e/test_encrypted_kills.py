"""Encrypted runs, and a router that is killed in them: what was heard can be sealed, or is served
anew, and in the end all is there as if nothing had been.

SMISTA_KILLS is how often; without it 6 times, and 30 times where CI is set.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from smista.core.events import Status, TurnEnd
from smista.core.messages import (
    ApprovalDecisions,
    Continuation,
    Decrypted,
    DecryptedData,
    SealedData,
    SealedRows,
    ToolResults,
)
from smista.sdk.client import Client
from smista.sdk.errors import Unreachable
from smista.sdk.sealing import Sealer, new_key
from smista.storage.bridge import Target
from smista.storage.store import open_directory_store
from tests.e2e.fate import Fate, Moment, Point, open_watched_client
from tests.e2e.house import House, Router
from tests.e2e.stories import PROVIDERS, STORIES, Story, scripted_model, task
from tests.e2e.stubborn import Said, Stubborn, Words

SEED = 20261130
POINTS = int(os.environ.get("SMISTA_KILLS") or (30 if "CI" in os.environ else 6))
LEFT_OUT = {
    # Here a client gives up what nobody sealed,
    "new input in the middle of a stream",
    "new input instead of a result",
    "a stream is broken off",
    "a pause is broken off",
    "a new task instead of a result",
    # and here it is asked once more after a restart, for the figures are sealed.
    "the price is agreed to",
    "the price is refused",
}


class Sealing(Stubborn):
    """Stubborn in an encrypted session: it opens and seals whatever it is asked to."""

    def __init__(self, client: Client, sealer: Sealer, session_id: str, fate: Fate) -> None:
        super().__init__(client, session_id, fate, Random(SEED))
        self._sealer = sealer
        self._listed: dict[str, str] = {}

    async def say(self, words: Words) -> TurnEnd:
        ending = await self._insist(await self._with_envelopes(words))
        while ending.status is Status.AWAITING_DECRYPT:
            plaintext = await self._sealer.open(ending.data["to_decrypt"])
            opened = Decrypted(data=DecryptedData(plaintext=plaintext))
            ending = await self._insist(await self._with_envelopes(opened))
        if "sealed" in ending.allowed_continuations:
            rows = SealedRows(data=SealedData(encrypted={}))
            assert (await self._insist(await self._with_envelopes(rows))).status is Status.IDLE
        return ending

    async def _insist(self, words: Words) -> TurnEnd:
        key = self._new_key(words)
        while True:
            self.fate.meet(Moment.BETWEEN)
            life = self.fate.life
            try:
                ending = await self._hear(words, key)
            except Unreachable:
                self.fate.revive(life)
            else:
                self._listed = ending.data.get("to_encrypt", {})
                return ending

    async def _with_envelopes(self, words: Words) -> Words:
        match words:
            case ToolResults(data=data):
                own = {f"tool_call:{each.call_id}": each.content for each in data.results}
                return await self._sealed(words, own)
            case ApprovalDecisions() | Decrypted() | SealedRows():
                return await self._sealed(words, {})
            case _:
                return words

    async def _sealed(self, words: Any, own: dict[str, str]) -> Continuation:
        sealed = await self._sealer.seal({**self._listed, **own})
        data = words.data.model_copy(update={"encrypted": sealed})
        told: Continuation = words.model_copy(update={"data": data})
        return told

    async def opened(self) -> Said:
        """Open the whole session as it is stored."""
        detail = await self.client.session(self.session_id)
        texts = await self._sealer.open(
            {each.reference: each.content["encrypted"] for each in detail.messages}
        )
        return [(each.role, _shown(texts[each.reference], each.format)) for each in detail.messages]


def _shown(text: str, form: str | None) -> str:
    if form not in ("calls", "entry"):
        return text
    said = json.loads(text)
    return said["text"] if form == "calls" else said["content"]


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


async def played(story: Story, client: Client, fate: Fate, points: tuple[Point, ...]) -> None:
    """Play *story* in a session of its own, and hold what is stored against it."""
    key = new_key()
    session = await client.create_session("encrypted", key_id=key.key_id)
    hero = Sealing(client, Sealer(key, session.id), session.id, fate)
    with fate.deciding(points):
        await story.play(hero)
        assert (await hero.say(task("hello"))).status is Status.COMPLETED
    if points and not fate.kills:
        fate.strike()
        fate.revive(fate.life)
    said = await hero.opened()
    assert said[: len(story.said)] == story.said
    assert said[-2:] == [("user", "hello"), ("assistant", "You wrote: hello")]
    assert set(hero.by_call.values()) <= {1}
    assert hero.executed == story.executed


async def test_killed_at_any_moment_an_encrypted_run_ends_as_if_nothing_had_been(
    storied: House, open_router: Callable[[House], Router]
) -> None:
    router = open_router(storied)
    random, fate = Random(SEED), Fate(router)
    stories = [story for story in STORIES if story.name not in LEFT_OUT]
    async with open_watched_client(router.house.client_config, fate) as client:
        await client.bootstrap()
        for n in range(POINTS):
            story = stories[n % len(stories)]
            await played(story, client, fate, ())
            usual = dict(fate.passed)
            moment = random.choice([each for each in Moment if usual.get(each)])
            await played(story, client, fate, (Point(moment, random.randint(1, usual[moment])),))
    assert router.leave() == 0
    await check_store(storied)


async def check_store(house: House) -> None:
    """No row of a lost turn is left, and no call waits for ever."""
    place = house.home / "db"
    target = Target(url=f"surrealkv://{place / 'data'}", namespace="smista", database="local")
    async with open_directory_store(place, target, durable=True) as store:
        inputs, pending, states = await store.read(
            "SELECT VALUE id FROM session_run_input;"
            "SELECT VALUE id FROM session_tool_call WHERE status = 'pending';"
            "SELECT VALUE unsealed FROM session_run_state WHERE unsealed != NONE"
        )
    assert (inputs, pending, states) == ([], [], [])
