"""Ollama's own chat API, byte by byte."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ollama._types import ChatRequest

from smista.core.errors import BadStream
from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt
from smista.providers.ollama import CLOUD_URL, Ollama
from smista.providers.ollama_facts import OllamaModel, read_model
from tests.wire.golden import READ, Golden, crossing, cut, message

PROMPTS = {
    "text": Prompt(
        model="qwen3-vl:8b",
        system="Answer briefly.",
        messages=(message(Role.USER, "What is in the picture?"),),
        images=(Image(media_type="image/png", data="iVBORw0KGgo="),),
        effort=Effort.XHIGH,
        max_output_tokens=512,
    ),
    "two_calls": Prompt(
        model="gpt-oss:20b",
        system="Use tools.",
        messages=(message(Role.USER, "read a.txt and b.txt"),),
        tools=(READ,),
        effort=Effort.XHIGH,
    ),
    "continued": Prompt(
        model="qwen2.5-coder:7b",
        system="Be kind.",
        messages=crossing("ollama", "anthropic"),
        tools=(READ,),
    ),
}
NAMES = sorted(PROMPTS)
LEVELS = {"gpt-oss:20b": ("low", "medium", "high")}


def known(name: str, *, window: int = 131_072, values: Any = (False, True)) -> OllamaModel:
    shown = {"model_info": {"a.context_length": window}, "thinking": {"values": list(values)}}
    model = read_model(name, shown, local=True, auth="none")
    assert model is not None
    return model


class JsonLinesGolden(Golden):
    def response(self, name: str) -> bytes:
        return (self._folder / f"{name}.response.jsonl").read_bytes()


DIALECT = Ollama(known=lambda name: known(name, values=LEVELS.get(name, (False, True))))
GOLDEN = JsonLinesGolden(Path(__file__).parent, DIALECT, PROMPTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_sent_as_recorded(name):
    assert GOLDEN.sent(name) == GOLDEN.body(name)
    request = DIALECT.request(PROMPTS[name])
    assert request.url == "http://127.0.0.1:11434/api/chat"
    assert request.stream
    assert request.body == DIALECT.request(PROMPTS[name]).body


@pytest.mark.parametrize("name", NAMES)
def test_what_is_sent_has_the_shape_that_the_maker_describes(name):
    ChatRequest.model_validate(GOLDEN.sent(name))


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
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\n\n"])
def test_every_split_in_two_and_every_byte_alone_give_the_same_events(name, ending):
    raw = GOLDEN.response(name).replace(b"\n", ending)
    wanted = (GOLDEN.events(name), None)
    assert GOLDEN.told(name, *(raw[at : at + 1] for at in range(len(raw)))) == wanted
    for at in range(len(raw)):
        assert GOLDEN.told(name, raw[:at], raw[at:]) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_the_last_line_counts_without_its_end_and_every_shorter_one_is_a_bad_stream(name):
    raw = GOLDEN.response(name).rstrip(b"\n")
    assert GOLDEN.told(name, raw) == (GOLDEN.events(name), None)
    for at in range(len(raw)):
        _, fault = GOLDEN.told(name, raw[:at])
        assert isinstance(fault, BadStream)
        assert fault.retryable


def test_a_prompt_has_room_in_the_context_it_asks_for_and_the_steps_are_few():
    sizes = set()
    for length in range(0, 600_000, 5_000):
        long = replace(PROMPTS["text"], messages=(message(Role.USER, "x" * length),))
        body = body_of(long, Ollama())
        sizes.add(body["options"]["num_ctx"])
        assert body["options"]["num_ctx"] >= length // 4 + 512
    assert sizes == {8192 << step for step in range(6)}


def body_of(prompt: Prompt, dialect: Ollama = DIALECT) -> Any:
    return JsonLinesGolden(Path(__file__).parent, dialect, {"it": prompt}).sent("it")


@pytest.mark.parametrize("window", [4096, 8192, 20_000])
def test_no_more_context_is_asked_for_than_the_model_has(window):
    long = replace(PROMPTS["text"], messages=(message(Role.USER, "x" * 60_000),))
    small = Ollama(known=lambda name: known(name, window=window))
    assert body_of(long, small)["options"]["num_ctx"] == window


def test_a_picture_takes_the_room_of_a_picture_however_many_bytes_it_has():
    large = replace(PROMPTS["text"], images=(Image(media_type="image/png", data="A" * 900_000),))
    assert body_of(large)["options"]["num_ctx"] == 8192


def test_the_cloud_is_told_no_size_of_context_for_it_keeps_the_largest():
    cloud = Ollama(base_url=CLOUD_URL, local=False)
    body = JsonLinesGolden(Path(__file__).parent, cloud, PROMPTS).sent("text")
    assert body["options"] == {"num_predict": 512}
    assert cloud.request(PROMPTS["text"]).url == "https://ollama.com/api/chat"


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ((False, True), [False, True, True, True]),
        ((True,), [True, True, True, True]),
        (("low", "medium", "high"), ["low", "medium", "high", "high"]),
        (("low", "high", "max"), ["low", "low", "high", "max"]),
        (("high",), ["high", "high", "high", "high"]),
        ((), [False, True, True, True]),
    ],
)
def test_effort_becomes_a_value_that_the_model_takes(values, wanted):
    dialect = Ollama(known=lambda name: known(name, values=values))
    prompts = {effort: replace(PROMPTS["text"], effort=effort) for effort in Effort}
    golden = JsonLinesGolden(Path(__file__).parent, dialect, prompts)
    assert [golden.sent(effort)["think"] for effort in Effort] == wanted
