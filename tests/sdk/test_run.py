"""A whole run, from execute to its end, and what happens when the client leaves it."""

import pytest
import trio

from smista.core.events import Status, TextDeltaEvent
from smista.core.messages import ApprovalDecision, ToolResultEntry
from smista.sdk.client import ClientConfig, open_client
from smista.sdk.errors import Unreachable
from smista.sdk.run import drive
from smista.sdk.sealing import MissingKey
from tests.sdk.router import (
    CONTINUE,
    EXECUTE,
    SESSION,
    FakeRouter,
    Reply,
    asks_tool,
    completed,
    stream,
    turn,
)
from tests.sdk.test_client import KEY, REQUEST


class Desk:
    """A host that remembers what it was shown and asked."""

    def __init__(self):
        self.shown, self.requests, self.approvals = [], [], []
        self.fault = None
        self.told = []

    def say(self, line):
        self.told.append(line)

    async def show(self, event):
        self.shown.append(event)

    async def run_tools(self, requests):
        if self.fault:
            raise self.fault
        self.requests += requests
        return tuple(ToolResultEntry(call_id=r.call_id, content="ok") for r in requests)

    async def decide(self, approval):
        self.approvals.append(approval)
        return ApprovalDecision(approval_id=approval.approval_id, decision="rejected", reason="no")


@pytest.fixture
async def router(nursery):
    return await FakeRouter().start(nursery)


@pytest.fixture
async def client(router):
    async with open_client(ClientConfig(url=router.url), api_key=KEY) as client:
        yield client


async def test_tools_are_run_and_answered_until_the_run_is_over(router, client):
    delta = {"type": "text_delta", "delta": "x"}
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {"command": "ls"})))
    router.answer("POST", CONTINUE, stream(completed(), delta))
    desk = Desk()
    outcome = await drive(client, SESSION["id"], REQUEST, desk)
    assert outcome.status is Status.COMPLETED
    assert desk.requests[0].arguments == {"command": "ls"}
    assert TextDeltaEvent("x") in desk.shown
    (answer,) = router.to(CONTINUE)
    assert answer.body["type"] == "tool_results"
    assert answer.body["data"]["results"][0]["content"] == "ok"


async def test_every_message_has_a_key_of_its_own(router, client):
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {})))
    router.answer("POST", CONTINUE, stream(asks_tool("shell", {})), stream(completed()))
    await drive(client, SESSION["id"], REQUEST, Desk())
    keys = {a.headers["idempotency-key"] for a in router.to(EXECUTE) + router.to(CONTINUE)}
    assert len(keys) == 3


async def test_an_approval_is_decided_by_the_host(router, client):
    detail = {"provider": "openai", "paths": ["a.py"]}
    asked = {"approval_id": "a1", "kind": "remote_disclosure", "detail": detail}
    router.answer("POST", EXECUTE, stream(turn("awaiting_approval", {"approval": asked})))
    router.answer("POST", CONTINUE, stream(turn("idle", {})))
    desk = Desk()
    outcome = await drive(client, SESSION["id"], REQUEST, desk)
    assert outcome.status is Status.IDLE
    assert desk.approvals[0].detail == detail
    decision = router.to(CONTINUE)[0].body["data"]["decisions"][0]
    assert decision == {"approval_id": "a1", "decision": "rejected", "reason": "no"}


async def test_a_run_may_go_on_without_streams(router, client):
    router.answer("POST", EXECUTE, Reply(asks_tool("shell", {})))
    router.answer("POST", CONTINUE, Reply(completed()))
    outcome = await drive(client, SESSION["id"], REQUEST, Desk(), stream=False)
    assert outcome.status is Status.COMPLETED


async def test_a_cancelled_run_is_broken_off(router, client, nursery):
    router.answer("POST", EXECUTE, Reply(events=[], hold=True))
    router.answer("POST", CONTINUE, Reply(turn("idle", {})))
    with trio.CancelScope() as scope:

        async def cancel():
            await router.held.wait()
            scope.cancel()

        nursery.start_soon(cancel)
        await drive(client, SESSION["id"], REQUEST, Desk())
    assert scope.cancelled_caught
    assert [asked.body for asked in router.to(CONTINUE)] == [{"type": "break"}]


async def test_a_failing_host_breaks_the_run_off_and_its_error_stays(router, client):
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {})))
    router.answer("POST", CONTINUE, Reply(turn("idle", {})))
    desk = Desk()
    desk.fault = ValueError("mine")
    with pytest.raises(ValueError, match="mine"):
        await drive(client, SESSION["id"], REQUEST, desk)
    assert router.to(CONTINUE)[0].body == {"type": "break"}


async def test_a_lost_router_leaves_the_run_at_its_checkpoint(router, client):
    broken = Reply(events=[{"type": "text_delta", "delta": "x"}])
    router.answer("POST", EXECUTE, broken, broken)
    with pytest.raises(Unreachable):
        await drive(client, SESSION["id"], REQUEST, Desk())
    assert router.to(CONTINUE) == []


async def test_a_finished_run_is_not_broken_off(router, client):
    router.answer("POST", EXECUTE, stream(turn("error", {"error": {"code": "no_route"}})))
    outcome = await drive(client, SESSION["id"], REQUEST, Desk())
    assert outcome.status is Status.ERROR
    assert router.to(CONTINUE) == []


async def test_a_sealed_session_needs_a_key_this_client_lacks(router, client):
    router.answer("POST", EXECUTE, stream(turn("awaiting_decrypt", {"to_decrypt": {}})))
    with pytest.raises(MissingKey, match="smista keys import"):
        await drive(client, SESSION["id"], REQUEST, Desk())
