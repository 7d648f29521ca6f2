"""Anthropic's Messages API, byte by byte."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.errors import BadStream
from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt
from smista.providers.anthropic import Anthropic
from tests.wire.golden import READ, Golden, crossing, cut, message

PROMPTS = {
    "text": Prompt(
        model="claude-opus-5-5",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=512,
    ),
    "two_calls": Prompt(
        model="claude-haiku-4-5-20251001",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and b.txt"),),
        tools=(READ,),
        effort=Effort.HIGH,
    ),
    "continued": Prompt(
        model="claude-sonnet-4-6",
        system="Be kind.",
        messages=crossing("anthropic", "openai"),
        tools=(READ,),
        effort=Effort.XHIGH,
    ),
    "refused": Prompt(
        model="claude-sonnet-5-5", system="", messages=(message(Role.USER, "say it"),)
    ),
}
NAMES = sorted(PROMPTS)
GOLDEN = Golden(Path(__file__).parent, Anthropic(), PROMPTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_sent_as_recorded(name):
    assert GOLDEN.sent(name) == GOLDEN.body(name)
    request = Anthropic().request(PROMPTS[name])
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert request.headers["anthropic-version"] == "2026-10-21"
    assert request.stream
    assert request.body == Anthropic().request(PROMPTS[name]).body


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
def test_every_truncation_before_the_stop_reason_is_a_bad_stream(name):
    raw = GOLDEN.response(name)
    for at in range(raw.index(b'"stop_reason":"')):
        _, fault = GOLDEN.told(name, raw[:at])
        assert isinstance(fault, BadStream)
        assert fault.retryable
        assert fault.details["kind"] in ("truncated_stream", "empty_response")
