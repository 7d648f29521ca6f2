"""A run that is redirected or stopped from beside, and one whose connection breaks."""

from contextlib import asynccontextmanager

import pytest
import trio
from pydantic import SecretStr

from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.sdk.client import ClientConfig, open_client
from smista.sdk.errors import ApiError, Unproven, Unreachable
from smista.sdk.run import Steering, drive, pending_pause, resume
from tests.sdk.router import (
    CONTINUE,
    EXECUTE,
    SECRET,
    SESSION,
    Reply,
    asks_tool,
    completed,
    stream,
    turn,
)
from tests.sdk.stage import Cue, Stage, ends, error, refuses, says
from tests.sdk.test_client import KEY, REQUEST
from tests.sdk.test_run import Desk

IDLE = turn("idle", {"trace_id": "trace:1"})


class SlowDesk(Desk):
    """A host whose tools and questions last until they are cancelled."""

    def __init__(self):
        super().__init__()
        self.busy, self.cancelled, self.heard = trio.Event(), 0, trio.Event()

    async def show(self, event):
        await super().show(event)
        if isinstance(event, TextDeltaEvent):
            self.heard.set()

    async def _forever(self):
        self.busy.set()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            self.cancelled += 1
            raise

    async def run_tools(self, requests):
        await self._forever()

    async def decide(self, approval):
        await self._forever()


class Driven:
    """A run in a task of its own."""

    def __init__(self):
        self.desk, self.steering, self.turn, self.fault = SlowDesk(), Steering(), None, None
        self.over = trio.Event()

    async def run(self, client):
        try:
            self.turn = await drive(
                client, SESSION["id"], REQUEST, self.desk, steering=self.steering
            )
        except (ApiError, Unreachable) as fault:
            self.fault = fault
        finally:
            self.over.set()

    @property
    def text(self):
        return "".join(e.delta for e in self.desk.shown if isinstance(e, TextDeltaEvent))

    @property
    def ends(self):
        return [e.status for e in self.desk.shown if isinstance(e, TurnEnd)]


@pytest.fixture
async def router(nursery):
    return await Stage().start(nursery)


@pytest.fixture
async def client(router):
    async with open_client(ClientConfig(url=router.url), api_key=KEY) as client:
        yield client


@asynccontextmanager
async def driven(client):
    one = Driven()
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.run, client)
            yield one


def superseded_by(event):
    return Cue(events=[says("once ")], wait=event, then=[ends(error("superseded"))])


def types(router):
    return [asked.body["type"] for asked in router.to(CONTINUE)]


async def test_new_input_takes_the_place_of_what_is_being_said(router, client):
    injected = trio.Event()
    router.answer("POST", EXECUTE, superseded_by(injected))
    router.answer(
        "POST", CONTINUE, Cue(events=[says("new"), ends(completed("new"))], sets=injected)
    )
    async with driven(client) as one:
        await one.desk.heard.wait()
        assert one.steering.live
        assert await one.steering.inject("do that instead", command="plan")
    assert one.turn.data["message"]["content"] == "new"
    assert one.text == "once new"
    assert one.ends == [Status.COMPLETED]
    said = router.to(CONTINUE)[0].body["data"]["messages"]
    assert said == [{"text": "do that instead", "command": "plan"}]
    assert not one.steering.live


async def test_new_input_is_known_to_be_taken_before_its_first_word(router, client):
    injected, first_word = trio.Event(), trio.Event()
    router.answer("POST", EXECUTE, superseded_by(injected))
    late = Cue(events=[], sets=injected, wait=first_word, then=[ends(completed())])
    router.answer("POST", CONTINUE, late)
    async with driven(client) as one:
        await one.desk.heard.wait()
        assert await one.steering.inject("x")
        first_word.set()
    assert one.turn.status is Status.COMPLETED


async def test_new_input_cancels_the_tools_that_run(router, client):
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {"command": "sleep 9"})))
    router.answer("POST", CONTINUE, stream(completed("other")))
    async with driven(client) as one:
        await one.desk.busy.wait()
        assert await one.steering.inject("no, that")
    assert one.desk.cancelled == 1
    assert types(router) == ["inject"]
    assert one.turn.data["message"]["content"] == "other"


async def test_new_input_cancels_a_question(router, client):
    asked = {"approval_id": "a1", "kind": "cost_limit", "detail": {}}
    router.answer("POST", EXECUTE, stream(turn("awaiting_approval", {"approval": asked})))
    router.answer("POST", CONTINUE, stream(completed()))
    async with driven(client) as one:
        await one.desk.busy.wait()
        assert await one.steering.inject("cheaper, please")
    assert types(router) == ["inject"]
    assert one.turn.status is Status.COMPLETED


