"""Bytes in any split give the same events; what makes no sense is refused."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.events import Status, TextDeltaEvent, ToolCallRequested, TurnEnd, UsageEvent
from smista.sdk import frames
from smista.sdk.errors import BadAnswer
from smista.sdk.frames import FrameReader, event_of, tool_request, turn_of

FRAMES = [
    {"type": "text_delta", "delta": "a\u2028b\u0085c\x0bd — ü"},
    {"type": "usage", "input_tokens": 3},
    {"type": "turn_end", "status": "idle", "data": {}, "allowed_continuations": []},
]
STREAM = b": keep-alive\n\n" + b"".join(
    b"data: " + json.dumps(frame, ensure_ascii=False).encode() + b"\n\n" for frame in FRAMES
)


@given(st.lists(st.integers(0, len(STREAM))))
def test_any_split_gives_the_same_frames(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    reader = FrameReader()
    pieces = [STREAM[a:b] for a, b in pairwise(edges)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == FRAMES


def test_carriage_returns_and_fields_without_meaning_are_skipped():
    frames_read = FrameReader().feed(b'event: x\r\nid: 1\r\ndata:{"type":"x"}\r\n\r\n')
    assert frames_read == [{"type": "x"}]


@pytest.mark.parametrize("line", [b"data: {", b"data: []", b"data: 1"])
def test_a_frame_that_is_no_json_object_is_refused(line):
    with pytest.raises(BadAnswer):
        FrameReader().feed(line + b"\n\n")


def test_a_frame_without_end_is_refused_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(frames, "MAX_FRAME", 100)
    reader = FrameReader()
    assert reader.feed(b"data: " + b"x" * 90) == []
    with pytest.raises(BadAnswer, match="larger"):
        reader.feed(b"x" * 20)


def test_frames_become_events():
    assert event_of(FRAMES[0]) == TextDeltaEvent(FRAMES[0]["delta"])
    assert event_of(FRAMES[1]) == UsageEvent({"input_tokens": 3})
    assert event_of(FRAMES[2]) == TurnEnd(Status.IDLE, {})


def test_an_event_of_a_newer_router_is_skipped():
    assert event_of({"type": "sparkles"}) is None


def test_a_turn_end_of_a_newer_router_is_an_error():
    with pytest.raises(BadAnswer, match="update"):
        turn_of({"status": "sparkles", "data": {}})


@pytest.mark.parametrize("mode", ["ask", "deny", "", None, 1])
def test_whatever_is_not_plainly_allowed_is_asked(mode):
    entry = {"call_id": "c", "name": "shell", "arguments": {}, "requires_approval": mode}
    assert tool_request(entry).requires_approval == "ask"
    event = event_of({"type": "tool_call_requested", **entry})
    assert isinstance(event, ToolCallRequested)
    assert event.request.requires_approval == "ask"


def test_a_tool_request_without_arguments_is_refused():
    with pytest.raises(BadAnswer):
        tool_request({"call_id": "c", "name": "shell"})
