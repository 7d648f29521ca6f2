"""A run in an encrypted session, against a router that speaks its part of the contract."""

import json

import pytest
import trio

from smista.core.events import Status
from smista.core.messages import ToolResultEntry
from smista.core.secret import Envelope
from smista.core.session_key import SessionKey
from smista.sdk.client import ClientConfig, open_client
from smista.sdk.errors import ApiError
from smista.sdk.frames import turn_of
from smista.sdk.run import Steering, drive, resume
from smista.sdk.sealing import MissingKey, Sealer, Tampered, WrongKey, new_key
from tests.sdk.router import CONTINUE, EXECUTE, SESSION, Reply, asks_tool, completed, stream, turn
from tests.sdk.stage import Cue, Stage, ends, refuses, says
from tests.sdk.test_client import KEY, REQUEST
from tests.sdk.test_run import Desk
from tests.sdk.test_steering import IDLE, SlowDesk

SEALER = Sealer(SessionKey(bytes(range(32))), SESSION["id"])
TEXTS = {"message:1": "the question", "trace:1": '{"type": "routing_decision"}'}


@pytest.fixture
async def router(nursery):
    return await Stage().start(nursery)


@pytest.fixture
async def client(router):
    async with open_client(ClientConfig(url=router.url), api_key=KEY) as client:
        yield client


def folding(end, texts=TEXTS, **more):
    return {**end, "data": {**end["data"], "to_encrypt": texts, **more}}


def shut(texts, sealer=SEALER):
    return {name: sealer.seal_one(name, text).model_dump() for name, text in texts.items()}


def opened(body):
    """Return what the envelopes of a continuation hold."""
    sealed = body["data"]["encrypted"]
    return {name: SEALER.open_one(name, Envelope(**each)) for name, each in sealed.items()}


def bodies(router):
    return [asked.body for asked in router.to(CONTINUE)]


class Reader(Desk):
    async def run_tools(self, requests):
        result = ToolResultEntry(
            call_id="c1", content="text", paths=("a", "/p/a"), restricted=True, decision="approved"
        )
        return (result,)


async def test_a_run_seals_what_each_turn_folds_and_what_its_tools_said(router, client):
    router.answer("POST", EXECUTE, stream(folding(asks_tool("read_file", {"path": "a"}))))
    done = folding(completed(), {"message:2": "the answer"})
    router.answer("POST", CONTINUE, stream(done), Reply(IDLE))
    desk = Reader()
    outcome = await drive(client, SESSION["id"], REQUEST, desk, seal=SEALER)
    results, sealed = bodies(router)
    entry = {"content": "text", "is_error": False, "paths": ["a", "/p/a"], "restricted": True}
    told = opened(results)
    assert json.loads(told.pop("tool_call:c1")) == entry
    assert told == TEXTS
    assert results["data"]["results"][0]["sealed_as"] == "entry"
    assert (sealed["type"], opened(sealed)) == ("sealed", {"message:2": "the answer"})
    assert outcome.status is Status.COMPLETED
    assert "to_encrypt" not in outcome.data
    assert outcome.allowed_continuations == ()
    assert [e.status for e in desk.shown] == [Status.AWAITING_TOOL, Status.COMPLETED]


async def test_rows_are_opened_and_new_ones_sealed_in_one_answer(router, client):
    old = {"message:7": "earlier", "memory:8": '{"key": "k", "content": "c"}'}
    asked = turn("awaiting_decrypt", {"to_decrypt": shut(old), "to_encrypt": TEXTS})
    router.answer("POST", EXECUTE, stream(asked))
    router.answer("POST", CONTINUE, stream(completed()))
    await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)
    (answer,) = bodies(router)
    assert (answer["type"], answer["data"]["plaintext"]) == ("decrypted", old)
    assert opened(answer) == TEXTS


