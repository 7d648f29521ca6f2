"""Shapes of Chat Completions answers that have broken other readers."""

import json
from typing import Any

import pytest

from smista.core.errors import (
    ContextLengthExceeded,
    ProviderFailure,
    ProviderUnavailable,
)
from smista.core.stream import Finish, ReasoningDelta, StreamEnd, TextDelta, ToolStarted, Usage
from smista.providers.wire import Caps
from tests.providers.chat import (
    DONE,
    call,
    calls,
    calls_of,
    chunk,
    decode,
    end_of,
    event,
    good,
    kind,
    open_decoder,
    said,
    text_of,
    usage_chunk,
    usage_of,
)

STOP = chunk(finish="stop")


def test_fc_01_characters_cut_between_reads_stay_whole():
    text = "perché 語 🦊"
    raw = (
        b"data: "
        + json.dumps(
            {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}, ensure_ascii=False
        ).encode()
        + b"\n\n"
    )
    for at in range(len(raw)):
        assert text_of(good(raw[:at], raw[at:])) == text


def test_fc_01_an_escaped_character_cut_between_deltas_is_joined():
    assert text_of(good(said("a\ud83e"), said("\udd8ab"), STOP)) == "a🦊b"


@pytest.mark.parametrize("deltas", [["\ud83e"], ["\ud83e", "x"], ["x\udd8a"]])
def test_fc_01_a_lone_half_is_replaced_and_never_breaks_our_own_output(deltas):
    text = text_of(good(*map(said, deltas), STOP))
    assert text.encode().decode().replace("x", "") == "\ufffd"


def test_fc_02_usage_in_the_last_event_survives_every_cut():
    raw = said("hi") + STOP + usage_chunk(prompt_tokens=3, completion_tokens=1) + DONE
    for at in range(len(raw)):
        assert usage_of(good(raw[:at], raw[at:])) == Usage(input_tokens=3, output_tokens=1)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_fc_03_every_line_ending_gives_the_same_events(ending):
    raw = said("a") + b"id: 1\nretry: 5\n\n" + said("b") + STOP + DONE
    assert good(raw.replace(b"\n", ending)) == good(raw)


def test_fc_03_byte_order_mark_missing_space_and_missing_last_blank_line():
    raw = b"\xef\xbb\xbf" + said("a") + STOP
    bare = raw.replace(b"data: ", b"data:").removesuffix(b"\n\n")
    assert good(bare) == good(said("a") + STOP)


def test_fc_05_heartbeat_comments_are_no_events_and_no_sign_of_life():
    decoder = open_decoder()
    assert decoder.feed(b": still thinking\n: still thinking\n\n") == []
    assert decoder.beats == 0
    assert decoder.feed(said("ok")) == [TextDelta(text="ok")]
    assert decoder.beats == 1


@pytest.mark.parametrize(
    "beat", [b"data:\n\n", b"data: null\n\n", b'event: ping\ndata: {"type":"ping"}\n\n']
)
def test_fc_06_heartbeats_that_are_not_comments_are_skipped(beat):
    decoder = open_decoder()
    pieces = (said("a"), beat, said("b"), beat, STOP, beat, DONE)
    events = [found for piece in pieces for found in decoder.feed(piece)]
    assert text_of(events) == "ab"
    assert decoder.beats == 3
    assert decoder.done


BODY: dict[str, Any] = {
    "model": "m",
    "choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 2, "completion_tokens": 1},
}


def test_fc_08_blank_lines_before_a_json_body_are_a_sign_of_life_but_no_answer():
    decoder = open_decoder(stream=False)
    assert decoder.feed(b"\n") == decoder.feed(b"\n") == []
    assert decoder.beats == 2
    assert decoder.feed(b"\n" + json.dumps(BODY).encode()) == []
    assert text_of(decoder.close()) == "hello"


def test_fc_08_only_blank_lines_are_an_empty_response_that_may_be_retried():
    _, fault = decode([b"\n", b"\n"], stream=False)
    assert fault is not None
    assert fault.details["kind"] == "empty_response"
    assert fault.retryable


def test_fc_09_a_web_page_is_named_as_no_model_api_and_not_retried():
    _, fault = decode([b"\n<!DOC", b"TYPE html><html>"])
    assert isinstance(fault, ProviderFailure)
    assert not fault.retryable
    assert "http://127.0.0.1:1/v1/chat/completions" in fault.message
    assert "no model API" in fault.message
    assert "base_url" in fault.message


