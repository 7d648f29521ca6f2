"""Shapes of answers of Ollama's chat API, and what its list of models means."""

import copy
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core import errors
from smista.core.model_ref import ModelDescriptor
from smista.core.prices import call_cost
from smista.core.prompt import Prompt
from smista.core.stream import Finish, StreamEnd
from smista.providers.masking import create_mask
from smista.providers.ollama import Ollama
from smista.providers.ollama_facts import is_remote, read_model, read_tags
from smista.providers.wire import Caps
from tests.providers.chat import Outcome, calls_of, end_of, text_of, usage_of
from tests.providers.test_chat_properties import damaged, paths

OVERFLOW = json.dumps(
    {
        "error": {
            "code": 400,
            "message": "request (8889 tokens) exceeds the available context size (4096 tokens)",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 8889,
            "n_ctx": 4096,
        }
    }
)


def line(done: bool = False, **message: Any) -> bytes:
    value = {"model": "m", "message": {"role": "assistant", **message}, "done": done}
    return json.dumps(value).encode() + b"\n"


def last(reason: str | None = "stop", **more: Any) -> bytes:
    value = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}
    return json.dumps({**value, "done_reason": reason, **more}).encode() + b"\n"


def call(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def decode(*pieces: bytes, caps: Caps | None = None) -> Outcome:
    dialect = Ollama(caps=caps)
    request = dialect.request(Prompt(model="m", system="", messages=()))
    decoder = dialect.decoder(request, create_mask(None))
    events = [found for piece in pieces for found in decoder.feed(piece)]
    events += decoder.close()
    assert decoder.done != (decoder.fault is not None)
    return events, decoder.fault


def good(*pieces: bytes) -> list[Any]:
    events, fault = decode(*pieces)
    assert fault is None, fault
    return events


def test_an_answer_that_was_not_streamed_is_one_line():
    told = last("stop").replace(b'"content": ""', b'"content": "hi"')
    assert text_of(good(told)) == "hi"


def test_fc_24_each_entry_is_a_call_of_its_own_with_or_without_an_id():
    calls = [call("w", {"f": 1}), call("w", {"f": 2}, id="b")]
    events = good(line(content="", tool_calls=calls), last())
    assert calls_of(events) == [("", "w", '{"f":1}'), ("b", "w", '{"f":2}')]
    assert end_of(events).finish is Finish.TOOL_CALLS


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "{}"),
        (None, "{}"),
        ('{"p":"a"}', '{"p":"a"}'),
        ({"p": "語"}, '{"p":"語"}'),
        ("no", "no"),
    ],
)
def test_fc_28_arguments_are_an_object_or_whatever_the_model_wrote(arguments, text):
    events = good(line(content="", tool_calls=[call("t", arguments)]), last())
    assert calls_of(events) == [("", "t", text)]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", Finish.STOP), ("length", Finish.LENGTH), (None, Finish.INFERRED)],
)
def test_the_reason_of_the_end_is_told(reason, finish):
    assert end_of(good(line(content="a"), last(reason))).finish is finish


@pytest.mark.parametrize("reason", ["load", "unload"])
def test_a_model_that_was_only_loaded_has_said_nothing(reason):
    _, fault = decode(last(reason))
    assert isinstance(fault, errors.BadStream)
    assert fault.details["kind"] == "empty_response"


def test_counts_that_are_left_out_are_not_known():
    assert usage_of(good(last(eval_count=3))).input_tokens is None
    assert usage_of(good(last(prompt_eval_count=3, prompt_eval_cached_count=9))).input_tokens == 9
    assert not [e for e in good(line(content="a"), last()) if hasattr(e, "cached_tokens")]


def test_fc_53_cached_tokens_are_part_of_the_input_and_cost_what_a_hand_calculation_says():
    counted = last(prompt_eval_count=10_000, prompt_eval_cached_count=8000, eval_count=500)
    model = ModelDescriptor(
        provider="ollama",
        model="m",
        max_context_tokens=100_000,
        input_cost_per_million_tokens="2.00",
        cache_read_cost_per_million_tokens="0.20",
        output_cost_per_million_tokens="8.00",
    )
    # 2,000 at 2.00, 8,000 at 0.20 and 500 at 8.00 a million; what was thought is in the 500.
    assert call_cost(usage_of(good(counted)), model) == Decimal("0.0096")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("an error was encountered while running the model", errors.ProviderFailure),
        (OVERFLOW, errors.ContextLengthExceeded),
        ("the input length exceeds the context length", errors.ContextLengthExceeded),
    ],
)
def test_fc_35_an_error_inside_the_stream_ends_it(said, kind):
    told = json.dumps({"error": said}).encode() + b"\n"
    events, fault = decode(line(content="well"), told, line(content="more"))
    assert type(fault) is kind
    assert text_of(events) == "well"


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (404, "model 'x' not found", errors.ModelNotFound),
        (400, '"m" does not support tools', errors.ProviderUnsupportedCapability),
        (400, OVERFLOW, errors.ContextLengthExceeded),
        (400, "the input length exceeds the context length", errors.ContextLengthExceeded),
        (401, "unauthorized", errors.InvalidProviderCredentials),
        (500, "llama runner process has terminated", errors.ProviderUnavailable),
        (503, "server busy, please try again", errors.ProviderUnavailable),
    ],
)
def test_a_refused_request_is_the_error_it_stands_for(status, said, kind):
    error = Ollama().failure(status, json.dumps({"error": said}).encode(), create_mask(None))
    assert type(error) is kind


