"""OpenAI's Responses API, byte by byte."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import response_create_params
from pydantic import TypeAdapter

from smista.core.errors import BadStream
from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt, Tool
from smista.providers.facts import load_facts
from smista.providers.openai import OpenAI
from tests.wire.golden import READ, Golden, crossing, cut, message

ODD = Tool(
    name="files.read/all of them, whatever their names are and wherever they may lie, today",
    description="A name that the wire does not take.",
    permission="file_read",
    parameters={},
)
PROMPTS = {
    "text": Prompt(
        model="gpt-6.2-sol",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=512,
    ),
    "two_calls": Prompt(
        model="gpt-5.4-mini-2026-03-17",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and b.txt"),),
        tools=(READ, ODD),
        effort=Effort.LOW,
    ),
    "continued": Prompt(
        model="gpt-4.1-2025-04-14",
        system="Be kind.",
        messages=crossing("openai", "anthropic"),
        tools=(READ,),
    ),
    "refused": Prompt(
        model="gpt-5-nano",
        system="",
        messages=(message(Role.SYSTEM, "be good"), message(Role.USER, "say it")),
        effort=Effort.XHIGH,
    ),
}
NAMES = sorted(PROMPTS)
DIALECT = OpenAI(efforts=load_facts().efforts)
GOLDEN = Golden(Path(__file__).parent, DIALECT, PROMPTS)
SCHEMA: TypeAdapter[Any] = TypeAdapter(response_create_params.ResponseCreateParamsStreaming)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_sent_as_recorded(name):
    assert GOLDEN.sent(name) == GOLDEN.body(name)
    request = DIALECT.request(PROMPTS[name])
    assert request.url == "https://api.openai.com/v1/responses"
    assert request.stream
    assert request.body == DIALECT.request(PROMPTS[name]).body


@pytest.mark.parametrize("name", NAMES)
def test_what_is_sent_has_the_shape_that_the_maker_describes(name):
    sent = SCHEMA.validate_python(GOLDEN.sent(name))
    for part in ("input", "tools"):
        list(sent.get(part, ()))  # lists are looked at as they are read


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_means_the_recorded_events(name):
    assert GOLDEN.told(name) == (GOLDEN.events(name), None)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_chunking_gives_the_same_events(name, data):
    raw = GOLDEN.response(name)
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=20))
    assert GOLDEN.told(name, *cut(raw, cuts)) == (GOLDEN.events(name), None)


@pytest.mark.parametrize("name", NAMES)
def test_every_split_in_two_and_every_byte_alone_give_the_same_events(name):
    raw = GOLDEN.response(name)
    wanted = (GOLDEN.events(name), None)
    assert GOLDEN.told(name, *(raw[at : at + 1] for at in range(len(raw)))) == wanted
    for at in range(0, len(raw), 3):
        assert GOLDEN.told(name, raw[:at], raw[at:]) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_before_the_last_event_is_a_bad_stream(name):
    raw = GOLDEN.response(name)
    last = raw.rindex(b"}")
    for at in range(0, last, 7):
        _, fault = GOLDEN.told(name, raw[:at])
        assert isinstance(fault, BadStream)
        assert fault.retryable


def test_the_names_of_tools_are_mapped_both_ways():
    request = DIALECT.request(PROMPTS["two_calls"])
    ((wire, ours),) = request.names.items()
    assert ours == ODD.name
    assert len(wire) <= 64
    raw = GOLDEN.response("two_calls").replace(
        b'"name":"read_file"', b'"name":"%b"' % wire.encode()
    )
    events, fault = GOLDEN.read("two_calls", [raw])
    assert fault is None
    assert [e.name for e in events if hasattr(e, "name")] == [ODD.name] * 4
