"""What strangers, broken clients and many clients at once get from a real router."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
import trio

from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.sdk.client import Client, open_client
from tests.e2e.house import COUNTED, PATIENCE, House, request

UNKNOWN = "018f9c3e-0000-7000-8000-000000000000"
CLIENTS = 10


@pytest.fixture
async def http(shared: House) -> AsyncIterator[httpx.AsyncClient]:
    """A plain client with a token of its own."""
    url = f"{shared.url}/api/v1"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE) as client:
        key = (await client.post("/auth/bootstrap")).json()["api_key"]
        answer = await client.post("/auth/sign-in", headers={"X-Smista-Api-Key": key})
        client.headers["Authorization"] = f"Bearer {answer.json()['token']}"
        yield client


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
    ],
)
async def test_a_page_in_a_browser_makes_no_user(shared: House, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(base_url=shared.url, trust_env=False) as client:
        answer = await client.post("/api/v1/auth/bootstrap", headers=headers)
    assert refused(answer) == (403, "forbidden")
    assert "api_key" not in answer.text


async def test_a_body_over_the_limit_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/sessions", content=b"x" * 100_001)
    assert refused(answer) == (413, "request_too_large")


async def test_a_body_that_grows_over_the_limit_is_refused(http: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 10_000

    headers = {"Content-Type": "application/json"}
    answer = await http.post("/sessions", content=endless(), headers=headers)
    assert refused(answer) == (413, "request_too_large")


async def test_what_is_no_json_is_told_so(http: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await http.post("/sessions", content=b'{"title": ', headers=headers)
    assert refused(answer) == (400, "invalid_json")


async def test_no_session_and_no_session_id_are_told_apart(http: httpx.AsyncClient) -> None:
    assert refused(await http.get(f"/sessions/{UNKNOWN}")) == (404, "session_not_found")
    assert refused(await http.get("/sessions/not-a-uuid")) == (400, "invalid_session_id")
    body = json.loads(request("hello").model_dump_json(exclude_none=True))
    answer = await http.post("/sessions/not-a-uuid/execute", json=body)
    assert refused(answer) == (400, "invalid_session_id")
    answer = await http.post(f"/sessions/{UNKNOWN}/execute", json=body)
    assert refused(answer) == (404, "session_not_found")


async def test_the_session_of_another_user_does_not_exist(
    shared: House, http: httpx.AsyncClient
) -> None:
    async with open_client(shared.client_config) as other:
        await other.bootstrap()
        session = await other.create_session("mine")
    assert refused(await http.get(f"/sessions/{session.id}")) == (404, "session_not_found")


async def test_without_a_token_nothing_is_told(shared: House) -> None:
    async with httpx.AsyncClient(base_url=shared.url, trust_env=False) as client:
        answer = await client.get("/api/v1/sessions")
    assert refused(answer) == (401, "missing_credentials")


async def _talk(shared: House, number: int) -> None:
    """Stream two turns in a session of its own, and find them there afterwards."""
    async with open_client(shared.client_config) as client:
        await client.bootstrap()
        session = await client.create_session(f"client {number}")
        assert await _streamed(client, session.id, f"count for {number}") == COUNTED
        assert await _streamed(client, session.id, f"I am {number}") == f"You wrote: I am {number}"
        kept = await client.session(session.id)
        said = [message.content["plaintext"] for message in kept.messages]
        assert said == [
            f"count for {number}",
            COUNTED,
            f"I am {number}",
            f"You wrote: I am {number}",
        ]


async def _streamed(client: Client, session_id: str, text: str) -> str:
    async with client.stream_execute(session_id, request(text)) as stream:
        events = [event async for event in stream]
    last = events[-1]
    assert isinstance(last, TurnEnd)
    assert last.status is Status.COMPLETED
    return "".join(event.delta for event in events if isinstance(event, TextDeltaEvent))


async def test_ten_clients_stream_at_once_and_none_hears_another(shared: House) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for number in range(CLIENTS):
                nursery.start_soon(_talk, shared, number)