def test_fc_40_the_numbers_of_an_overflow_are_unwrapped():
    error = Ollama().failure(400, json.dumps({"error": OVERFLOW}).encode(), create_mask(None))
    assert (error.details["tokens"], error.details["limit"]) == (8889, 4096)


@pytest.mark.parametrize("status", [404, 405])
def test_a_page_where_no_ollama_lives_is_named_as_such(status):
    error = Ollama().failure(status, b"<html>nothing here</html>", create_mask(None))
    assert error.details["kind"] == "not_an_api"


def test_a_web_page_instead_of_an_answer_is_named_as_such():
    _, fault = decode(b"<!DOCTYPE html><html>")
    assert fault is not None
    assert fault.details["kind"] == "not_an_api"


def test_lines_that_are_too_long_and_calls_that_are_too_many_are_refused():
    _, fault = decode(line(content="a" * 200), last(), caps=Caps(line_bytes=100))
    assert fault is not None
    assert fault.details["kind"] == "too_large"
    _, fault = decode(b'{"a":' + b"x" * 200, caps=Caps(line_bytes=100))
    assert fault is not None
    assert fault.details["kind"] == "too_large"
    many = line(content="", tool_calls=[call("t", {})] * 4)
    _, fault = decode(many, last(), caps=Caps(calls=3))
    assert fault is not None
    assert fault.details["kind"] == "too_many_calls"


LINES = [
    json.loads(raw)
    for raw in (
        line(content="", thinking="hm"),
        line(content="hi"),
        line(content="", tool_calls=[call("t", {"a": 1}, id="c")]),
        last("stop", prompt_eval_count=4, eval_count=2),
    )
]


@pytest.mark.parametrize("how", ["drop", "null", "double", "text", "number"])
def test_damage_to_any_member_ends_in_a_typed_result(how):
    for at, value in enumerate(LINES):
        for path in paths(value):
            again = [*LINES[:at], damaged(copy.deepcopy(value), path, how), *LINES[at + 1 :]]
            events, fault = decode(*(json.dumps(item).encode() + b"\n" for item in again))
            assert isinstance(fault, errors.ProviderError) or isinstance(events[-1], StreamEnd)


@given(st.binary(max_size=300))
def test_any_bytes_at_all_end_in_a_typed_result(data):
    events, fault = decode(data)
    assert isinstance(fault, errors.ProviderError) or isinstance(events[-1], StreamEnd)


@pytest.mark.parametrize(
    ("name", "facts", "remote"),
    [
        ("qwen3:8b", {}, False),
        ("qwen3:8b", {"remote_host": "https://ollama.com"}, True),
        ("qwen3:8b", {"remote_model": "qwen3"}, True),
        ("qwen3:8b", {"remote_host": "", "remote_model": None}, False),
        ("gpt-oss:120b-cloud", {}, True),
        ("gpt-oss:cloud", {}, True),
        ("GPT-OSS:Cloud", {}, True),
        ("cloud:7b", {}, False),
        ("team/cloud-notes:7b", {}, False),
    ],
)
def test_a_model_that_is_served_elsewhere_is_remote(name, facts, remote):
    assert is_remote(name, facts) is remote


def test_the_window_is_the_one_the_model_was_made_with_or_else_trained_with():
    info = {"general.architecture": "qwen2", "qwen2.context_length": 32768}

    def window(**shown: Any) -> int:
        model = read_model("m", shown, local=True, auth="none")
        assert model is not None
        return model.descriptor.max_context_tokens

    assert window(model_info=info) == 32768
    assert (
        window(model_info=info, parameters='stop "<|im_end|>"\nnum_ctx                16384')
        == 16384
    )
    assert window(model_info={"llama.context_length": 8192}) == 8192
    assert window() == 4096


def test_models_that_do_not_talk_are_left_out_and_abilities_are_told():
    assert read_model("e", {"capabilities": ["embedding"]}, local=True, auth="none") is None
    shown = {
        "capabilities": ["completion", "tools", "thinking"],
        "thinking": {"values": ["low", "high"], "default": "low"},
    }
    model = read_model("m", shown, local=True, auth="none")
    assert model is not None
    assert model.thinking == ("low", "high")
    able = model.descriptor.capabilities
    assert (able.tools, able.reasoning, able.images, able.streaming) == (True, True, False, True)
    older = read_model("m", {"details": {"family": "gptoss"}}, local=True, auth="none")
    assert older is not None
    assert older.thinking == ("low", "medium", "high")


NAMES = ("models", "name", "model", "digest", "capabilities", "model_info", "parameters")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from((*NAMES, "thinking", "values")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_at_all_makes_a_list_of_models(value):
    read_tags(value)
    read_model("m", value, local=True, auth="none")