def test_fc_09_an_event_stream_is_collected_where_json_was_asked_for():
    assert text_of(good(said("a"), said("b"), STOP, DONE, stream=False)) == "ab"


def test_fc_09_a_json_body_is_replayed_where_a_stream_was_asked_for():
    assert good(json.dumps(BODY).encode()) == [
        TextDelta(text="hello"),
        Usage(input_tokens=2, output_tokens=1),
        StreamEnd(finish=Finish.STOP, model="m"),
    ]


def test_fc_11_a_first_chunk_without_choices_names_nothing():
    first = event({"id": "", "model": "", "choices": [], "prompt_filter_results": [{}]})
    events = good(first, said("hi"), STOP)
    assert text_of(events) == "hi"
    assert end_of(events).model == "m"


def test_fc_12_usage_after_the_finish_reason_still_counts():
    usage = usage_chunk(prompt_tokens=26, completion_tokens=1, total_tokens=27)
    events = good(said("hi"), STOP, usage, DONE)
    assert events == [
        TextDelta(text="hi"),
        Usage(input_tokens=26, output_tokens=1),
        StreamEnd(finish=Finish.STOP, model="m"),
    ]


def test_fc_14_cumulative_usage_is_not_summed():
    chunks = [
        chunk({"content": "x"}, usage={"prompt_tokens": 21, "completion_tokens": n})
        for n in (5, 9, 14, 20)
    ]
    assert usage_of(good(*chunks, STOP, DONE)) == Usage(input_tokens=21, output_tokens=20)


def test_fc_14_a_smaller_later_figure_counts_only_in_the_final_report():
    first = chunk({"content": "x"}, usage={"prompt_tokens": 21, "completion_tokens": 9})
    later = chunk({"content": "x"}, usage={"prompt_tokens": 21, "completion_tokens": 4})
    final = usage_chunk(prompt_tokens=20, completion_tokens=8)
    assert usage_of(good(first, later, STOP)).output_tokens == 9
    assert usage_of(good(first, STOP, final)) == Usage(input_tokens=20, output_tokens=8)


@pytest.mark.parametrize(
    "nothing",
    [
        {"choices": None},
        {"choices": [{"index": 0, "delta": {"tool_calls": None, "content": None, "role": None}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": []}}]},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [None], "usage": None},
    ],
)
def test_fc_16_nulls_and_empty_lists_mean_nothing(nothing):
    assert text_of(good(said("a"), event(nothing), said("b"), STOP)) == "ab"


def test_fc_16_a_finish_reason_beside_a_null_delta_is_taken():
    last = event({"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]})
    assert end_of(good(said("a"), last)).finish is Finish.STOP


@pytest.mark.parametrize(
    ("delta", "shown"),
    [
        ({"reasoning_content": "A"}, "A"),
        ({"reasoning": "B"}, "B"),
        ({"reasoning": "C", "reasoning_details": [{"type": "reasoning.text", "text": "C"}]}, "C"),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "…"}]}, ""),
    ],
)
def test_fc_18_every_name_of_the_reasoning_text_is_read_once(delta, shown):
    events = good(chunk(delta), said("x"), STOP)
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == shown


def test_fc_20_text_and_the_end_mark_without_a_finish_reason_is_an_answer():
    assert end_of(good(said("a"), DONE)).finish is Finish.INFERRED


def test_fc_20_a_complete_call_and_the_end_mark_runs():
    events = good(calls(call('{"a":1}', index=0, id="x", name="t")), DONE)
    assert end_of(events).finish is Finish.TOOL_CALLS
    assert calls_of(events) == [("x", "t", '{"a":1}')]


def test_fc_20_text_that_just_ends_is_truncated_but_kept():
    events, fault = decode([said("a"), said("b")])
    assert text_of(events) == "ab"
    assert fault is not None
    assert fault.details["kind"] == "truncated_stream"


def test_fc_20_half_a_call_is_never_reported_as_complete():
    events, fault = decode([calls(call('{"a":', index=0, id="x", name="t"))])
    assert events == [ToolStarted(index=0, name="t")]
    assert fault is not None
    assert fault.details["kind"] == "truncated_stream"


def test_fc_20_nothing_but_the_end_mark_is_an_empty_response():
    _, fault = decode([DONE])
    assert fault is not None
    assert fault.details["kind"] == "empty_response"
    assert fault.retryable


def test_fc_21_calls_decide_whatever_word_ends_the_answer():
    two = calls(call("{}", index=0, id="a", name="t"), call("{}", index=1, id="b", name="t"))
    events = good(two, STOP, DONE)
    assert [found[0] for found in calls_of(events)] == ["a", "b"]
    assert end_of(events).finish is Finish.TOOL_CALLS


@pytest.mark.parametrize("more", [{"id": ""}, {}])
def test_fc_23_a_call_without_id_is_a_call(more):
    events = good(calls(call('{"p":1}', index=0, name="read", **more)), DONE)
    assert calls_of(events) == [("", "read", '{"p":1}')]


def test_fc_23_a_call_without_id_and_name_is_reported_without_start():
    events = good(calls(call('{"p":1}', index=0, id="", name="")), DONE)
    assert calls_of(events) == [("", "", '{"p":1}')]
    assert not [e for e in events if isinstance(e, ToolStarted)]


@pytest.mark.parametrize("index", [{"index": 0}, {}])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"id": "a", "name": "w"}, {"id": "b", "name": "w"}),
        ({"name": "w"}, {"name": "v"}),
        ({"name": "w"}, {"name": "w"}),
    ],
)
def test_fc_24_parallel_calls_with_one_index_or_none_are_told_apart(index, first, second):
    events = good(
        calls(call('{"f":1}', **index, **first)), calls(call('{"f":2}', **index, **second)), DONE
    )
    assert [found[2] for found in calls_of(events)] == ['{"f":1}', '{"f":2}']


