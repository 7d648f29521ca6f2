"""A router that dies in the middle of an encrypted run: its client brings the run on."""

from collections.abc import AsyncIterator, Callable

import pytest
import trio

from smista.core.events import Event, Status, ToolRequest, TurnEnd
from smista.core.messages import ApprovalDecision, ToolResultEntry
from smista.sdk.client import Client, open_client
from smista.sdk.errors import ApiError
from smista.sdk.opening import open_messages
from smista.sdk.pauses import Approval
from smista.sdk.run import drive
from smista.sdk.sealing import Sealer, new_key
from tests.e2e.house import PATIENCE, House, Router, request


class Saboteur:
    """A host that kills the router, and starts it again, at each *moment* it was told of."""

    def __init__(self, router: Router, *moments: Status) -> None:
        self._router = router
        self._moments = list(moments)

    async def show(self, event: Event) -> None:
        if isinstance(event, TurnEnd) and event.status in self._moments:
            self._moments.remove(event.status)
            await trio.to_thread.run_sync(self._router.kill)
            await trio.to_thread.run_sync(self._router.start)

    def say(self, line: str) -> None:
        raise AssertionError(line)

    async def run_tools(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolResultEntry, ...]:
        return tuple(
            ToolResultEntry(call_id=each.call_id, content="written", decision="approved")
            for each in requests
        )

    async def decide(self, approval: Approval) -> ApprovalDecision:
        raise AssertionError(approval)


@pytest.fixture
async def client(house: House, own: Router) -> AsyncIterator[Client]:
    async with open_client(house.client_config) as client:
        await client.bootstrap()
        yield client


@pytest.fixture
def own(house: House, open_router: Callable[[House], Router]) -> Router:
    return open_router(house)


@pytest.mark.parametrize("moment", [Status.AWAITING_TOOL, Status.COMPLETED])
async def test_what_was_shown_is_stored_though_the_router_died_before(
    client: Client, own: Router, moment: Status
) -> None:
    key = new_key()
    session = await client.create_session("2026-11-30 p", key_id=key.key_id)
    sealer, host = Sealer(key, session.id), Saboteur(own, moment)
    with trio.fail_after(2 * PATIENCE):
        turn = await drive(client, session.id, request("fix the typo"), host, seal=sealer)
    assert turn.status is Status.COMPLETED
    messages = (await client.session(session.id)).messages
    said = [(m.role, m.content["plaintext"]) for m in await open_messages(sealer, messages)]
    assert said == [
        ("user", "fix the typo"),
        ("assistant", "I will mend it. "),
        ("tool", "written"),
        ("assistant", "Mended."),
    ]


async def test_what_a_failed_run_left_is_sealed_before_its_driver_leaves(
    client: Client, own: Router
) -> None:
    key = new_key()
    session = await client.create_session("2026-11-30 p", key_id=key.key_id)
    sealer, task = Sealer(key, session.id), request("whoever can")
    nobody = task.input.model_copy(update={"explicit_model": "openai-compat:demo/nobody"})
    task = task.model_copy(update={"input": nobody})
    with trio.fail_after(2 * PATIENCE), pytest.raises(ApiError):
        await drive(client, session.id, task, Saboteur(own), seal=sealer)
    await trio.to_thread.run_sync(own.kill)
    await trio.to_thread.run_sync(own.start)
    (kept,) = await open_messages(sealer, (await client.session(session.id)).messages)
    assert kept.content["plaintext"] == "whoever can"