async def test_a_decision_carries_what_its_question_folded(router, client):
    approval = {"approval_id": "a1", "kind": "plan", "detail": {}}
    router.answer(
        "POST", EXECUTE, stream(folding(turn("awaiting_approval", {"approval": approval})))
    )
    router.answer("POST", CONTINUE, stream(IDLE))
    await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)
    assert opened(bodies(router)[0]) == TEXTS


async def test_without_streams_it_is_sealed_as_well(router, client):
    router.answer("POST", EXECUTE, Reply(folding(completed())))
    router.answer("POST", CONTINUE, Reply(IDLE))
    await drive(client, SESSION["id"], REQUEST, Desk(), stream=False, seal=SEALER)
    assert opened(bodies(router)[0]) == TEXTS


async def test_much_is_sealed_beside_the_loop(router, client):
    texts = {"message:1": "x" * 1_000_000}
    router.answer("POST", EXECUTE, stream(folding(completed(), texts)))
    router.answer("POST", CONTINUE, Reply(IDLE))
    await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)
    assert opened(bodies(router)[0]) == texts


async def test_a_stopped_run_seals_what_was_said(router, client, nursery):
    stopped, desk, steering = trio.Event(), SlowDesk(), Steering()
    router.answer("POST", EXECUTE, Cue(events=[says("x")], wait=stopped, then=[ends(IDLE)]))
    partial = folding(turn("awaiting_encrypt", {}), {"message:3": "x"})
    router.answer("POST", CONTINUE, Cue(partial, sets=stopped), Reply(IDLE))

    async def stop():
        await desk.heard.wait()
        await steering.stop()

    nursery.start_soon(stop)
    outcome = await drive(client, SESSION["id"], REQUEST, desk, steering=steering, seal=SEALER)
    assert outcome.status is Status.IDLE
    first, second = bodies(router)
    assert first == {"type": "break"}
    assert opened(second) == {"message:3": "x"}


async def test_new_input_carries_no_envelopes(router, client, nursery):
    desk, steering = SlowDesk(), Steering()
    router.answer("POST", EXECUTE, stream(folding(asks_tool("shell", {}))))
    router.answer("POST", CONTINUE, stream(folding(completed())), Reply(IDLE))

    async def inject():
        await desk.busy.wait()
        assert await steering.inject("other")

    nursery.start_soon(inject)
    await drive(client, SESSION["id"], REQUEST, desk, steering=steering, seal=SEALER)
    first, second = bodies(router)
    assert first["data"] == {"messages": [{"text": "other"}]}
    assert opened(second) == TEXTS


async def test_a_cancelled_run_seals_what_was_said_before_it_leaves(router, client, nursery):
    router.answer("POST", EXECUTE, Reply(events=[], hold=True))
    partial = folding(turn("awaiting_encrypt", {}), {"message:3": "half"})
    router.answer("POST", CONTINUE, Reply(partial), Reply(IDLE))
    with trio.CancelScope() as scope:

        async def cancel():
            await router.held.wait()
            scope.cancel()

        nursery.start_soon(cancel)
        await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)
    assert [body["type"] for body in bodies(router)] == ["break", "sealed"]
    assert opened(bodies(router)[1]) == {"message:3": "half"}


async def test_an_answer_is_stored_though_the_user_leaves_when_it_is_there(router, client, nursery):
    asked = trio.Event()
    router.answer("POST", EXECUTE, stream(folding(completed())))
    router.answer("POST", CONTINUE, Cue(events=[], sets=asked, hold=True), Reply(IDLE))
    with trio.CancelScope() as scope:

        async def cancel():
            await asked.wait()
            scope.cancel()

        nursery.start_soon(cancel)
        await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)
    assert scope.cancelled_caught
    first, second = bodies(router)
    assert opened(first) == opened(second) == TEXTS


async def test_a_row_that_was_moved_ends_the_run(router, client):
    moved = {"message:8": shut({"message:7": "earlier"})["message:7"]}
    router.answer("POST", EXECUTE, stream(turn("awaiting_decrypt", {"to_decrypt": moved})))
    router.answer("POST", CONTINUE, Reply(IDLE))
    with pytest.raises(Tampered, match="message:8"):
        await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)
    assert bodies(router) == [{"type": "break"}]


