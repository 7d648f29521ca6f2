"""Golden bytes: what goes out for a prompt, and what a recorded answer says.

Each name stands for NAME.request.json, the body that is sent, NAME.response.sse, the bytes
that come back, and NAME.events.json, the events they mean.
"""

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.errors import BadStream
from smista.core.history import Call, Message, Role
from smista.core.intents import Effort
from smista.core.model_ref import Capabilities
from smista.core.prompt import Image, Prompt, Tool
from smista.core.stream import StreamEvent
from smista.providers.compatible import Compatible
from smista.providers.masking import create_mask

HERE = Path(__file__).parent
NAME = "openai-compat:lab"
FULL = Capabilities(streaming=True, tools=True, system_prompt=True, images=True, reasoning=True)
MODELS = {
    "big": FULL,
    "plain": Capabilities(streaming=True),
    "slow": Capabilities(tools=True, system_prompt=True),
}
READ = Tool(
    name="read_file",
    description="Read a file.",
    permission="file_read",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
)


def message(role: Role, text: str, **more: Any) -> Message:
    return Message(uuid="u", role=role, text=text, run_id="r", **more)


def call(call_id: str, theirs: str, arguments: str) -> Call:
    return Call(call_id=call_id, provider_call_id=theirs, name="read_file", arguments=arguments)


HISTORY = (
    message(Role.USER, "compare a.txt and b.txt"),
    message(
        Role.ASSISTANT,
        "Let me look.",
        calls=(call("c1", "call_1", '{"path":"a.txt"}'), call("c2", "call_2", "")),
        provider=NAME,
    ),
    message(Role.TOOL, "alpha", call_id="c1"),
    message(Role.TOOL, "path is missing", call_id="c2", is_error=True),
    message(
        Role.ASSISTANT,
        "",
        calls=(call("c3", "toolu|odd id", '{"path":"b.txt"}'),),
        provider="anthropic",
    ),
    message(Role.TOOL, "beta 🦊", call_id="c3"),
)

PROMPTS = {
    "text": Prompt(
        model="big",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=512,
    ),
    "two_calls": Prompt(
        model="big",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and b.txt"),),
        tools=(READ,),
    ),
    "continued": Prompt(model="plain", system="Be kind.", messages=HISTORY, effort=Effort.LOW),
    "not_streamed": Prompt(
        model="slow",
        system="Answer briefly.",
        messages=(message(Role.USER, "hello"),),
        tools=(READ,),
        effort=Effort.HIGH,
    ),
}
NAMES = sorted(PROMPTS)


def dialect() -> Compatible:
    return Compatible(provider=NAME, base_url="http://127.0.0.1:8000/v1/", models=MODELS)


def response(name: str) -> bytes:
    return (HERE / f"{name}.response.sse").read_bytes()


def expected(name: str) -> Any:
    return json.loads((HERE / f"{name}.events.json").read_text("utf-8"))


def decode(name: str, *pieces: bytes) -> tuple[Any, Any]:
    """Return the events as JSON, and the fault."""
    decoder = dialect().decoder(dialect().request(PROMPTS[name]), create_mask(None))
    events: list[StreamEvent] = [found for piece in pieces for found in decoder.feed(piece)]
    events += decoder.close()
    return [{"event": type(event).__name__, **asdict(event)} for event in events], decoder.fault


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_sent_as_recorded(name):
    request = dialect().request(PROMPTS[name])
    wanted = json.loads((HERE / f"{name}.request.json").read_text("utf-8"))
    assert json.loads(request.body) == wanted
    assert request.url == "http://127.0.0.1:8000/v1/chat/completions"
    assert request.stream is wanted["stream"]
    assert request.body == dialect().request(PROMPTS[name]).body


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_means_the_recorded_events(name):
    assert decode(name, response(name)) == (expected(name), None)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_chunking_gives_the_same_events(name, data):
    raw = response(name)
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=20))
    edges = [0, *sorted(cuts), len(raw)]
    pieces = [raw[a:b] for a, b in pairwise(edges)]
    assert decode(name, *pieces) == (expected(name), None)


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_before_the_finish_reason_is_a_bad_stream(name):
    raw = response(name)
    finished = raw.index(b'"finish_reason":"') if b"data:" in raw else len(raw) - 2
    for at in range(finished):
        _, fault = decode(name, raw[:at])
        assert isinstance(fault, BadStream)
        assert fault.retryable
