"""What streams of the Messages API mean, the crooked ones included."""

import json
from decimal import Decimal

import pytest

from smista.core import errors
from smista.core.model_ref import ModelDescriptor
from smista.core.prices import call_cost
from smista.core.stream import Finish, ToolStarted
from smista.providers.wire import Caps
from tests.providers.chat import calls_of, end_of, text_of, usage_of
from tests.providers.streams import (
    ANTHROPIC,
    STOP,
    argued,
    changed,
    closed,
    decode,
    event,
    fault_of,
    finished,
    good,
    kind_of,
    opened,
    spoken,
    sse,
    start,
    tool,
)

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    ("first", "later", "wanted"),
    [
        ({"input_tokens": 25, "output_tokens": 1}, [{"output_tokens": 15}], (25, None, 15)),
        (
            {"input_tokens": 9, "cache_read_input_tokens": 1},
            [{"input_tokens": 9, "cache_read_input_tokens": 1, "output_tokens": 16}],
            (10, 1, 16),
        ),
        (
            {"input_tokens": 0, "output_tokens": 0},
            [{"input_tokens": 812, "cache_read_input_tokens": 600, "output_tokens": 40}],
            (1412, 600, 40),
        ),
        (
            {"input_tokens": 30},
            [{"output_tokens": 4}, {"output_tokens": 11, "input_tokens": None}],
            (30, None, 11),
        ),
    ],
)
def test_fc_15_usage_told_in_parts_is_put_together_per_field(first, later, wanted):
    changes = [changed(**usage) for usage in later]
    usage = usage_of(good(ANTHROPIC, start(**first), spoken("hi"), *changes, STOP))
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == wanted


def test_fc_53_a_turn_with_cached_tokens_costs_what_a_hand_calculation_says():
    usage = usage_of(
        good(
            ANTHROPIC,
            start(
                input_tokens=100, cache_creation_input_tokens=6000, cache_read_input_tokens=20_000
            ),
            spoken("hi"),
            finished(output_tokens=400, output_tokens_details={"thinking_tokens": 300}),
        )
    )
    model = ModelDescriptor(
        provider="anthropic",
        model="m",
        max_context_tokens=9,
        input_cost_per_million_tokens="2.00",
        cache_read_cost_per_million_tokens="0.20",
        cache_write_cost_per_million_tokens="2.50",
        output_cost_per_million_tokens="8.00",
    )
    assert call_cost(usage, model) == Decimal("0.0224")
    assert usage.reasoning_tokens == 300


@pytest.mark.parametrize("pieces", [("", '{"pa', 'th":"a', '.txt"}'), ('{"path":"a.txt"}',)])
def test_fc_30_the_input_of_a_tool_comes_in_any_pieces(pieces):
    said = [argued(0, piece) for piece in pieces]
    events = good(ANTHROPIC, start(), tool(0, "t1"), *said, closed(0), finished("tool_use"))
    assert calls_of(events) == [("t1", "read", '{"path":"a.txt"}')]
    assert end_of(events).finish is Finish.TOOL_CALLS


def test_fc_30_a_tool_without_input_deltas_is_called_without_arguments():
    events = good(ANTHROPIC, start(), tool(0, "t1"), closed(0), finished("tool_use"))
    assert calls_of(events) == [("t1", "read", "{}")]


@pytest.mark.parametrize("end", [closed(0), b""])
def test_an_input_that_comes_whole_with_its_block_counts(end):
    block = tool(0, "t1", given={"path": "a.txt"})
    events = good(ANTHROPIC, start(), block, end, finished("tool_use"))
    assert calls_of(events) == [("t1", "read", '{"path":"a.txt"}')]


def test_deltas_replace_an_input_that_came_with_the_block():
    block = tool(0, "t1", given={"path": "x"})
    events = good(ANTHROPIC, start(), block, argued(0, '{"path":"y"}'), closed(0), finished())
    assert calls_of(events) == [("t1", "read", '{"path":"y"}')]


def test_fc_25_calls_that_come_interleaved_keep_their_arguments():
    events = good(
        ANTHROPIC,
        start(),
        tool(0, "a", "w"),
        argued(0, '{"x":'),
        tool(1, "b", "w"),
        argued(1, '{"y":'),
        argued(0, "1}"),
        argued(1, "2}"),
        closed(0),
        closed(1),
        finished("end_turn"),
    )
    assert calls_of(events) == [("a", "w", '{"x":1}'), ("b", "w", '{"y":2}')]
    assert [e.index for e in events if isinstance(e, ToolStarted)] == [0, 1]
    assert end_of(events).finish is Finish.TOOL_CALLS


@pytest.mark.parametrize("index", [0, None])
def test_fc_24_two_calls_with_one_index_are_two(index):
    events = good(
        ANTHROPIC,
        start(),
        *(tool(index, "a", "w"), argued(index, '{"f":1}'), closed(index)),
        *(tool(index, "b", "w"), argued(index, '{"f":2}'), closed(index)),
        finished("tool_use"),
    )
    assert calls_of(events) == [("a", "w", '{"f":1}'), ("b", "w", '{"f":2}')]