async def test_a_row_of_another_session_s_key_is_left_closed(router, client):
    foreign = shut({"message:7": "theirs"}, Sealer(new_key(), SESSION["id"]))
    router.answer("POST", EXECUTE, stream(turn("awaiting_decrypt", {"to_decrypt": foreign})))
    router.answer("POST", CONTINUE, Reply(IDLE))
    with pytest.raises(WrongKey):
        await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)


async def test_without_the_key_no_tool_is_run(router, client):
    router.answer("POST", EXECUTE, stream(folding(asks_tool("shell", {}))))
    router.answer("POST", CONTINUE, Reply(IDLE))
    desk = Desk()
    with pytest.raises(MissingKey):
        await drive(client, SESSION["id"], REQUEST, desk)
    assert desk.requests == []


async def test_an_answer_that_cannot_be_stored_is_an_error(router, client):
    router.answer("POST", EXECUTE, stream(folding(completed())))
    router.answer("POST", CONTINUE, refuses("storage_error", 502), Reply(IDLE))
    with pytest.raises(ApiError, match="storage_error"):
        await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)


async def test_rows_that_only_wait_to_be_sealed_are_sealed(router, client):
    pause = turn("awaiting_encrypt", {"to_encrypt": TEXTS}, "sealed", "break")
    router.answer("POST", CONTINUE, Reply(IDLE))
    outcome = await resume(client, SESSION["id"], turn_of(pause), Desk(), seal=SEALER)
    assert outcome.status is Status.IDLE
    assert opened(bodies(router)[0]) == TEXTS


async def test_what_one_request_cannot_carry_is_sealed_in_several(router, client):
    more = turn("awaiting_encrypt", {"to_encrypt": {"trace:2": "late"}}, "sealed", "break")
    router.answer("POST", EXECUTE, stream(folding(completed())))
    router.answer("POST", CONTINUE, Reply(more), Reply(IDLE))
    outcome = await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)
    assert outcome.status is Status.COMPLETED
    assert [opened(body) for body in bodies(router)[-2:]] == [TEXTS, {"trace:2": "late"}]


async def test_a_run_that_ends_without_an_answer_ends_idle(router, client):
    router.answer("POST", EXECUTE, stream(folding(turn("awaiting_encrypt", {}))))
    router.answer("POST", CONTINUE, Reply(IDLE))
    desk = Desk()
    outcome = await drive(client, SESSION["id"], REQUEST, desk, seal=SEALER)
    assert (outcome.status, dict(outcome.data)) == (Status.IDLE, {})
    assert desk.shown[-1].status is Status.IDLE
    assert opened(bodies(router)[0]) == TEXTS


@pytest.mark.parametrize(("code", "status"), [("run_in_flight", 409), ("invalid_request", 422)])
async def test_rows_that_another_client_seals_are_no_fault(router, client, code, status):
    router.answer("POST", EXECUTE, stream(folding(completed())))
    router.answer("POST", CONTINUE, refuses(code, status))
    outcome = await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)
    assert outcome.status is Status.COMPLETED


async def test_envelopes_that_the_router_finds_wrong_are_an_error(router, client):
    router.answer("POST", EXECUTE, stream(folding(completed())))
    details = {"missing": ["message:9"]}
    body = {"error": {"code": "invalid_request", "message": "no", "details": details}}
    router.answer("POST", CONTINUE, Reply(body, 422), Reply(IDLE))
    with pytest.raises(ApiError, match="invalid_request"):
        await drive(client, SESSION["id"], REQUEST, Desk(), seal=SEALER)


async def test_without_the_key_an_answer_that_cannot_be_stored_is_said_to_be(router, client):
    router.answer("POST", EXECUTE, stream(folding(completed())))
    router.answer("POST", CONTINUE, Reply(IDLE))
    with pytest.raises(MissingKey):
        await drive(client, SESSION["id"], REQUEST, Desk())
