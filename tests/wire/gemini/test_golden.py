"""The Gemini API, byte by byte."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.errors import BadStream
from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt, Tool
from smista.providers.gemini import Gemini
from tests.wire.golden import READ, Golden, crossing, cut, message

DOTTED = Tool(name="notes.list", description="List.", permission="file_read", parameters={})
PROMPTS = {
    "text": Prompt(
        model="gemini-2.5-flash",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=4000,
    ),
    "two_calls": Prompt(
        model="gemini-3.8-flash",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and list"),),
        tools=(READ, DOTTED),
        effort=Effort.MEDIUM,
    ),
    "continued": Prompt(
        model="gemini-4-neon",
        system="",
        messages=crossing("gemini", "anthropic"),
        tools=(READ,),
    ),
    "blocked": Prompt(
        model="gemma-3-27b-it",
        system="Be kind.",
        messages=(message(Role.USER, "say it"),),
        tools=(READ,),
        effort=Effort.LOW,
    ),
}
NAMES = sorted(PROMPTS)
GOLDEN = Golden(Path(__file__).parent, Gemini(), PROMPTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_sent_as_recorded(name):
    assert GOLDEN.sent(name) == GOLDEN.body(name)
    request = Gemini().request(PROMPTS[name])
    model = PROMPTS[name].model
    where = "https://generativelanguage.googleapis.com/v1beta/models"
    assert request.url == f"{where}/{model}:streamGenerateContent?alt=sse"
    assert request.stream
    assert request.body == Gemini().request(PROMPTS[name]).body


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
    for at in range(len(raw)):
        assert GOLDEN.told(name, raw[:at], raw[at:]) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_before_the_last_chunk_is_a_bad_stream(name):
    raw = GOLDEN.response(name)
    # A JSON text is whole with its last bracket; the line's end adds nothing.
    for at in range(len(raw.rstrip())):
        _, fault = GOLDEN.told(name, raw[:at])
        assert isinstance(fault, BadStream)
        assert fault.retryable
        assert fault.details["kind"] in ("truncated_stream", "empty_response")
