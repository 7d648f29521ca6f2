"""The demo model as Anthropic's own client sees it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import anthropic
import pytest
import trio

from smista.demo import messages
from smista.demo.asked import Asked
from smista.demo.script import Script, Text, Tokens, Tool, parse_script
from tests.demo.test_server import WANTED, one_rule, open_model

FILE = {"type": "text", "text": "hello.txt:\nHelo, world!"}
ASK = {"type": "text", "text": "fix the typo in @hello.txt"}
USER = {"role": "user", "content": [FILE, ASK]}
EDIT = {
    "name": "edit_file",
    "description": "Replace text in a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


async def vendor(
    talk: Callable[[anthropic.Anthropic], Any], script: Script | None = None, key: str = "none"
) -> Any:
    """Run *talk* with the vendor's blocking client in a thread."""

    def run(url: str) -> Any:
        root = url.removesuffix("/v1")
        with anthropic.Anthropic(base_url=root, api_key=key, max_retries=0) as client:
            return talk(client)

    async with open_model(script) as url:
        return await trio.to_thread.run_sync(run, url)


async def test_it_parses_a_stream_with_reasoning_a_tool_call_and_usage():
    def talk(client: anthropic.Anthropic) -> Any:
        ask = {"model": "demo", "max_tokens": 500, "messages": [USER], "tools": [EDIT]}
        with client.messages.stream(**ask) as stream:
            kinds = [event.type for event in stream]
            return kinds, stream.get_final_message()

    kinds, message = await vendor(talk)
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    thought, said, call = message.content
    assert (thought.type, said.type, call.type) == ("thinking", "text", "tool_use")
    assert said.text == "I will correct the spelling in hello.txt. "
    assert (call.name, call.input) == ("edit_file", WANTED)
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > message.usage.output_tokens_details.thinking_tokens > 0


async def test_it_goes_on_after_a_tool_result_without_streaming():
    def talk(client: anthropic.Anthropic) -> tuple[Any, Any]:
        ask = partial(client.messages.create, model="demo", max_tokens=500, tools=[EDIT])
        first = ask(messages=[USER])
        call = first.content[-1]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "ok"}
        said = {"role": "assistant", "content": first.content}
        return first, ask(messages=[USER, said, {"role": "user", "content": [result]}])

    first, second = await vendor(talk)
    assert (first.content[-1].name, first.content[-1].input) == ("edit_file", WANTED)
    assert second.content[-1].text.startswith('I replaced "Helo" with "Hello"')
    assert (first.stop_reason, second.stop_reason) == ("tool_use", "end_turn")


async def test_it_lists_models_and_understands_refusals():
    script = parse_script(
        "models = ['a', 'b']\napi_key = 'right'\n"
        "[[rules]]\nname = 'x'\nsay = [{ error = { status = 429, retry_after = '7' } }]"
    )

    def limited(client: anthropic.Anthropic) -> str | None:
        with pytest.raises(anthropic.RateLimitError, match="the script says so") as caught:
            client.messages.create(model="a", max_tokens=9, messages=[USER])
        return caught.value.response.headers.get("retry-after")

    def list_models(client: anthropic.Anthropic) -> list[str]:
        return [model.id for model in client.models.list()]

    def strange(client: anthropic.Anthropic) -> str:
        with pytest.raises(anthropic.AuthenticationError, match="another API key") as caught:
            client.messages.create(model="a", max_tokens=9, messages=[USER])
        return str(caught.value.type)

    assert await vendor(list_models, script, "right") == ["a", "b"]
    assert await vendor(limited, script, "right") == "7"
    assert await vendor(strange, script, "wrong") == "authentication_error"


async def test_it_notices_an_overload_in_the_middle_of_a_stream():
    script = one_rule("{ text = 'half a' }, { error = { status = 529, message = 'Overloaded' } }")

    def talk(client: anthropic.Anthropic) -> str:
        with client.messages.stream(model="a", max_tokens=9, messages=[USER]) as stream:
            said = next(stream.text_stream)
            with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
                stream.until_done()
        return said

    assert await vendor(talk, script) == "half a"


async def test_a_request_without_max_tokens_is_refused_as_the_api_does():
    def talk(client: anthropic.Anthropic) -> str:
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.post("/v1/messages", body={"model": "a", "messages": [USER]}, cast_to=object)
        return str(caught.value)

    assert "max_tokens: Field required" in await vendor(talk)


async def test_cached_tokens_are_told_apart_from_new_ones():
    script = one_rule(
        "{ text = 'x' }, { usage = { input = 100, output = 9, cached = 80, reasoning = 4 } }"
    )

    def talk(client: anthropic.Anthropic) -> Any:
        return client.messages.create(model="a", max_tokens=9, messages=[USER]).usage

    usage = await vendor(talk, script)
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (20, 80, 9)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_fc_34_each_call_begins_once_and_ends_once_and_places_have_no_holes(count):
    steps = [Text(text="Let me look. "), *[Tool(tool="w", arguments={"f": 1})] * count]
    asked = Asked(model="demo", user="go", texts=("go",), digest="0" * 16)
    writer = messages.create_writer(asked, Tokens(input=1, output=1))
    said = [writer.begin(), *(piece for step in steps for piece in writer.step(step))]
    said.append(writer.end(Tokens(input=1, output=1)))
    events = [
        json.loads(line.removeprefix(b"data: "))
        for line in b"".join(said).splitlines()
        if line.startswith(b"data: ")
    ]
    blocks = [(e["type"].rpartition("_")[2], e["index"]) for e in events if "index" in e]
    marks = [(kind, index) for kind, index in blocks if kind != "delta"]
    assert marks == [(kind, at) for at in range(count + 1) for kind in ("start", "stop")]
    open_now: set[int] = set()
    for kind, index in blocks:
        assert kind == "start" or index in open_now
        (open_now.discard if kind == "stop" else open_now.add)(index)
    assert [e["type"] for e in events].index("message_stop") == len(events) - 1