async def test_input_that_follows_input_replaces_it_in_the_order_typed(router, client):
    first, second = trio.Event(), trio.Event()
    router.answer("POST", EXECUTE, superseded_by(first))
    one_more = Cue(events=[], sets=first, wait=second, then=[ends(error("superseded"))])
    router.answer("POST", CONTINUE, one_more, Cue(events=[ends(completed("b"))], sets=second))
    async with driven(client) as one:
        await one.desk.heard.wait()
        assert await one.steering.inject("a")
        assert await one.steering.inject("b")
    assert [a.body["data"]["messages"][0]["text"] for a in router.to(CONTINUE)] == ["a", "b"]
    assert one.turn.data["message"]["content"] == "b"
    assert one.ends == [Status.COMPLETED]


async def test_input_for_a_run_that_just_ended_is_given_back(router, client):
    injected = trio.Event()
    late = Cue(events=[says("all")], wait=injected, then=[ends(completed("all"))])
    router.answer("POST", EXECUTE, late)
    router.answer("POST", CONTINUE, refuses("invalid_request", 422, sets=injected))
    async with driven(client) as one:
        await one.desk.heard.wait()
        assert not await one.steering.inject("too late")
    assert one.turn.data["message"]["content"] == "all"
    assert not await one.steering.inject("later still")


async def test_input_that_the_router_cannot_read_raises_where_it_came_from(router, client):
    injected = trio.Event()
    router.answer("POST", EXECUTE, Cue(events=[says("x")], wait=injected, then=[ends(completed())]))
    details = {"fields": [{"place": "body.data", "kind": "missing"}]}
    body = {"error": {"code": "invalid_request", "message": "no", "details": details}}
    router.answer("POST", CONTINUE, Cue(body, 422, sets=injected))
    async with driven(client) as one:
        await one.desk.heard.wait()
        with pytest.raises(ApiError, match="invalid_request"):
            await one.steering.inject("x")
    assert one.turn.status is Status.COMPLETED


async def test_input_whose_turn_fails_ends_the_run_as_that(router, client):
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {})))
    router.answer("POST", CONTINUE, refuses("no_route", 422), Reply(IDLE))
    async with driven(client) as one:
        await one.desk.busy.wait()
        assert await one.steering.inject("x")
    assert one.fault.code == "no_route"


async def test_input_for_a_pause_that_somebody_else_ended_ends_the_run(router, client):
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {})))
    router.answer("POST", CONTINUE, refuses("invalid_request", 422))
    async with driven(client) as one:
        await one.desk.busy.wait()
        assert not await one.steering.inject("x")
    assert one.turn.status is Status.IDLE


async def test_a_stop_ends_what_is_being_said(router, client):
    stopped = trio.Event()
    router.answer("POST", EXECUTE, Cue(events=[says("x")], wait=stopped, then=[ends(IDLE)]))
    router.answer("POST", CONTINUE, Cue(IDLE, sets=stopped))
    async with driven(client) as one:
        await one.desk.heard.wait()
        await one.steering.stop()
    assert one.turn.status is Status.IDLE
    assert types(router) == ["break"]
    assert one.ends == [Status.IDLE]


async def test_a_stop_cancels_the_tools_that_run(router, client):
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {})))
    router.answer("POST", CONTINUE, Reply(IDLE))
    async with driven(client) as one:
        await one.desk.busy.wait()
        await one.steering.stop()
    assert (one.desk.cancelled, one.turn.status) == (1, Status.IDLE)
    assert types(router) == ["break"]


async def test_a_stop_that_comes_too_late_leaves_the_answer(router, client):
    stopped = trio.Event()
    late = Cue(events=[says("x")], wait=stopped, then=[ends(completed("all"))])
    router.answer("POST", EXECUTE, late)
    router.answer("POST", CONTINUE, Cue(IDLE, sets=stopped))
    async with driven(client) as one:
        await one.desk.heard.wait()
        await one.steering.stop()
    assert one.turn.data["message"]["content"] == "all"
    await one.steering.stop()


async def test_a_stop_is_told_again_until_the_turn_ends(router, client):
    stopped = trio.Event()
    router.answer("POST", EXECUTE, Cue(events=[says("x")], wait=stopped, then=[ends(IDLE)]))
    router.answer("POST", CONTINUE, Cue(IDLE), Cue(IDLE, sets=stopped))
    async with driven(client) as one:
        await one.desk.heard.wait()
        await one.steering.stop()
    assert types(router) == ["break", "break"]
    assert one.turn.status is Status.IDLE


