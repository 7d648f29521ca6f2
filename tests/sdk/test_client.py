"""The client against a router on a real socket."""

import gc

import httpx
import pytest
import trio
from pydantic import SecretStr

from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.core.messages import Break
from smista.core.policy import (
    ClassificationConfig,
    Policy,
    PrivacyPolicy,
    RoutingPolicy,
    ToolsConfig,
)
from smista.core.request import (
    Attachments,
    ExecuteRequest,
    LocalPreferences,
    TaskInput,
    Workspace,
)
from smista.sdk.client import Client, ClientConfig, open_client
from smista.sdk.errors import ApiError, BadAnswer, NotSignedIn, Unreachable
from tests.sdk.router import CONTINUE, EXECUTE, SESSION, FakeRouter, Reply, completed, stream, turn

KEY = SecretStr("sk-smista-api01-canary")
REQUEST = ExecuteRequest(
    input=TaskInput(text="hi"),
    workspace=Workspace(root="/p", referenced_paths=()),
    policy=Policy(
        version=1,
        source="merged",
        classification=ClassificationConfig(),
        routing=RoutingPolicy(),
        tools=ToolsConfig(),
        privacy=PrivacyPolicy(),
    ),
    local_preferences=LocalPreferences(auto_apply=False, local_only=False, no_network=False),
    attachments=Attachments(files=(), instructions=()),
)
LAPSED = Reply({"error": {"code": "token_expired", "message": "past its expiry"}}, 401)


@pytest.fixture
async def router(nursery):
    return await FakeRouter().start(nursery)


@pytest.fixture
async def client(router):
    credentials = {"openai-compat:my-vllm": SecretStr("vllm-key"), "openai": SecretStr("oa-key")}
    config = ClientConfig(url=router.url, credentials=credentials)
    async with open_client(config, api_key=KEY) as client:
        yield client


