"""Shapes of Responses API answers: damaged, partial, failing, and told in other ways."""

import copy
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from smista.core import errors
from smista.core.model_ref import ModelDescriptor
from smista.core.prices import call_cost
from smista.core.prompt import Prompt
from smista.core.stream import Finish, ReasoningDelta, StreamEnd, ToolStarted, Usage
from smista.providers.masking import create_mask
from smista.providers.openai import OpenAI
from smista.providers.wire import Caps
from tests.providers.chat import Outcome, calls_of, end_of, text_of, usage_of
from tests.providers.test_chat_properties import damaged, paths

KEY = "canary-key-of-nobody"


def event(kind: str, **more: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()


def response(status: str, *output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"object": "response", "status": status, "model": "m", "output": list(output), **more}


def message(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "id": "msg", "role": "assistant", "content": content}


def function(call_id: str, arguments: str, name: str = "t") -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id}
    return {**item, "name": name, "arguments": arguments}


CREATED = event("response.created", response=response("in_progress"))
COMPLETED = event("response.completed", response=response("completed"))


def said(text: str) -> bytes:
    return event("response.output_text.delta", item_id="msg", output_index=0, delta=text)


def decode(*pieces: bytes, caps: Caps | None = None) -> Outcome:
    dialect = OpenAI(caps=caps)
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


def test_a_whole_response_means_what_its_stream_would():
    usage = {"input_tokens": 5, "output_tokens": 7}
    thought = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
    whole = response("completed", thought, message("hi"), function("c", '{"a":1}'), usage=usage)
    for at in (1, 40, len(json.dumps(whole)) - 1):
        raw = json.dumps(whole).encode()
        events = good(raw[:at], raw[at:])
        assert type(events[0]) is ReasoningDelta
        assert text_of(events) == "hi"
        assert calls_of(events) == [("c", "t", '{"a":1}')]
        assert usage_of(events) == Usage(input_tokens=5, output_tokens=7)
        assert end_of(events).finish is Finish.TOOL_CALLS


def test_what_no_delta_told_is_taken_from_the_events_that_tell_it_whole():
    item = {"item_id": "x", "output_index": 0}
    done = event("response.output_text.done", text="whole", **item)
    assert text_of(good(CREATED, done, COMPLETED)) == "whole"
    last = event("response.completed", response=response("completed", message("last")))
    assert text_of(good(CREATED, last)) == "last"
    assert text_of(good(CREATED, said("delta"), last)) == "delta"
    item_done = event("response.output_item.done", output_index=0, item=message("item"))
    assert text_of(good(CREATED, item_done, last)) == "item"


def test_a_call_is_one_call_however_often_and_wherever_it_is_told():
    added = event("response.output_item.added", output_index=0, item=function("c", ""))
    piece = event(
        "response.function_call_arguments.delta", item_id="fc_c", output_index=0, delta='{"a":1}'
    )
    done = event("response.output_item.done", output_index=0, item=function("c", '{"a":1}'))
    last = event("response.completed", response=response("completed", function("c", '{"a":1}')))
    for told in ([added, piece, done, last], [added, piece, last], [done, last], [last]):
        events = good(CREATED, *told)
        assert calls_of(events) == [("c", "t", '{"a":1}')]
        assert len([e for e in events if isinstance(e, ToolStarted)]) == 1


def test_fc_25_fragments_of_two_calls_interleaved():
    pieces = [("fc_a", 0, '{"x":'), ("fc_b", 1, '{"y":'), ("fc_a", 0, "1}"), ("fc_b", 1, "2}")]
    kind = "response.function_call_arguments.delta"
    told = [event(kind, item_id=i, output_index=at, delta=d) for i, at, d in pieces]
    opened = [
        event("response.output_item.added", output_index=at, item=function(name, ""))
        for at, name in enumerate("ab")
    ]
    assert calls_of(good(CREATED, *opened, *told, COMPLETED)) == [
        ("a", "t", '{"x":1}'),
        ("b", "t", '{"y":2}'),
    ]


