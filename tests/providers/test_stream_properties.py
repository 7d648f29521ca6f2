"""What holds for every stream of Claude and Gemini: cuts, damage, injected faults, order."""

import copy
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.errors import BadStream, ProviderError
from smista.core.stream import StreamEnd, ToolCallEnded, ToolStarted
from tests.providers.chat import calls_of, text_of
from tests.providers.streams import (
    ANTHROPIC,
    GEMINI,
    STOP,
    Outcome,
    argued,
    changed,
    chunk,
    closed,
    counted,
    decode,
    event,
    finished,
    function,
    good,
    opened,
    spoken,
    sse,
    start,
    tool,
)

CLAUDE = [
    start(input_tokens=9, cache_read_input_tokens=4, output_tokens=1),
    event("ping"),
    opened(0, type="thinking", thinking="", signature=""),
    event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "è 🦊"}),
    event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "x"}),
    closed(0),
    b": heartbeat\n\n",
    opened(1, type="text", text=""),
    spoken("語 \u2028 text", 1),
    closed(1),
    tool(2, "a", "read"),
    argued(2, '{"path":'),
    argued(2, '"a.txt"}'),
    closed(2),
    tool(3, "b", "shell"),
    closed(3),
    changed("tool_use", output_tokens=40, output_tokens_details={"thinking_tokens": 3}),
    STOP,
]
GOOGLE = [
    chunk({"text": "è 🦊", "thought": True}, **counted(9, thoughtsTokenCount=3)),
    b": heartbeat\n\n",
    chunk({"text": "語 \u2028 text"}, **counted(9, 2)),
    chunk(function("read", {"path": "a.txt"}, id="a"), function("shell", {})),
    chunk({"text": ""}, finish="STOP", **counted(9, 40, cachedContentTokenCount=4)),
]
STREAMS = {ANTHROPIC: CLAUDE, GEMINI: GOOGLE}
KINDS = sorted(STREAMS)
FAULTS = {
    ANTHROPIC: sse({"type": "error", "error": {"type": "api_error", "message": "gone"}}, "error"),
    GEMINI: sse({"error": {"code": 500, "message": "gone", "status": "INTERNAL"}}),
}


def whole(kind: str) -> bytes:
    return b"".join(STREAMS[kind])


def outcome(kind: str, pieces: list[bytes]) -> tuple[Any, ...]:
    events, fault = decode(kind, pieces)
    return events, type(fault), fault and (fault.message, fault.details)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_every_single_cut_gives_the_same_events(kind, ending):
    raw = b"\xef\xbb\xbf" + whole(kind).replace(b"\n", ending)
    wanted = outcome(kind, [whole(kind)])
    assert wanted[1] is type(None)
    for at in range(len(raw)):
        assert outcome(kind, [raw[:at], raw[at:]]) == wanted
    assert outcome(kind, [raw[at : at + 1] for at in range(len(raw))]) == wanted


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_chunking_of_a_faulty_stream_gives_the_same_events(kind, data):
    at = data.draw(st.integers(0, len(STREAMS[kind]) - 1))
    raw = b"".join([*STREAMS[kind][:at], FAULTS[kind]])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)))))
    pieces = [raw[a:b] for a, b in pairwise([0, *cuts, len(raw)])]
    assert outcome(kind, pieces) == outcome(kind, [raw])


@pytest.mark.parametrize("kind", KINDS)
def test_a_last_event_without_its_blank_line_counts(kind):
    assert outcome(kind, [whole(kind).rstrip()]) == outcome(kind, [whole(kind)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_is_a_typed_error_or_the_whole_answer(kind):
    raw = whole(kind)
    events, _ = decode(kind, [raw])
    for at in range(len(raw)):
        said, fault = decode(kind, [raw[:at]])
        if fault is None:  # cut after the reason to stop
            assert calls_of(said) == calls_of(events)
            assert text_of(said) == text_of(events)
        else:
            assert isinstance(fault, BadStream)
            assert fault.details["kind"] in ("truncated_stream", "empty_response")
            assert not calls_of(said)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_injected_anywhere_is_a_typed_error(kind):
    pieces = STREAMS[kind]
    for at in range(len(pieces)):
        said, fault = decode(kind, [*pieces[:at], FAULTS[kind], *pieces[at:]])
        assert fault is not None
        assert fault.details["status"] == 500
        assert not calls_of(said)


@pytest.mark.parametrize("kind", KINDS)
def test_heartbeats_of_any_kind_change_nothing(kind):
    beats = [b"data:\n\n", b"data: null\n\n", sse({"type": "ping"}, "ping"), b": hb\n\n"]
    pieces = [piece for part in STREAMS[kind] for piece in (*beats, part)]
    assert outcome(kind, pieces) == outcome(kind, STREAMS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "body", [b"<!DOCTYPE html><p>hi", b'"text"', b"[1]", b"{]", b"data: {]\n\n"]
)
def test_what_is_no_answer_at_all_is_a_typed_error(kind, body):
    _, fault = decode(kind, [body])
    assert isinstance(fault, ProviderError)


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, ...]] = []
    for key, inner in members:
        found.append((*at, key))
        if isinstance(inner, dict | list):
            found += paths(inner, (*at, key))
    return found


def damaged(value: Any, path: tuple[Any, ...], how: str) -> Any:
    whole_value = copy.deepcopy(value)
    holder = whole_value
    for key in path[:-1]:
        holder = holder[key]
    last = path[-1]
    if how == "drop":
        del holder[last]
    else:
        new = {"null": None, "double": [holder[last]] * 2, "text": "surprise", "number": -1e300}
        holder[last] = new[how]
    return whole_value


def is_typed(found: Outcome) -> bool:
    events, fault = found
    return isinstance(fault, ProviderError) or isinstance(events[-1], StreamEnd)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["drop", "null", "double", "text", "number"])
def test_damage_to_any_member_ends_in_a_typed_result(kind, how):
    parsed = [json.loads(p.partition(b"data: ")[2]) for p in STREAMS[kind] if b"data: " in p]
    for at, value in enumerate(parsed):
        for path in paths(value):
            again = [*parsed[:at], damaged(value, path, how), *parsed[at + 1 :]]
            found = decode(kind, map(sse, again))
            assert is_typed(found)
            started = [e.index for e in found[0] if isinstance(e, ToolStarted)]
            assert started == sorted(set(started))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_events_doubled_or_left_out_end_in_a_typed_result(kind, data):
    picks = data.draw(st.lists(st.sampled_from(STREAMS[kind]), max_size=25))
    assert is_typed(decode(kind, picks))


ARGUMENTS = ['{"text":"a\\"}{ è 🦊","n":[1,{}]}', '{"k":"v"}']


@given(st.data())
def test_arguments_cut_anywhere_and_interleaved_are_the_same_calls(data):
    lanes = []
    for at, written in enumerate(ARGUMENTS):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=3)))
        pieces = [written[a:b] for a, b in pairwise([0, *cuts, len(written)])]
        lanes.append([tool(at, f"t{at}"), *(argued(at, piece) for piece in pieces), closed(at)])
    mixed: list[bytes] = []
    # Blocks open in order; after that any interleaving that keeps each one's order is possible.
    mixed += [lanes[0].pop(0), lanes[1].pop(0)]
    while any(lanes):
        lane = data.draw(st.sampled_from([lane for lane in lanes if lane]))
        mixed.append(lane.pop(0))
    events = good(ANTHROPIC, start(), *mixed, finished("tool_use"))
    assert [e.arguments for e in events if isinstance(e, ToolCallEnded)] == ARGUMENTS
