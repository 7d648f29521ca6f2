"""Requests to Ollama, beyond the recorded bytes."""

import json
from dataclasses import replace
from typing import Any

import pytest
from ollama._types import ChatRequest

from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Image, Prompt
from smista.providers.ollama import CLOUD_URL, Ollama
from tests.wire.golden import message
from tests.wire.ollama.prompts import GOLDEN, PROMPTS, known


@pytest.mark.parametrize("name", GOLDEN.names)
def test_what_is_sent_has_the_shape_that_the_maker_describes(name):
    ChatRequest.model_validate(GOLDEN.sent(name))


def test_a_prompt_has_room_in_the_context_it_asks_for_and_the_steps_are_few():
    sizes = set()
    for length in range(0, 600_000, 5_000):
        long = replace(PROMPTS["text"], messages=(message(Role.USER, "x" * length),))
        body = body_of(long, Ollama())
        sizes.add(body["options"]["num_ctx"])
        assert body["options"]["num_ctx"] >= length // 4 + 512
    assert sizes == {8192 << step for step in range(6)}


def body_of(prompt: Prompt, dialect: Ollama) -> Any:
    return json.loads(dialect.request(prompt).body)


@pytest.mark.parametrize("window", [4096, 8192, 20_000])
def test_no_more_context_is_asked_for_than_the_model_has(window):
    long = replace(PROMPTS["text"], messages=(message(Role.USER, "x" * 60_000),))
    small = Ollama(known=lambda name: known(name, window=window))
    assert body_of(long, small)["options"]["num_ctx"] == window


def test_a_picture_takes_the_room_of_a_picture_however_many_bytes_it_has():
    large = replace(PROMPTS["text"], images=(Image(media_type="image/png", data="A" * 900_000),))
    assert body_of(large, Ollama())["options"]["num_ctx"] == 8192


def test_the_cloud_is_told_no_size_of_context_for_it_keeps_the_largest():
    cloud = Ollama(base_url=CLOUD_URL, local=False)
    body = body_of(PROMPTS["text"], cloud)
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
    prompts = (replace(PROMPTS["text"], effort=effort) for effort in Effort)
    assert [body_of(prompt, dialect)["think"] for prompt in prompts] == wanted
