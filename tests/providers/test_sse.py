from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.providers.sse import Frame, SseReader


def read(*pieces: bytes, limit: int = 1000) -> list[Frame]:
    reader = SseReader(limit=limit)
    return [frame for piece in pieces for frame in reader.feed(piece)] + reader.close()


A = Frame("", "a")


@pytest.mark.parametrize(
    ("pieces", "frames"),
    [
        ([b"data: a\n\n"], [A]),
        ([b"event: x\r\ndata: a\r\n\r\n"], [Frame("x", "a")]),
        ([b"data: a\r\rdata: b\r\r"], [A, Frame("", "b")]),
        ([b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n"], [A, Frame("", "b")]),
        ([b"data: a\r\n\ndata: b\n\r\n"], [A, Frame("", "b")]),
        (
            ["data: a\u2028b\u0085c\x0bd\x0ce\n\n".encode()],
            [Frame("", "a\u2028b\u0085c\x0bd\x0ce")],
        ),
        ([b"data: a\ndata: b\n\n"], [Frame("", "a\nb")]),
        ([b": ping\n\ndata: a\n\n"], [A]),
        ([b"data:a\n\n"], [A]),
        ([b"data:  a\n\n"], [Frame("", " a")]),
        ([b"\xef\xbb", b"\xbfdata: a\n\n"], [A]),
        ([b"\xef\xbb\xbf"], []),
        ([b"data: \xc3", b"\xa9\n\n"], [Frame("", "é")]),
        ([b"data: a\n\ndata: b\n"], [A, Frame("", "b")]),
        ([b"data: a\n\ndata: b"], [A, Frame("", "b")]),
        ([b"event: ping\n\ndata: a\n\n"], [A]),
        ([b"data\n\n"], [Frame("", "")]),
        ([b"id: 7\nretry: 1\nunknown: x\ndata: a\n\n"], [A]),
        ([b""], []),
    ],
)
def test_the_standard_s_corner_cases(pieces, frames):
    assert read(*pieces) == frames


@given(
    st.lists(
        st.sampled_from(
            [
                b"data: a",
                b"data:",
                b"event: e",
                b": c",
                b"\n",
                b"\r",
                b"\r\n",
                b"\xef\xbb\xbf",
                b"x",
            ]
        )
    ),
    st.lists(st.integers(0, 80)),
)
def test_any_split_gives_the_same_frames(tokens, cuts):
    raw = b"".join(tokens)
    edges = [0, *sorted(cuts), max(80, len(raw))]
    assert read(*(raw[a:b] for a, b in pairwise(edges))) == read(raw)


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: " + b"x" * 50 + b"\n\n"],
        [b"data: " + b"x" * 50],
        [b"data: xxxxx\n" * 9 + b"\n"],
        [b"x"] * 50,
    ],
)
def test_what_is_too_long_overflows_and_ends_the_reading(pieces):
    reader = SseReader(limit=40)
    assert [frame for piece in pieces for frame in reader.feed(piece)] == []
    assert reader.overflow
    assert reader.feed(b"\n\ndata: a\n\n") == reader.close() == []


def test_frames_before_an_overflow_are_returned():
    reader = SseReader(limit=40)
    assert reader.feed(b"data: a\n\ndata: " + b"x" * 50) == [A]
    assert reader.overflow
