"""The demo model as OpenAI's own client sees it through the Responses API."""

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from tests.demo.test_server import WANTED, one_rule, open_model, vendor

FILE = {"role": "user", "content": "hello.txt:\nHelo, world!"}
ASK = {"role": "user", "content": [{"type": "input_text", "text": "fix the typo in @hello.txt"}]}
EDIT = {
    "type": "function",
    "name": "edit_file",
    "description": "Replace text in a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    "strict": False,
}


async def talk_to_demo(talk: Callable[[openai.OpenAI], Any], say: str | None = None) -> Any:
    async with open_model(None if say is None else one_rule(say)) as url:
        return await vendor(talk, url)


async def test_it_parses_a_stream_with_reasoning_a_tool_call_and_usage():
    def talk(client: openai.OpenAI) -> Any:
        ask = {"model": "demo", "input": [FILE, ASK], "tools": [EDIT], "instructions": "Be good."}
        with client.responses.stream(**ask) as stream:
            kinds = [event.type for event in stream]
            return kinds, stream.get_final_response()

    kinds, response = await talk_to_demo(talk)
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    thought, said, call = response.output
    assert (thought.type, said.type, call.type) == ("reasoning", "message", "function_call")
    assert response.output_text == "I will correct the spelling in hello.txt. "
    assert (call.name, json.loads(call.arguments)) == ("edit_file", WANTED)
    assert response.usage.input_tokens > 0
    details = response.usage.output_tokens_details
    assert response.usage.output_tokens > details.reasoning_tokens > 0


async def test_it_goes_on_after_a_tool_result_without_streaming():
    def talk(client: openai.OpenAI) -> tuple[Any, Any]:
        first = client.responses.create(model="demo", input=[FILE, ASK], tools=[EDIT])
        calls = [item for item in first.output if item.type == "function_call"]
        result = {"type": "function_call_output", "call_id": calls[0].call_id, "output": "ok"}
        more = [FILE, ASK, *first.output, result]
        return calls, client.responses.create(model="demo", input=more, tools=[EDIT])

    calls, second = await talk_to_demo(talk)
    assert [call.name for call in calls] == ["edit_file"]
    assert second.status == "completed"
    assert second.output_text.startswith('I replaced "Helo" with "Hello"')


async def test_it_understands_refusals_before_and_in_the_middle_of_an_answer():
    def limited(client: openai.OpenAI) -> str | None:
        with pytest.raises(openai.RateLimitError, match="the script says so") as caught:
            client.responses.create(model="demo", input="hi")
        return caught.value.response.headers.get("retry-after")

    def broken(client: openai.OpenAI) -> list[Any]:
        return list(client.responses.create(model="demo", input="hi", stream=True))

    assert await talk_to_demo(limited, "{ error = { status = 429, retry_after = '7' } }") == "7"
    *_, last = await talk_to_demo(broken, "{ text = 'a' }, { error = { message = 'gone' } }")
    assert (last.type, last.message) == ("error", "gone")


@pytest.mark.parametrize("body", [{"input": 3}, {}])
async def test_a_body_that_is_no_request_is_told_so(body):
    def talk(client: openai.OpenAI) -> None:
        with pytest.raises(openai.BadRequestError, match="input"):
            client.post("/responses", body={"model": "demo", **body}, cast_to=object)

    await talk_to_demo(talk)