def test_fc_24_two_calls_in_one_place_are_two_if_their_items_differ():
    opened = [
        event("response.output_item.done", output_index=0, item=function(name, "{}"))
        for name in "ab"
    ]
    assert [c[0] for c in calls_of(good(CREATED, *opened, COMPLETED))] == ["a", "b"]


@pytest.mark.parametrize("written", ["", "   "])
def test_fc_27_empty_arguments_are_an_empty_object(written):
    done = event("response.output_item.done", output_index=0, item=function("c", written))
    assert calls_of(good(CREATED, done, COMPLETED)) == [("c", "t", "{}")]


def test_fc_32_a_call_cut_by_the_limit_ends_as_cut():
    added = event("response.output_item.added", output_index=0, item=function("c", ""))
    kind = "response.function_call_arguments.delta"
    piece = event(kind, item_id="fc_c", output_index=0, delta='{"path":"a.t')
    cut = response("incomplete", incomplete_details={"reason": "max_output_tokens"})
    events = good(CREATED, added, piece, event("response.incomplete", response=cut))
    assert end_of(events).finish is Finish.LENGTH


def test_an_answer_stopped_by_the_filter_is_a_refusal():
    cut = response("incomplete", incomplete_details={"reason": "content_filter"})
    events = good(CREATED, said("well, "), event("response.incomplete", response=cut))
    assert end_of(events).finish is Finish.REFUSAL


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", errors.ProviderUnavailable),
        ("rate_limit_exceeded", errors.ProviderRateLimited),
        ("context_length_exceeded", errors.ContextLengthExceeded),
        ("insufficient_quota", errors.ProviderFailure),
    ],
)
def test_fc_35_a_failure_is_told_at_once_with_its_own_words(code, kind):
    failed = response("failed", error={"code": code, "message": f"it broke {KEY}"})
    for told in (
        event("response.failed", response=failed),
        event("error", code=code, message="it broke", param=None),
        event("error", error={"code": code, "message": "it broke"}),
    ):
        events, fault = decode(CREATED, said("well"), told, said("more"))
        assert type(fault) is kind
        assert "it broke" in fault.message
        assert text_of(events) == "well"
        assert not [e for e in events if isinstance(e, StreamEnd)]


def test_what_was_counted_before_a_failure_is_billed():
    failed = response(
        "failed", error={"code": "server_error", "message": "x"}, usage={"input_tokens": 9}
    )
    events, fault = decode(CREATED, event("response.failed", response=failed))
    assert fault is not None
    assert usage_of(events).input_tokens == 9


@pytest.mark.parametrize("pieces", [[], [CREATED], [CREATED, said("a")]])
def test_fc_20_an_end_of_bytes_is_no_end_of_an_answer(pieces):
    _, fault = decode(*pieces)
    assert isinstance(fault, errors.BadStream)
    assert fault.details["kind"] == ("truncated_stream" if pieces else "empty_response")


def test_fc_20_an_end_mark_ends_an_answer_without_a_last_event():
    events = good(CREATED, said("a"), b"data: [DONE]\n\n")
    assert end_of(events).finish is Finish.INFERRED


def test_fc_01_an_escaped_character_cut_between_deltas_is_joined():
    assert text_of(good(CREATED, said("a\ud83e"), said("\udd8ab"), COMPLETED)) == "a🦊b"


def test_unknown_events_and_items_mean_nothing():
    odd = [
        event("response.web_search_call.searching", item_id="w", output_index=0),
        event("response.output_item.added", output_index=0, item={"type": "custom", "id": "q"}),
        event("keepalive"),
        b"data: null\n\n",
    ]
    assert text_of(good(CREATED, *odd, said("a"), COMPLETED)) == "a"


