"""One conversation that changes its provider at every turn, with tool calls in between."""

import json
from collections import Counter
from itertools import permutations
from typing import Any
from urllib.parse import urlsplit

import pytest
from anthropic.types import message_create_params
from google.genai import types as genai
from hypothesis import given
from ollama._types import ChatRequest
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import TypeAdapter

from smista.core.history import Call, Message, Role
from smista.core.model_ref import Capabilities
from smista.core.prompt import Prompt
from smista.core.stream import StreamEvent, ToolCallEnded
from smista.core.tools import BY_NAME
from smista.demo.answer import tokens
from smista.demo.formats import find_format
from smista.demo.script import Step, Text, Tool
from smista.providers.anthropic import Anthropic
from smista.providers.compatible import Compatible
from smista.providers.gemini import Gemini
from smista.providers.masking import create_mask
from smista.providers.ollama import Ollama
from smista.providers.openai import OpenAI
from smista.providers.wire import Dialect
from tests.providers.chat import text_of
from tests.providers.histories import histories
from tests.providers.wire_schemas import check_request

ABLE = Capabilities(streaming=True, tools=True, system_prompt=True, reasoning=True)
COMPAT = "openai-compat:lab"
DIALECTS: dict[str, Dialect] = {
    "anthropic": Anthropic(),
    COMPAT: Compatible(provider=COMPAT, base_url="http://127.0.0.1:1/v1", models={"m": ABLE}),
    "gemini": Gemini(),
    "ollama": Ollama(),
    "openai": OpenAI(),
}
NAMES = sorted(DIALECTS)
ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "openai": TypeAdapter(response_create_params.ResponseCreateParamsStreaming),
    COMPAT: TypeAdapter(completion_create_params.CompletionCreateParamsStreaming),
    "anthropic": TypeAdapter(message_create_params.MessageCreateParamsStreaming),
}
TOOLS = (BY_NAME["read_file"], BY_NAME["shell"])
# Ids that one server makes and another one would not take.
STEPS: tuple[Step, ...] = (
    Text(text="Let me look."),
    Tool(tool="read_file", arguments={"path": "a.txt"}, id="functions.read:0"),
    Tool(tool="shell", arguments={"command": "ls"}, id="call_" + "x" * 70),
)


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


class Conversation:
    """A history that grows as a session's does; each answer comes through a real decoder."""

    def __init__(self) -> None:
        self.history: list[Message] = []
        self.texts: list[str] = []

    def user(self, text: str) -> None:
        self._add(Role.USER, text)
        self.texts.append(text)

    def turn(self, provider: str, *steps: Step) -> list[StreamEvent]:
        """Ask *provider*, check what is sent, and keep what it says."""
        dialect = DIALECTS[provider]
        request = dialect.request(
            Prompt(model="m", system="Be good.", messages=tuple(self.history), tools=TOOLS)
        )
        path = urlsplit(request.url).path
        body = json.loads(request.body)
        require_valid(provider, body)
        sent = check_request(path, body)
        assert [text.removeprefix("Error: ") for text in sent] == self.texts
        raw = spoken(path, request.body, steps)
        decoder = dialect.decoder(request, create_mask(None))
        events = [*decoder.feed(raw), *decoder.close()]
        assert decoder.fault is None
        self._keep(provider, events)
        return events

    def results(self, *texts: str) -> None:
        """Answer the calls of the last turn; a text that starts with "no" tells of a failure."""
        asked = self.history[-1].calls
        for call, text in zip(asked, texts, strict=True):
            failed = text.startswith("no ")
            self._add(Role.TOOL, text, call_id=call.call_id, is_error=failed)
            self.texts.append(text)

    def _keep(self, provider: str, events: list[StreamEvent]) -> None:
        ended = [event for event in events if isinstance(event, ToolCallEnded)]
        number = len(self.history)
        calls = tuple(
            Call(
                call_id=f"c{number}-{event.index}",
                provider_call_id=event.id,
                name=event.name,
                arguments=event.arguments,
            )
            for event in ended
        )
        self._add(Role.ASSISTANT, text_of(events), calls=calls, provider=provider)
        self.texts.append(text_of(events))

    def _add(self, role: Role, text: str, **more: object) -> None:
        self.history.append(Message(uuid="u", role=role, text=text, run_id="r", **more))


def spoken(path: str, body: bytes, steps: tuple[Step, ...]) -> bytes:
    """Return the stream in which the demo model says *steps* to this request."""
    wire = find_format(path)
    assert wire is not None
    asked = wire.read_request(body, path)
    counted = tokens(asked, steps)
    writer = wire.create_writer(asked, counted)
    said = [piece for step in steps for piece in writer.step(step)]
    return b"".join([writer.begin(), *said, writer.end(counted)])


@pytest.mark.parametrize("order", list(permutations(NAMES))[::7])
def test_a_conversation_goes_on_at_any_other_provider(order):
    talk = Conversation()
    for number, provider in enumerate(order):
        talk.user(f"question {number}")
        events = talk.turn(provider, *STEPS)
        calls = [e for e in events if isinstance(e, ToolCallEnded)]
        assert [(c.name, json.loads(c.arguments)) for c in calls] == [
            ("read_file", {"path": "a.txt"}),
            ("shell", {"command": "ls"}),
        ]
        talk.results("alpha è 🦊", "no such command")
        following = order[(number + 1) % len(order)]
        talk.turn(following, Text(text=f"answer {number}"))
    assert len(talk.history) == 5 * len(order)


@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_the_tool_loop_itself_may_change_its_provider(first, second):
    talk = Conversation()
    talk.user("look twice")
    for provider in (first, second, first):
        talk.turn(provider, *STEPS)
        talk.results("alpha", "beta")
    talk.turn(second, Text(text="done"))
    assert talk.history[-1].text == "done"


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
@given(messages=histories())
def test_any_history_is_a_request_that_the_provider_takes(provider, messages):
    prompt = Prompt(model="m", system="s", messages=messages, tools=TOOLS)
    request = DIALECTS[provider].request(prompt)
    body = json.loads(request.body)
    require_valid(provider, body)
    check_request(urlsplit(request.url).path, body)


@given(histories())
def test_any_history_is_a_valid_request_to_openai(history):
    body = json.loads(
        DIALECTS["openai"].request(Prompt(model="m", system="s", messages=history)).body
    )
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
    body = json.loads(
        DIALECTS["ollama"].request(Prompt(model="m", system="s", messages=history)).body
    )
    require_valid("ollama", body)
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_name"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call["function"]["name"] for call in message.get("tool_calls", ())]
    assert waiting == []


@given(histories())
def test_any_history_is_a_valid_request_to_a_compatible_server(history):
    body = json.loads(
        DIALECTS[COMPAT].request(Prompt(model="m", system="s", messages=history)).body
    )
    require_valid(COMPAT, body)
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            assert len(set(waiting)) == len(waiting)
    assert waiting == []
