"""A session deleted in the middle of anything leaves no row behind."""

import random

import pytest
import trio

from smista.core.errors import SmistaError
from tests.actors.house import USER, hear, open_house
from tests.contract.stores import STORES
from tests.fakes import ScriptedProvider, called, said

EDIT = '{"path": "a.txt", "old": "a", "new": "b"}'


@pytest.mark.parametrize("store", STORES)
async def test_a_session_deleted_at_any_point_of_a_turn_leaves_no_row(store):
    chance = random.Random(7)
    scripts = [s for _ in range(200) for s in (called("edit_file", EDIT), said("a", "b"))]
    async with STORES[store]() as kept, open_house(journal=kept.journal) as house:
        for _ in range(200):
            house.provide(ScriptedProvider(*scripts))
            session = await house.directory.create(USER, title="t", scope=None, key_id=None)
            house.session_id = session.id
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_work, house)
                for _ in range(chance.randrange(60)):
                    await trio.lowlevel.checkpoint()
                await house.directory.delete(USER, session.id)
        await house.directory.delete(USER, house.first)
        assert await kept.counts() == {"user": 1}


async def _work(house) -> None:
    """Run a task and answer its tool call, until the session is gone."""
    try:
        end = (await hear(await house.execute("fix it")))[-1]
        if requests := end.data.get("tool_requests"):
            await hear(await house.answer(*map(house.result, requests)))
    except SmistaError as error:
        if error.code not in ("session_not_found", "invalid_request", "run_in_flight"):
            raise
