"""The demo model as Ollama's own client sees it."""

from collections.abc import Callable
from typing import Any

import ollama
import pytest
import trio

from smista.demo.script import Script, parse_script
from tests.demo.test_server import EDIT, WANTED, one_rule, open_model

FILE = {"role": "user", "content": "hello.txt:\nHelo, world!"}
ASK = {"role": "user", "content": "fix the typo in @hello.txt"}


async def vendor(
    talk: Callable[[ollama.Client], Any], script: Script | None = None, key: str = "none"
) -> Any:
    """Run *talk* with the vendor's blocking client in a thread."""

    def run(url: str) -> Any:
        host = url.removesuffix("/v1")
        client = ollama.Client(host=host, headers={"Authorization": f"Bearer {key}"})
        try:
            return talk(client)
        finally:
            client._client.close()

    async with open_model(script) as url:
        return await trio.to_thread.run_sync(run, url)


async def test_it_parses_a_stream_with_reasoning_a_tool_call_and_usage():
    def talk(client: ollama.Client) -> list[Any]:
        return list(client.chat("demo", [FILE, ASK], tools=[EDIT], stream=True, think=True))

    parts = await vendor(talk)
    text = "".join(part.message.content or "" for part in parts)
    assert text == "I will correct the spelling in hello.txt. "
    assert any(part.message.thinking for part in parts)
    calls = [call for part in parts for call in part.message.tool_calls or ()]
    assert [(c.function.name, c.function.arguments) for c in calls] == [("edit_file", WANTED)]
    assert (parts[-1].done, parts[-1].done_reason) == (True, "stop")
    assert parts[-1].prompt_eval_count > 0
    assert parts[-1].eval_count > 0


async def test_it_goes_on_after_a_tool_result_without_streaming():
    def talk(client: ollama.Client) -> tuple[Any, Any]:
        first = client.chat("demo", [FILE, ASK], tools=[EDIT])
        result = {"role": "tool", "tool_name": "edit_file", "content": "ok"}
        return first, client.chat("demo", [FILE, ASK, first.message, result], tools=[EDIT])

    first, second = await vendor(talk)
    assert first.message.tool_calls[0].function.name == "edit_file"
    assert second.message.content.startswith('I replaced "Helo" with "Hello"')
    assert not second.message.tool_calls


async def test_it_lists_and_shows_models():
    script = parse_script(
        "models = ['a', 'b:7b']\napi_key = 'right'\n[[rules]]\nname = 'x'\nsay = [{ text = 'a' }]"
    )

    def talk(client: ollama.Client) -> tuple[list[Any], Any]:
        return [m.model for m in client.list().models], client.show("b:7b")

    names, shown = await vendor(talk, script, "right")
    assert names == ["a", "b:7b"]
    assert shown.capabilities == ["completion", "tools", "thinking", "vision"]
    assert shown.modelinfo["demo.context_length"] == 32_768

    def locked(client: ollama.Client) -> None:
        with pytest.raises(ollama.ResponseError, match="another API key"):
            client.list()

    await vendor(locked, script, "wrong")


async def test_it_understands_refusals_before_and_in_the_middle_of_an_answer():
    def refused(client: ollama.Client) -> int:
        with pytest.raises(ollama.ResponseError, match="the script says so") as caught:
            client.chat("demo", [ASK])
        return caught.value.status_code

    def broken(client: ollama.Client) -> None:
        with pytest.raises(ollama.ResponseError, match="gone"):
            list(client.chat("demo", [ASK], stream=True))

    assert await vendor(refused, one_rule("{ error = { status = 503 } }")) == 503
    await vendor(broken, one_rule("{ text = 'a' }, { error = { message = 'gone' } }"))
