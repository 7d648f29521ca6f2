"""The demo model on a real socket: as the vendor's own client sees it, and byte by byte."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx
import openai
import pytest
import trio

from smista.demo.script import Script, load_script, parse_script
from smista.demo.server import Seen, serve_demo_model

FILE = {"role": "user", "content": "hello.txt:\nHelo, world!"}
ASK = {"role": "user", "content": "fix the typo in @hello.txt"}
EDIT = {
    "type": "function",
    "function": {
        "name": "edit_file",
        "description": "Replace text in a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
WANTED = {"path": "hello.txt", "old": "Helo", "new": "Hello"}


@asynccontextmanager
async def open_model(
    script: Script | None = None, seen: Callable[[Seen], None] | None = None
) -> AsyncGenerator[str]:
    async with trio.open_nursery() as nursery:
        serve = partial(serve_demo_model, script=script or load_script(), seen=seen)
        port = await nursery.start(serve)
        yield f"http://127.0.0.1:{port}/v1"
        nursery.cancel_scope.cancel()


async def vendor(talk: Callable[[openai.OpenAI], Any], url: str, key: str = "none") -> Any:
    """Run *talk* with the vendor's blocking client in a thread."""

    def run() -> Any:
        with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as client:
            return talk(client)

    return await trio.to_thread.run_sync(run)


async def test_the_vendor_s_client_parses_stream_tools_and_usage():
    def talk(client: openai.OpenAI) -> list[Any]:
        stream = client.chat.completions.create(
            model="demo",
            messages=[FILE, ASK],
            tools=[EDIT],
            stream=True,
            stream_options={"include_usage": True},
        )
        return list(stream)

    async with open_model() as url:
        chunks = await vendor(talk, url)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(d.content or "" for d in deltas) == "I will correct the spelling in hello.txt. "
    assert any(getattr(delta, "reasoning_content", None) for delta in deltas)
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    assert [call.function.name for call in calls if call.function.name] == ["edit_file"]
    assert json.loads("".join(call.function.arguments or "" for call in calls)) == WANTED
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "tool_calls"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens > 0
    assert chunks[-1].usage.total_tokens > chunks[-1].usage.prompt_tokens


async def test_the_vendor_s_client_goes_on_after_a_tool_result():
    def talk(client: openai.OpenAI) -> tuple[Any, Any]:
        ask = partial(client.chat.completions.create, model="demo", tools=[EDIT])
        first = ask(messages=[FILE, ASK])
        said = first.choices[0].message.model_dump(exclude_none=True)
        result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "ok"}
        return first, ask(messages=[FILE, ASK, said, result])

    async with open_model() as url:
        first, second = await vendor(talk, url)
    call = first.choices[0].message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("edit_file", WANTED)
    assert first.choices[0].finish_reason == "tool_calls"
    assert second.choices[0].message.content.startswith('I replaced "Helo" with "Hello"')
    assert second.choices[0].finish_reason == "stop"
    assert second.usage.completion_tokens > 0


async def test_the_vendor_s_client_lists_models_and_understands_refusals():
    script = parse_script(
        "models = ['a', 'b']\napi_key = 'right'\n"
        "[[rules]]\nname = 'x'\nsay = [{ error = { status = 429, retry_after = '7' } }]"
    )

    def limited(client: openai.OpenAI) -> str | None:
        with pytest.raises(openai.RateLimitError, match="the script says so") as caught:
            client.chat.completions.create(model="a", messages=[ASK])
        return caught.value.response.headers.get("retry-after")

    async with open_model(script) as url:
        models = await vendor(lambda client: [m.id for m in client.models.list()], url, "right")
        assert models == ["a", "b"]
        assert await vendor(limited, url, "right") == "7"
        with pytest.raises(openai.AuthenticationError, match="another API key"):
            await vendor(lambda client: client.models.list(), url, "wrong")


async def ask_raw(url: str, client: httpx.AsyncClient, **more: Any) -> httpx.Response:
    body = {"model": "demo", "messages": [ASK], "stream": True, **more}
    return await client.post(f"{url}/chat/completions", json=body)


def one_rule(say: str) -> Script:
    return parse_script(f"[[rules]]\nname = 'x'\nsay = [{say}]")