def test_fc_34_one_call_told_in_two_blocks_is_one():
    events = good(
        ANTHROPIC,
        start(),
        *(tool(0, "a", "w"), argued(0, '{"f":'), closed(0)),
        *(tool(1, "a", "w"), argued(1, "1}"), closed(1)),
        finished("tool_use"),
    )
    assert calls_of(events) == [("a", "w", '{"f":1}')]
    assert [e.index for e in events if isinstance(e, ToolStarted)] == [0]


def test_fc_34_a_delta_for_a_block_that_was_never_opened_goes_to_the_open_one():
    events = good(ANTHROPIC, start(), tool(0, "a"), argued(7, '{"f":1}'), finished("tool_use"))
    assert calls_of(events) == [("a", "read", '{"f":1}')]
    events = good(ANTHROPIC, start(), argued(7, '{"f":1}'), spoken("hi"), finished())
    assert calls_of(events) == []


def test_names_the_format_did_not_take_come_back_as_ours():
    blocks = (start(), tool(0, "a", "notes_list"), closed(0), finished())
    events = good(ANTHROPIC, *blocks, names={"notes_list": "notes.list"})
    assert calls_of(events)[0][1] == "notes.list"
    assert ToolStarted(index=0, name="notes.list") in events


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("stop_sequence", Finish.STOP),
        ("pause_turn", Finish.STOP),
        ("something_new", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("model_context_window_exceeded", Finish.LENGTH),
        ("refusal", Finish.REFUSAL),
    ],
)
def test_every_stop_reason_has_a_meaning(word, finish):
    assert end_of(good(ANTHROPIC, start(), spoken("hi"), finished(word))).finish is finish


def test_a_refusal_runs_nothing_and_says_why_if_nothing_was_said():
    why = {"stop_reason": "refusal", "stop_details": {"explanation": "not this"}}
    end = event("message_delta", delta=why) + STOP
    assert text_of(good(ANTHROPIC, start(), end)) == "not this"
    events = good(ANTHROPIC, start(), spoken("Hel"), tool(1, "a"), closed(1), end)
    assert text_of(events) == "Hel"
    assert calls_of(events) == []
    assert end_of(events).finish is Finish.REFUSAL


def test_the_last_word_ends_the_answer_at_once():
    events, fault = decode(ANTHROPIC, [start() + spoken("a") + finished() + spoken("b")])
    assert fault is None
    assert text_of(events) == "a"


def test_an_answer_without_its_last_event_is_whole_if_the_reason_came():
    assert text_of(good(ANTHROPIC, start(), spoken("a"), changed())) == "a"


def test_the_last_event_without_a_reason_is_an_inferred_stop():
    assert end_of(good(ANTHROPIC, start(), spoken("a"), STOP)).finish is Finish.INFERRED


def test_a_turn_that_ends_without_a_word_is_an_answer():
    assert end_of(good(ANTHROPIC, start(), finished())).finish is Finish.STOP


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        ((start(), spoken("half")), "truncated_stream"),
        ((start(), tool(0, "a"), argued(0, '{"p":')), "truncated_stream"),
        ((start(),), "truncated_stream"),
        ((), "empty_response"),
        ((STOP,), "empty_response"),
        ((event("ping"),), "empty_response"),
    ],
)
def test_an_answer_that_is_not_whole_is_a_retryable_fault(pieces, kind):
    assert kind_of(ANTHROPIC, *pieces) == kind
    assert fault_of(ANTHROPIC, *pieces).retryable


@pytest.mark.parametrize("before", [(), (spoken("half a "), spoken("word"))])
def test_fc_36_an_overload_inside_a_stream_is_an_overload(before):
    events, fault = decode(ANTHROPIC, [start(), *before, sse(OVERLOADED, "error")])
    assert isinstance(fault, errors.ProviderUnavailable)
    assert fault.details["kind"] == "overloaded"
    assert fault.retryable
    assert text_of(events) == ("half a word" if before else "")
    assert usage_of(events).input_tokens == 3


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"type": "rate_limit_error", "message": "slow"}, errors.ProviderRateLimited),
        ({"type": "authentication_error", "message": "who"}, errors.InvalidProviderCredentials),
        ({"type": "invalid_request_error", "message": "no"}, errors.ProviderRejected),
        ({"type": "api_error", "message": "oops"}, errors.ProviderUnavailable),
        ({"type": "timeout_error", "message": "late"}, errors.ProviderUnavailable),
    ],
)
def test_an_error_inside_a_stream_has_its_type(body, kind):
    assert isinstance(fault_of(ANTHROPIC, start(), event("error", error=body)), kind)


def test_an_answer_that_was_not_streamed_is_read_too():
    body = {
        "type": "message",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"p": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 4, "output_tokens": 2},
    }
    events = good(ANTHROPIC, b"\n\n" + json.dumps(body).encode())
    assert text_of(events) == "Let me see."
    assert calls_of(events) == [("t", "read", '{"p":1}')]
    assert (usage_of(events).input_tokens, usage_of(events).output_tokens) == (4, 2)


def test_a_hostile_answer_is_bounded():
    blocks = [tool(at, f"t{at}") for at in range(5)]
    fault = fault_of(ANTHROPIC, start(), *blocks, caps=Caps(calls=4))
    assert fault.details["kind"] == "too_many_calls"
    deep = opened(0, type="text", text="", more=json.loads("[" * 40 + "]" * 40))
    assert fault_of(ANTHROPIC, start(), deep, caps=Caps(depth=20)).details["kind"] == "bad_frame"
