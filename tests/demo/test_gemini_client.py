"""The demo model as Google's own client sees it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import trio
from google import genai
from google.genai import errors, types

from smista.demo.script import Script, parse_script
from tests.demo.test_server import WANTED, one_rule, open_model

ASKED = [
    types.Part(text="hello.txt:\nHelo, world!"),
    types.Part(text="fix the typo in @hello.txt"),
]
USER = types.Content(role="user", parts=ASKED)
EDIT = types.FunctionDeclaration(
    name="edit_file",
    description="Replace text in a file.",
    parameters_json_schema={"type": "object", "properties": {"path": {"type": "string"}}},
)
WITH_TOOL = types.GenerateContentConfig(
    system_instruction="Be good.",
    tools=[types.Tool(function_declarations=[EDIT])],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)


async def vendor(
    talk: Callable[[genai.Client], Any], script: Script | None = None, key: str = "none"
) -> Any:
    """Run *talk* with the vendor's blocking client in a thread."""

    def run(url: str) -> Any:
        options = types.HttpOptions(base_url=url.removesuffix("/v1"))
        client = genai.Client(api_key=key, vertexai=False, http_options=options)
        try:
            return talk(client)
        finally:
            client.close()

    async with open_model(script) as url:
        return await trio.to_thread.run_sync(run, url)


async def test_it_parses_a_stream_with_reasoning_a_tool_call_and_usage():
    def talk(client: genai.Client) -> list[Any]:
        ask = client.models.generate_content_stream
        return list(ask(model="demo", contents=[USER], config=WITH_TOOL))

    chunks = await vendor(talk)
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    assert any(part.thought and part.text for part in parts)
    said = "".join(part.text for part in parts if part.text and not part.thought)
    assert said == "I will correct the spelling in hello.txt. "
    (call,) = [part.function_call for part in parts if part.function_call]
    assert (call.name, call.args) == ("edit_file", WANTED)
    assert chunks[-1].candidates[0].finish_reason is types.FinishReason.STOP
    usage = chunks[-1].usage_metadata
    assert usage.prompt_token_count > 0
    assert usage.thoughts_token_count > 0
    counts = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    assert usage.total_token_count == sum(counts)


async def test_it_goes_on_after_a_tool_result_without_streaming():
    def talk(client: genai.Client) -> tuple[Any, Any]:
        ask = client.models.generate_content
        first = ask(model="demo", contents=[USER], config=WITH_TOOL)
        call = first.function_calls[0]
        answer = types.FunctionResponse(id=call.id, name=call.name, response={"output": "ok"})
        result = types.Content(role="user", parts=[types.Part(function_response=answer)])
        history = [USER, first.candidates[0].content, result]
        return call, ask(model="demo", contents=history, config=WITH_TOOL)

    call, second = await vendor(talk)
    assert json.loads(json.dumps(call.args)) == WANTED
    assert second.text.startswith('I replaced "Helo" with "Hello"')


async def test_it_lists_models_and_understands_refusals():
    script = parse_script(
        "models = ['a', 'b']\napi_key = 'right'\n"
        "[[rules]]\nname = 'x'\nsay = [{ error = { status = 429 } }]"
    )

    def limited(client: genai.Client) -> tuple[int, str]:
        with pytest.raises(errors.ClientError, match="the script says so") as caught:
            client.models.generate_content(model="a", contents=[USER])
        return caught.value.code, caught.value.status

    def list_models(client: genai.Client) -> list[str]:
        return [model.name for model in client.models.list()]

    def strange(client: genai.Client) -> str:
        with pytest.raises(errors.ClientError, match="another API key") as caught:
            client.models.generate_content(model="a", contents=[USER])
        return caught.value.status

    assert await vendor(list_models, script, "right") == ["models/a", "models/b"]
    assert await vendor(limited, script, "right") == (429, "RESOURCE_EXHAUSTED")
    assert await vendor(strange, script, "wrong") == "UNAUTHENTICATED"


async def test_it_notices_an_error_in_the_middle_of_a_stream():
    script = one_rule("{ text = 'half a' }, { error = { status = 503, message = 'too busy' } }")

    def talk(client: genai.Client) -> str | None:
        chunks = client.models.generate_content_stream(model="a", contents=[USER])
        said = next(chunks).text
        with pytest.raises(errors.APIError, match="too busy"):
            next(chunks)
        return said

    assert await vendor(talk, script) == "half a"
