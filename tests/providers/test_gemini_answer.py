"""What Gemini's streams mean, the crooked ones included."""

import json
from decimal import Decimal

import pytest

from smista.core import errors
from smista.core.model_ref import ModelDescriptor
from smista.core.prices import call_cost
from smista.core.stream import Finish, ToolStarted, Usage
from smista.providers.wire import Caps
from tests.providers.chat import calls_of, end_of, text_of, usage_of
from tests.providers.streams import (
    GEMINI,
    chunk,
    counted,
    decode,
    fault_of,
    function,
    good,
    kind_of,
    sse,
)

SAID = chunk({"text": "hi"})
DONE = chunk({"text": ""}, finish="STOP")


def test_a_call_comes_whole_and_its_arguments_become_text():
    call = chunk(function(args={"path": "é"}, id="f1"), finish="STOP")
    events = good(GEMINI, call)
    assert calls_of(events) == [("f1", "read", '{"path":"é"}')]
    assert end_of(events).finish is Finish.TOOL_CALLS


@pytest.mark.parametrize("args", [None, {}])
def test_a_call_without_arguments_has_empty_ones(args):
    assert calls_of(good(GEMINI, chunk(function(args=args), finish="STOP")))[0][2] == "{}"


def test_calls_without_ids_or_with_one_id_are_as_many_as_came():
    parts = [function(args={"a": 1}), function(args={"a": 1}), function("w", id="x")]
    events = good(GEMINI, chunk(*parts), chunk(function("w", {"b": 2}, id="x"), finish="STOP"))
    assert calls_of(events) == [
        ("", "read", '{"a":1}'),
        ("", "read", '{"a":1}'),
        ("x", "w", "{}"),
        ("", "w", '{"b":2}'),
    ]
    assert [e.index for e in events if isinstance(e, ToolStarted)] == [0, 1, 2, 3]


def test_names_the_format_did_not_take_come_back_as_ours():
    events = good(
        GEMINI, chunk(function("notes_list"), finish="STOP"), names={"notes_list": "notes.list"}
    )
    assert calls_of(events)[0][1] == "notes.list"


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("STOP", Finish.STOP),
        ("MAX_TOKENS", Finish.LENGTH),
        ("SAFETY", Finish.REFUSAL),
        ("RECITATION", Finish.REFUSAL),
        ("BLOCKLIST", Finish.REFUSAL),
        ("PROHIBITED_CONTENT", Finish.REFUSAL),
        ("SPII", Finish.REFUSAL),
        ("A_FILTER_OF_TOMORROW", Finish.REFUSAL),
    ],
)
def test_every_finish_reason_has_a_meaning(word, finish):
    assert end_of(good(GEMINI, SAID, chunk(finish=word))).finish is finish


def test_a_prompt_that_is_blocked_is_a_refusal_with_its_reason():
    blocked = sse({"promptFeedback": {"blockReason": "SAFETY"}, **counted(7)})
    events = good(GEMINI, blocked)
    assert text_of(events) == "Gemini did not answer: SAFETY"
    assert end_of(events).finish is Finish.REFUSAL
    assert usage_of(events) == Usage(input_tokens=7, output_tokens=0)


def test_a_filter_runs_nothing_and_says_why_if_nothing_was_said():
    assert text_of(good(GEMINI, chunk(finish="SAFETY"))) == "Gemini did not answer: SAFETY"
    events = good(GEMINI, chunk(function()), chunk(finish="SAFETY"))
    assert calls_of(events) == []
    assert text_of(good(GEMINI, SAID, chunk(finish="SAFETY"))) == "hi"


@pytest.mark.parametrize("word", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"])
def test_a_model_that_failed_to_say_what_it_wanted_is_asked_again(word):
    fault = fault_of(GEMINI, chunk(finish=word))
    assert isinstance(fault, errors.BadStream)
    assert fault.retryable


def test_reasoning_is_told_from_text():
    events = good(GEMINI, chunk({"text": "hm", "thought": True}, {"text": "hi"}), DONE)
    assert text_of(events) == "hi"


def test_the_newest_count_holds_and_thoughts_are_output():
    events = good(
        GEMINI,
        chunk({"text": "a"}, **counted(1000, 5)),
        chunk({"text": "b"}, **counted(1000, 9, thoughtsTokenCount=20)),
        chunk(finish="STOP", **counted(1000, 14, cachedContentTokenCount=800)),
    )
    assert usage_of(events) == Usage(
        input_tokens=1000, output_tokens=34, cached_tokens=800, reasoning_tokens=20
    )


def test_a_turn_costs_what_a_hand_calculation_says():
    figures = counted(10_000, 200, cachedContentTokenCount=8000, thoughtsTokenCount=300)
    usage = usage_of(good(GEMINI, SAID, chunk(finish="STOP", **figures)))
    model = ModelDescriptor(
        provider="gemini",
        model="m",
        max_context_tokens=9,
        input_cost_per_million_tokens="2.00",
        cache_read_cost_per_million_tokens="0.20",
        output_cost_per_million_tokens="8.00",
    )
    # Per million: 2,000 at 2.00, 8,000 at 0.20, and 500 at 8.00.
    assert call_cost(usage, model) == Decimal("0.0096")


def test_a_finish_reason_on_every_chunk_ends_nothing_early():
    events = good(GEMINI, chunk({"text": "a"}, finish="STOP"), chunk({"text": "b"}, finish="STOP"))
    assert text_of(events) == "ab"


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        ((SAID,), "truncated_stream"),
        ((chunk(function()),), "truncated_stream"),
        ((), "empty_response"),
        ((sse({"usageMetadata": {"promptTokenCount": 3}}),), "empty_response"),
        ((DONE,), "empty_response"),
        ((chunk(finish="STOP"),), "empty_response"),
    ],
)
def test_an_answer_that_is_not_whole_is_a_retryable_fault(pieces, kind):
    assert kind_of(GEMINI, *pieces) == kind
    assert fault_of(GEMINI, *pieces).retryable


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 503, "message": "busy", "status": "UNAVAILABLE"}, errors.ProviderUnavailable),
        ({"message": "busy", "status": "UNAVAILABLE"}, errors.ProviderUnavailable),
        ({"code": 429, "message": "wait"}, errors.ProviderRateLimited),
        ({"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}, errors.ProviderRejected),
    ],
)
@pytest.mark.parametrize("before", [(), (SAID,)])
def test_an_error_inside_a_stream_has_its_type(error, kind, before):
    events, fault = decode(GEMINI, [*before, sse({"error": error})])
    assert isinstance(fault, kind)
    assert text_of(events) == ("hi" if before else "")


@pytest.mark.parametrize("many", [False, True])
def test_an_answer_that_was_not_streamed_is_read_too(many):
    part = {"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}
    whole = {"candidates": [part], **counted(3, 2)}
    body = json.dumps([{"candidates": [{"content": {}}]}, whole] if many else whole).encode()
    events = good(GEMINI, b"\n" + body)
    assert text_of(events) == "hi"
    assert usage_of(events).output_tokens == 2


def test_a_hostile_answer_is_bounded():
    calls = [function(args={"n": at}) for at in range(5)]
    fault = fault_of(GEMINI, chunk(*calls), caps=Caps(calls=4))
    assert fault.details["kind"] == "too_many_calls"
    assert fault_of(GEMINI, SAID, caps=Caps(line_bytes=20)).details["kind"] == "too_large"