def test_fc_24_the_same_id_again_goes_on_with_its_call():
    events = good(calls(call('{"f"', id="a", name="w")), calls(call(":1}", id="a", name="w")), DONE)
    assert calls_of(events) == [("a", "w", '{"f":1}')]


def test_fc_24_a_name_repeated_with_every_fragment_goes_on_with_its_call():
    pieces = ['{"f"', ":", "1}", ""]
    events = good(*(calls(call(p, index=0, name="w")) for p in pieces), DONE)
    assert calls_of(events) == [("", "w", '{"f":1}')]


def test_fc_25_interleaved_fragments_find_their_call():
    events = good(
        calls(call('{"x":', index=0, id="a", name="w")),
        calls(call('{"y":', index=1, id="b", name="w")),
        calls(call("1}", index=0)),
        calls(call("2}", index=1)),
        DONE,
    )
    assert calls_of(events) == [("a", "w", '{"x":1}'), ("b", "w", '{"y":2}')]


@pytest.mark.parametrize("written", ["", "   ", "null", None])
def test_fc_27_blank_arguments_are_an_empty_object(written):
    events = good(calls(call(written, index=0, id="a", name="t")), DONE)
    assert calls_of(events) == [("a", "t", "{}")]


def test_fc_28_arguments_may_be_an_object_in_both_kinds_of_answer():
    entry = call({"p": "a.txt"}, index=0, id="a", name="t")
    message = {"role": "assistant", "content": None, "tool_calls": [entry]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    wanted = [("a", "t", '{"p":"a.txt"}')]
    assert calls_of(good(calls(entry), DONE)) == wanted
    assert calls_of(good(json.dumps(body).encode(), stream=False)) == wanted


def test_fc_32_arguments_cut_by_the_limit_end_with_that_reason():
    events = good(
        calls(call('{"text":"long', index=0, id="a", name="t")), chunk(finish="length"), DONE
    )
    assert end_of(events).finish is Finish.LENGTH
    assert calls_of(events) == [("a", "t", '{"text":"long')]


ERRORS = [
    event(
        {
            "error": {"code": 502, "message": "worker busy"},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
        }
    ),
    event({"error": {"message": "engine failed"}, "message": "engine failed"}),
    event({"error": "plain text"}),
    b'event: error\ndata: {"type":"server_error","message":"x"}\n\n',
    event({"choices": [], "error": {"message": "quota"}}) + DONE,
]
WORDS = ["worker busy", "engine failed", "plain text", "x", "quota"]


@pytest.mark.parametrize("before", [[], [said("a"), said("b")]])
@pytest.mark.parametrize(("error", "words"), [*zip(ERRORS, WORDS, strict=True)])
def test_fc_35_an_error_in_the_stream_is_an_error_and_what_was_said_stays(before, error, words):
    events, fault = decode([*before, error])
    assert text_of(events) == "ab"[: len(before)]
    assert not [e for e in events if isinstance(e, StreamEnd)]
    assert fault is not None
    assert words in fault.message


def test_fc_35_a_busy_worker_may_be_asked_again():
    _, fault = decode([ERRORS[0]])
    assert isinstance(fault, ProviderUnavailable)
    assert fault.details["kind"] == "bad_gateway"


def test_fc_35_usage_seen_before_an_error_is_reported():
    first = chunk({"content": "a"}, usage={"prompt_tokens": 7, "completion_tokens": 1})
    events, _ = decode([first, ERRORS[1]])
    assert usage_of(events) == Usage(input_tokens=7, output_tokens=1)


def test_fc_40_an_overflow_inside_a_stream_carries_its_figures():
    error = {"type": "exceed_context_size_error", "n_prompt_tokens": 9001, "n_ctx": 8192}
    _, fault = decode([event({"error": error})])
    assert isinstance(fault, ContextLengthExceeded)
    assert (fault.details["tokens"], fault.details["limit"]) == (9001, 8192)


@pytest.mark.parametrize(
    "frame", [b"data: {nonsense\n\n", b"data: [1]\n\n", b"data: 3\n\n", b'data: "x"\n\n']
)
def test_a_frame_that_makes_no_sense_is_named_so(frame):
    assert kind(said("a"), frame, STOP) == "bad_frame"


def test_a_refusal_is_shown_and_named():
    events = good(chunk({"refusal": "I will not"}), STOP)
    assert text_of(events) == "I will not"
    assert end_of(events).finish is Finish.REFUSAL
    assert end_of(good(said("a"), chunk(finish="content_filter"))).finish is Finish.REFUSAL


def test_content_in_parts_is_read():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    events = good(chunk({"content": [thinking, {"type": "text", "text": "hi"}]}), STOP)
    assert events[:2] == [ReasoningDelta(text="hm"), TextDelta(text="hi")]


def test_a_function_call_of_the_older_kind_is_a_call():
    events = good(chunk({"function_call": {"name": "t", "arguments": "{}"}}), STOP)
    assert calls_of(events) == [("", "t", "{}")]


def test_only_the_first_choice_is_read():
    two = [{"index": 1, "delta": {"content": "B"}}, {"index": 0, "delta": {"content": "A"}}]
    assert text_of(good(event({"choices": two}), STOP)) == "A"


def test_a_message_repeated_at_the_end_is_not_said_twice():
    last = event({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})
    assert text_of(good(said("hi"), last)) == "hi"
    assert text_of(good(last)) == "hi"


SMALL = Caps(answer_bytes=2000, line_bytes=500, calls=2, depth=8)


@pytest.mark.parametrize(
    ("stream", "named"),
    [
        ([said("x" * 100)] * 20, "too_large"),
        ([b"data: " + b"x" * 600], "too_large"),
        ([b'data: "x"\n', b"data: xxxxxxxxx\n" * 60], "too_large"),
        ([b'{"choices": "' + b"x" * 600], "too_large"),
        ([calls(*(call("{}", index=n, id=f"c{n}", name="t") for n in range(3)))], "too_many_calls"),
        ([event({"x": json.loads("[" * 9 + "]" * 9)})], "bad_frame"),
        ([b'{"x":' + b"[" * 9 + b"]" * 9 + b"}"], "bad_frame"),
    ],
)
def test_a_hostile_answer_is_cut_off(stream, named):
    _, fault = decode(stream, caps=SMALL)
    assert fault is not None
    assert fault.details["kind"] == named


def test_brackets_inside_text_do_not_nest():
    events, fault = decode([said('{["' * 20), STOP], caps=SMALL)
    assert fault is None
    assert text_of(events) == '{["' * 20


def test_a_count_in_the_middle_is_known_to_whoever_leaves_there():
    first = chunk({"content": "a"}, usage={"prompt_tokens": 7, "completion_tokens": 1})
    assert open_decoder().feed(first)[-1] == Usage(input_tokens=7, output_tokens=1)