async def test_equal_prompts_get_equal_bytes_over_one_connection():
    async with open_model() as url, httpx.AsyncClient() as client:
        first = await ask_raw(url, client, tools=[EDIT])
        again = await ask_raw(url, client, tools=[EDIT])
        assert first.content == again.content
        assert first.content.endswith(b"data: [DONE]\n\n")
        streams = {id(r.extensions["network_stream"]) for r in (first, again)}
        assert len(streams) == 1


async def test_the_usage_chunk_comes_last_with_no_choices_and_only_if_asked_for():
    wanted = {"include_usage": True}
    async with open_model() as url, httpx.AsyncClient() as client:
        with_usage = await ask_raw(url, client, stream_options=wanted)
        without = await ask_raw(url, client)
    *_, usage, done, _ = with_usage.text.split("\n\n")
    assert json.loads(usage.removeprefix("data: "))["choices"] == []
    assert done == "data: [DONE]"
    assert '"usage"' not in without.text


async def test_requests_are_shown_to_the_observer():
    seen: list[Seen] = []
    async with open_model(seen=seen.append) as url, httpx.AsyncClient() as client:
        await ask_raw(url, client, tools=[EDIT])
        await ask_raw(url, client)
    assert [request.number for request in seen] == [1, 2]
    assert seen[0].asked.user == ASK["content"]
    assert seen[0].asked.tools == {"edit_file"}
    assert seen[0].headers["content-type"] == "application/json"
    assert not seen[0].left.is_set()


@pytest.mark.parametrize("say", ["{text = 'a'}, {hold = true}", "{hold = true}"])
async def test_a_held_answer_notices_that_its_client_left(say):
    seen: list[Seen] = []
    came = trio.Event()

    def note(request: Seen) -> None:
        seen.append(request)
        came.set()

    async with open_model(one_rule(say), seen=note) as url, httpx.AsyncClient() as client:
        with trio.fail_after(5):
            async with trio.open_nursery() as callers:
                callers.start_soon(ask_raw, url, client)
                await came.wait()
                callers.cancel_scope.cancel()
            await seen[0].left.wait()


async def test_an_error_as_first_step_is_a_status_and_later_an_event():
    body = "{error = {status = 503, body = '<html>busy</html>'}}"
    async with httpx.AsyncClient() as client:
        async with open_model(one_rule(body)) as url:
            answer = await ask_raw(url, client)
            assert (answer.status_code, answer.text) == (503, "<html>busy</html>")
            assert answer.headers["content-type"] == "text/html"
        async with open_model(one_rule("{text = 'a'}, {error = {message = 'gone'}}")) as url:
            answer = await ask_raw(url, client)
            assert answer.status_code == 200
            assert '"content":"a"' in answer.text
            assert '"message":"gone"' in answer.text
            assert "[DONE]" not in answer.text


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_answer_ends_without_its_end(stream):
    script = one_rule("{text = 'a'}, {cut = true}")
    async with open_model(script) as url, httpx.AsyncClient() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await ask_raw(url, client, stream=stream)


async def test_a_pause_lasts_as_long_as_the_script_says():
    script = one_rule("{pause_ms = 30}, {text = 'a'}")
    async with open_model(script) as url, httpx.AsyncClient() as client:
        begun = trio.current_time()
        answer = await ask_raw(url, client)
        assert trio.current_time() - begun >= 0.03
        assert '"content":"a"' in answer.text


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/chat/completions", b"{", 400),
        ("POST", "/chat/completions", b"[]", 400),
        ("POST", "/chat/completions", b'{"model":"m"}', 400),
        ("POST", "/chat/completions", b'{"model":"m","messages":[null,3],"tools":7}', 200),
        ("GET", "/chat/completions", b"", 404),
        ("POST", "/nothing", b"{}", 404),
    ],
)
async def test_a_request_that_is_none_is_refused_and_the_connection_lives(
    method, path, content, status
):
    async with open_model() as url, httpx.AsyncClient() as client:
        for _ in range(2):
            answer = await client.request(method, url + path, content=content)
            assert answer.status_code == status
            assert answer.json()


async def test_bytes_that_are_no_http_are_answered_once():
    async with open_model() as url:
        port = int(url.split(":")[2].split("/")[0])
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            await stream.send_all(b"\x16\x03\x01 nonsense\r\n\r\n")
            answer = b"".join([part async for part in stream])
    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_a_taken_port_is_told():
    async with open_model() as url:
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(OSError, match="in use"):
            await serve_demo_model(script=load_script(), port=port)