class Deaf(httpx.AsyncBaseTransport):
    """A connection that breaks while a request is being written."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if "sign-in" in request.url.path:
            return httpx.Response(200, json={"token": "t", "expires_at": "2030-01-01T00:00:00Z"})
        async for _ in request.stream:
            raise httpx.WriteError("broken")
        raise AssertionError("a body has parts")


async def test_a_connection_that_breaks_while_it_is_written_to_leaves_nothing_behind():
    async with httpx.AsyncClient(transport=Deaf(), base_url="http://r") as http:
        client = Client(http, ClientConfig(url="http://r"), KEY)
        with pytest.raises(Unreachable):
            await client.execute("s", REQUEST)
        with pytest.raises(Unreachable):
            async with client.stream_execute("s", REQUEST):
                pass
    # A generator that was left in the middle would be complained of here.
    gc.collect()


async def test_the_key_goes_to_sign_in_and_the_token_everywhere_else(router, client):
    router.answer("GET", "/api/v1/auth/me", Reply({"user_id": "u"}))
    assert await client.me() == "u"
    sign_in, me = router.asked
    assert sign_in.headers["x-smista-api-key"] == KEY.get_secret_value()
    assert me.headers["authorization"] == "Bearer t0k3n"
    assert "x-smista-api-key" not in me.headers


async def test_keys_are_in_no_representation(client):
    config = ClientConfig(credentials={"openai": SecretStr("oa-key")})
    shown = f"{client!r} {vars(client)!r} {config!r}"
    for secret in ("canary", "vllm-key", "oa-key"):
        assert secret not in shown


async def test_a_lapsed_token_is_renewed_once(router, client):
    router.answer("GET", "/api/v1/auth/me", LAPSED, Reply({"user_id": "u"}))
    assert await client.me() == "u"
    assert len(router.to("/api/v1/auth/sign-in")) == 2


async def test_a_lapsed_token_is_renewed_for_a_stream_too(router, client):
    router.answer("POST", EXECUTE, LAPSED, stream(completed()))
    async with client.stream_execute(SESSION["id"], REQUEST) as events:
        assert isinstance(await anext(events), TurnEnd)


async def test_a_token_that_lapses_twice_is_an_error(router, client):
    router.answer("GET", "/api/v1/auth/me", LAPSED, LAPSED)
    with pytest.raises(ApiError) as caught:
        await client.me()
    assert (caught.value.status, caught.value.code) == (401, "token_expired")


async def test_sessions_are_created_listed_fetched_changed_and_deleted(router, client):
    path = f"/api/v1/sessions/{SESSION['id']}"
    message = {"role": "user", "content": {"plaintext": "hi"}}
    router.answer("GET", "/api/v1/sessions", Reply({"sessions": [SESSION]}))
    detail = {**SESSION, "messages": [message], "metadata": {}}
    router.answer("GET", path, Reply({"session": detail}))
    router.answer("PUT", path, Reply({"session": {**SESSION, "archived": True}}))
    router.answer("DELETE", path, Reply({"deleted": True}))

    created = await client.create_session("t", scope="/p")
    (listed,) = await client.sessions(scope="/p & co")
    fetched = await client.session(created.id)
    assert (await client.update_session(created.id, archived=True)).archived
    await client.delete_session(created.id)

    assert listed == created
    assert fetched.messages[0].content == {"plaintext": "hi"}
    bodies = [asked.body for asked in router.asked if asked.method in ("POST", "PUT")]
    assert bodies == [None, {"title": "t", "scope": "/p"}, {"archived": True}]
    assert router.to("/api/v1/sessions")[1].query == "scope=%2Fp+%26+co"


async def test_an_answer_may_come_whole(router, client):
    router.answer("POST", EXECUTE, Reply(completed("done")))
    outcome = await client.execute(SESSION["id"], REQUEST)
    assert outcome.status is Status.COMPLETED
    assert outcome.data["message"]["content"] == "done"
    asked = router.asked[-1]
    assert asked.headers["accept"] == "application/json"
    assert asked.headers["x-smista-provider-my-vllm-api-key"] == "vllm-key"
    assert asked.headers["x-smista-provider-openai-api-key"] == "oa-key"
    assert asked.headers["idempotency-key"]
    assert "explicit_model" not in asked.body["input"]


async def test_an_answer_may_come_as_a_stream(router, client):
    delta = {"type": "text_delta", "delta": "hel"}
    router.answer("POST", EXECUTE, stream(completed(), delta, {"type": "of the future"}))
    async with client.stream_execute(SESSION["id"], REQUEST, key="k1") as events:
        received = [event async for event in events]
    assert received[0] == TextDeltaEvent("hel")
    assert isinstance(received[1], TurnEnd)
    assert len(received) == 2
    assert router.asked[-1].headers["accept"] == "text/event-stream"
    assert router.asked[-1].headers["idempotency-key"] == "k1"


async def test_a_stream_that_breaks_off_is_not_an_answer(router, client):
    router.answer("POST", EXECUTE, Reply(events=[{"type": "text_delta", "delta": "x"}]))
    async with client.stream_execute(SESSION["id"], REQUEST) as events:
        assert await anext(events) == TextDeltaEvent("x")
        with pytest.raises(Unreachable, match="broke off"):
            await anext(events)


async def test_a_stream_left_in_the_middle_closes_the_connection(router, client):
    held = Reply(events=[{"type": "text_delta", "delta": "x"}], hold=True)
    router.answer("POST", EXECUTE, held)
    async with client.stream_execute(SESSION["id"], REQUEST) as events:
        await anext(events)
    with trio.fail_after(5):
        await router.left.wait()


async def test_an_error_before_the_stream_is_the_routers_own(router, client):
    error = {"code": "run_in_flight", "message": "busy", "details": {"turn": 2}}
    router.answer("POST", CONTINUE, Reply({"error": error}, 409))
    with pytest.raises(ApiError) as caught:
        async with client.stream_continue(SESSION["id"], Break()):
            pass
    assert (caught.value.status, caught.value.code) == (409, "run_in_flight")
    assert caught.value.details == {"turn": 2}


async def test_json_where_a_stream_was_asked_is_refused(router, client):
    router.answer("POST", EXECUTE, Reply(completed()))
    with pytest.raises(BadAnswer):
        async with client.stream_execute(SESSION["id"], REQUEST):
            pass


async def test_a_break_says_nothing_but_its_type(router, client):
    router.answer("POST", CONTINUE, Reply(turn("idle", {})))
    assert (await client.continue_run(SESSION["id"], Break())).status is Status.IDLE
    assert router.asked[-1].body == {"type": "break"}


@pytest.mark.parametrize("body", [[], "x", {"status": "ok"}, None])
async def test_a_stranger_on_the_port_is_told_apart(router, client, body):
    router.answer("GET", "/status", Reply(body))
    with pytest.raises(BadAnswer):
        await client.status()


async def test_an_error_page_of_a_stranger_is_told_apart(router, client):
    router.answer("GET", "/status", Reply("<html>", 502))
    with pytest.raises(BadAnswer, match="502"):
        await client.status()


async def test_nobody_at_the_port_is_unreachable():
    with trio.socket.socket() as reserved:
        await reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        async with open_client(ClientConfig(url=url)) as client:
            with pytest.raises(Unreachable) as caught:
                await client.status()
    assert caught.value.url == url


async def test_without_key_and_token_nothing_is_sent(router):
    async with open_client(ClientConfig(url=router.url)) as client:
        with pytest.raises(NotSignedIn):
            await client.me()
    assert router.asked == []


async def test_a_new_user_is_signed_in_with_the_key_just_made(router):
    identity = {"user_id": "u", "api_key": "sk-new"}
    router.answer("POST", "/api/v1/auth/bootstrap", Reply(identity, 201))
    async with open_client(ClientConfig(url=router.url)) as client:
        made = await client.bootstrap()
        await client.sign_in()
    assert made.user_id == "u"
    assert "sk-new" not in repr(made)
    assert router.asked[-1].headers["x-smista-api-key"] == "sk-new"


async def test_trace_usage_providers_models_and_preview_are_read(router, client):
    base = f"/api/v1/sessions/{SESSION['id']}"
    event = {
        "event_type": "cost",
        "task_type": "chat",
        "provider": "p",
        "model": "m",
        "created_at": "2026-05-25T09:00:00Z",
        "payload": {"plaintext": {"type": "cost"}},
    }
    router.answer("GET", f"{base}/traces", Reply({"trace": {"events": [event]}}))
    router.answer("GET", f"{base}/usage", Reply({"total": {}, "by_model": []}))
    router.answer("POST", f"{base}/preview", Reply({"routing": {}}))
    provider = {"id": "ollama", "display_name": "Ollama", "local": True}
    router.answer("GET", "/api/v1/llm/providers", Reply({"providers": [provider]}))
    model = {"provider": "p", "model": "m", "max_context_tokens": 5}
    router.answer("GET", "/api/v1/llm/models", Reply({"models": [model]}))

    (entry,) = await client.trace(SESSION["id"], offset=2, limit=7)
    assert entry.payload == {"plaintext": {"type": "cost"}}
    assert router.asked[-1].query == "offset=2&limit=7"
    assert (await client.usage(SESSION["id"]))["by_model"] == []
    assert await client.preview(SESSION["id"], REQUEST) == {"routing": {}}
    assert router.asked[-1].headers["x-smista-provider-openai-api-key"] == "oa-key"
    assert (await client.providers()).providers[0].local
    assert (await client.models()).models[0].max_context_tokens == 5


async def test_a_session_id_leads_to_no_other_path(router, client):
    with pytest.raises(ApiError, match="not_found"):
        await client.session("../auth/me?x=\x1b")
    assert router.asked[-1].path == "/api/v1/sessions/..%2Fauth%2Fme%3Fx%3D%1B"


async def test_an_address_that_is_no_url_is_no_router():
    with pytest.raises(Unreachable, match="no URL"):
        async with open_client(ClientConfig(url="http://r/\x1b")):
            pass
