"""One conversation, another provider at every turn: each request is valid on its own wire."""

import json
from collections import Counter
from functools import partial
from itertools import permutations
from typing import Any

import pytest
import trio
from anthropic.types import message_create_params
from google.genai import types as genai
from hypothesis import given
from ollama._types import ChatRequest
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import SecretStr, TypeAdapter

from smista.core.history import Call, Message, Role
from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.core.prompt import Prompt
from smista.core.stream import Finish
from smista.core.tools import TOOLS
from smista.demo.script import parse_script
from smista.demo.server import Seen, serve_demo_model
from smista.providers.ollama import Ollama
from smista.providers.openai import OpenAI
from smista.providers.registry import CompatInstance, Endpoints, Registry, open_registry
from tests.providers.chat import calls_of, end_of, text_of
from tests.providers.histories import histories

COMPAT = "openai-compat:lab"
PROVIDERS = ("anthropic", "gemini", "ollama", "openai", COMPAT)
SCRIPT = parse_script("""
[[rules]]
name = "the result came"
when = { results = true }
say = [{ reasoning = "Hm. " }, { text = "I read: {result}" }]

[[rules]]
name = "two files"
say = [
    { text = "Let me look." },
    { tool = "read_file", arguments = { path = "a.txt" } },
    { tool = "list_files", arguments = {} },
]
""")
ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "openai": TypeAdapter(response_create_params.ResponseCreateParamsStreaming),
    COMPAT: TypeAdapter(completion_create_params.CompletionCreateParamsStreaming),
    "anthropic": TypeAdapter(message_create_params.MessageCreateParamsStreaming),
}
ORDERS = sorted(permutations(PROVIDERS))[::17]


def require_valid(provider: str, body: Any) -> None:
    """Fail unless *body* has the shape that the provider's maker describes."""
    match provider:
        case "gemini":
            for content in body["contents"]:
                genai.Content.model_validate(content)
            for tool in body.get("tools", ()):
                genai.Tool.model_validate(tool)
        case "ollama":
            ChatRequest.model_validate(body)
        case _:
            valid = ADAPTERS[provider].validate_python(body)
            for part in ("input", "messages", "tools"):
                list(valid.get(part, ()))  # lists are looked at as they are read


class Talk:
    """A conversation that grows; *seen* is what came in at the model."""

    def __init__(self, registry: Registry, seen: list[Seen]) -> None:
        self._registry = registry
        self._seen = seen
        self.history: list[Message] = []

    def add(self, role: Role, text: str, **more: Any) -> None:
        number = str(len(self.history))
        self.history.append(Message(uuid=number, role=role, text=text, run_id="r", **more))

    async def ask(self, name: str) -> Finish:
        """Let *name* answer, note what it said, and check what it was sent."""
        provider = self._registry.provider(name)
        assert provider is not None
        prompt = Prompt(
            model="demo",
            system="Be good.",
            messages=tuple(self.history),
            tools=TOOLS,
            max_output_tokens=500,
            local=name == "ollama",
        )
        async with provider.open_stream(prompt, key=SecretStr("k")) as stream:
            events = [event async for event in stream]
        require_valid(name, self._seen[-1].asked.body)
        calls = tuple(
            Call(call_id=f"{len(self.history)}-{at}", provider_call_id=i, name=n, arguments=a)
            for at, (i, n, a) in enumerate(calls_of(events))
        )
        self.add(Role.ASSISTANT, text_of(events), calls=calls, provider=name, model="demo")
        return end_of(events).finish


@pytest.mark.parametrize("order", ORDERS)
async def test_a_conversation_goes_on_with_another_provider_at_every_turn(order):
    seen: list[Seen] = []
    async with trio.open_nursery() as nursery:
        serve = partial(serve_demo_model, script=SCRIPT, seen=seen.append)
        url = f"http://127.0.0.1:{await nursery.start(serve)}"
        endpoints = Endpoints(
            anthropic=url, gemini=url, openai=f"{url}/v1", own_ollama=url, ollama_cloud=url
        )
        able = Capabilities(streaming=True, tools=True, system_prompt=True)
        model = ModelDescriptor(
            provider=COMPAT, model="demo", local=True, max_context_tokens=9, capabilities=able
        )
        lab = CompatInstance(id=COMPAT, base_url=f"{url}/v1", local=True, models=(model,))
        async with open_registry([lab], endpoints=endpoints) as registry:
            talk = Talk(registry, seen)
            for asking, reading in zip(order, (*order[1:], order[0]), strict=True):
                talk.add(Role.USER, "what is in here?")
                assert await talk.ask(asking) is Finish.TOOL_CALLS
                for call in talk.history[-1].calls:
                    talk.add(Role.TOOL, f"result of {call.call_id}", call_id=call.call_id)
                assert await talk.ask(reading) is Finish.STOP
                last = talk.history[-2].text
                assert talk.history[-1].text == f"I read: {last}"
        nursery.cancel_scope.cancel()


@given(histories())
def test_any_history_is_a_valid_request_to_openai(history):
    body = json.loads(OpenAI().request(Prompt(model="m", system="s", messages=history)).body)
    require_valid("openai", body)
    called = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
    outputs = [i["call_id"] for i in body["input"] if i["type"] == "function_call_output"]
    assert called == outputs
    assert max(Counter(called).values(), default=1) == 1
    for item in body["input"]:
        if item["type"] == "function_call":
            assert isinstance(json.loads(item["arguments"]), dict)
            assert 0 < len(item["name"]) <= 64
            assert 0 < len(item["call_id"]) <= 64


@given(histories())
def test_any_history_is_a_valid_request_to_ollama(history):
    body = json.loads(Ollama().request(Prompt(model="m", system="s", messages=history)).body)
    require_valid("ollama", body)
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_name"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call["function"]["name"] for call in message.get("tool_calls", ())]
    assert waiting == []