async def test_a_pause_found_in_a_fetched_session_is_answered(router, client):
    detail = {**SESSION, "metadata": {"run": asks_tool("shell", {"command": "ls"})}}
    router.answer("GET", f"/api/v1/sessions/{SESSION['id']}", Reply({"session": detail}))
    router.answer("POST", CONTINUE, stream(completed()))
    pause = pending_pause(await client.session(SESSION["id"]))
    outcome = await resume(client, SESSION["id"], pause, Desk())
    assert outcome.status is Status.COMPLETED
    assert types(router) == ["tool_results"]
    assert router.to(EXECUTE) == []


async def test_a_session_without_a_live_run_has_no_pause(router, client):
    router.answer("GET", f"/api/v1/sessions/{SESSION['id']}", Reply({"session": SESSION}))
    assert pending_pause(await client.session(SESSION["id"])) is None


async def test_a_pause_whose_content_is_lost_cannot_be_answered(router, client):
    gone = turn("awaiting_tool", {"lost": ["message:1"], "trace_id": "trace:1"}, "break")
    detail = {**SESSION, "metadata": {"run": gone}}
    router.answer("GET", f"/api/v1/sessions/{SESSION['id']}", Reply({"session": detail}))
    assert pending_pause(await client.session(SESSION["id"])) is None


async def test_a_broken_stream_is_taken_up_where_it_broke(router, client):
    router.answer(
        "POST",
        EXECUTE,
        Reply(events=[says("one "), says("two ")]),
        stream(completed("one two three"), says("one two th"), says("ree")),
    )
    async with driven(client) as one:
        pass
    assert one.text == "one two three"
    assert one.turn.status is Status.COMPLETED
    first, second = router.to(EXECUTE)
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body
    assert any("lost" in line for line in one.desk.told)


async def test_an_answer_that_begins_anew_is_shown_whole(router, client):
    again = stream(completed("other"), says("ot"), says("her"))
    router.answer("POST", EXECUTE, Reply(events=[says("one ")]), again)
    async with driven(client) as one:
        pass
    assert one.text == "one \nother"


async def test_a_call_that_is_told_again_is_shown_once(router, client):
    called = {"type": "tool_call_started", "call_id": "c1", "name": "shell"}
    router.answer("POST", EXECUTE, Reply(events=[called]), stream(completed(), called))
    async with driven(client) as one:
        pass
    assert [event.type for event in one.desk.shown] == ["tool_call_started", "turn_end"]


async def test_what_is_said_twice_in_one_turn_is_shown_twice(router, client):
    usage = {"type": "usage", "input_tokens": 1}
    router.answer("POST", EXECUTE, Reply(events=[usage]), stream(completed(), usage, usage))
    async with driven(client) as one:
        pass
    assert [event.type for event in one.desk.shown] == ["usage", "usage", "turn_end"]


async def test_a_turn_that_cannot_be_told_again_goes_on_without_us(router, client):
    router.answer("POST", EXECUTE, Reply(events=[says("x")]), refuses("run_in_flight", 409))
    async with driven(client) as one:
        pass
    assert isinstance(one.fault, Unreachable)
    assert router.to(CONTINUE) == []


async def test_a_run_that_the_router_refused_breaks_nobody_elses_off(router, client):
    router.answer("POST", EXECUTE, refuses("run_in_flight", 409))
    async with driven(client) as one:
        pass
    assert one.fault.code == "run_in_flight"
    assert router.to(CONTINUE) == []


async def test_a_router_that_stays_away_is_waited_for_and_then_given_up(
    router, client, monkeypatch
):
    monkeypatch.setattr("smista.sdk.speech.BACK_SECONDS", 0.3)
    router.answer("POST", EXECUTE, Reply(events=[says("x")]))
    router.always["GET", "/status"] = Reply(hold=True, events=[])
    async with driven(client) as one:
        pass
    assert isinstance(one.fault, Unreachable)
    assert len(router.to(EXECUTE)) == 1


async def test_a_stranger_on_the_port_of_a_lost_router_gets_nothing(router):
    proving = ClientConfig(url=router.url, secrets=(SecretStr(SECRET),))
    async with open_client(proving, api_key=SecretStr("sk-canary")) as client:
        await client.sign_in()
        router.answer("POST", EXECUTE, Reply(events=[says("x")]))
        router.secret = "another"
        with pytest.raises(Unproven):
            await drive(client, SESSION["id"], REQUEST, Desk())
    last = router.asked[-1]
    assert (last.method, last.path) == ("GET", "/status")
    assert "authorization" not in last.headers
    assert router.to(EXECUTE) == []