def test_more_calls_than_allowed_are_refused():
    told = [
        event("response.output_item.done", output_index=n, item=function(str(n), "{}"))
        for n in range(4)
    ]
    _, fault = decode(CREATED, *told, COMPLETED, caps=Caps(calls=3))
    assert fault is not None
    assert fault.details["kind"] == "too_many_calls"


def test_fc_55_the_model_that_served_is_named():
    last = event("response.completed", response={**response("completed"), "model": "vendor-big"})
    assert end_of(good(CREATED, said("a"), last)).model == "vendor-big"


def test_fc_53_cached_and_reasoning_tokens_cost_what_a_hand_calculation_says():
    usage = {
        "input_tokens": 10_000,
        "input_tokens_details": {"cached_tokens": 8_000},
        "output_tokens": 500,
        "output_tokens_details": {"reasoning_tokens": 300},
    }
    events = good(event("response.completed", response=response("completed", usage=usage)))
    model = ModelDescriptor(
        provider="openai",
        model="m",
        max_context_tokens=1,
        input_cost_per_million_tokens=Decimal(2),
        output_cost_per_million_tokens=Decimal(8),
        cache_read_cost_per_million_tokens=Decimal("0.2"),
        cache_write_cost_per_million_tokens=Decimal("2.5"),
    )
    assert call_cost(usage_of(events), model) == Decimal("0.0096")


EVENTS = [
    json.loads(raw.partition(b"data: ")[2])
    for raw in (
        CREATED,
        event("response.output_item.added", output_index=0, item=function("c", "")),
        event("response.function_call_arguments.delta", item_id="fc_c", output_index=0, delta="{}"),
        event("response.output_item.done", output_index=0, item=function("c", "{}")),
        event("response.reasoning_text.delta", item_id="rs", output_index=1, delta="hm"),
        said("hi"),
        event(
            "response.completed",
            response=response(
                "completed",
                function("c", "{}"),
                message("hi"),
                usage={"input_tokens": 1, "input_tokens_details": {"cached_tokens": 1}},
                error=None,
                incomplete_details=None,
            ),
        ),
    )
]


@pytest.mark.parametrize("how", ["drop", "null", "double", "text", "number"])
def test_damage_to_any_member_ends_in_a_typed_result(how):
    for at, value in enumerate(EVENTS):
        for path in paths(value):
            again = [*EVENTS[:at], damaged(copy.deepcopy(value), path, how), *EVENTS[at + 1 :]]
            raw = [b"data: " + json.dumps(item).encode() + b"\n\n" for item in again]
            events, fault = decode(*raw)
            assert isinstance(fault, errors.ProviderError) or isinstance(events[-1], StreamEnd)


@given(st.binary(max_size=300))
def test_any_bytes_at_all_end_in_a_typed_result(data):
    events, fault = decode(data)
    assert isinstance(fault, errors.ProviderError) or isinstance(events[-1], StreamEnd)


@pytest.mark.parametrize(
    ("status", "code", "said", "kind"),
    [
        (401, "invalid_api_key", f"Incorrect key: {KEY}", errors.InvalidProviderCredentials),
        (404, "model_not_found", "The model `x` does not exist", errors.ModelNotFound),
        (429, "insufficient_quota", "You exceeded your quota", errors.ProviderFailure),
        (429, "rate_limit_exceeded", "Rate limit reached", errors.ProviderRateLimited),
        (400, "context_length_exceeded", "Too much", errors.ContextLengthExceeded),
        (400, "unsupported_parameter", "Unsupported parameter", errors.ProviderRejected),
        (503, None, "overloaded", errors.ProviderUnavailable),
    ],
)
def test_a_refused_request_is_the_error_it_stands_for(status, code, said, kind):
    body = json.dumps({"error": {"message": said, "type": "t", "param": None, "code": code}})
    error = OpenAI().failure(status, body.encode(), create_mask(SecretStr(KEY)))
    assert type(error) is kind
    assert KEY not in error.message
