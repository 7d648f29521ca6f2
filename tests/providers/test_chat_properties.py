"""What holds for every answer: cuts change nothing, damage gives a typed error, order is kept."""

import copy
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.errors import ProviderError
from smista.core.stream import StreamEnd
from tests.providers.chat import (
    DONE,
    Outcome,
    call,
    calls,
    calls_of,
    chunk,
    decode,
    good,
    said,
    text_of,
    usage_chunk,
)

CHUNKS = [
    chunk({"role": "assistant", "content": ""}),
    b": heartbeat\n\n",
    chunk({"reasoning_content": "perché 🦊"}),
    said("語 \u2028 text"),
    calls(call("", index=0, id="a", name="read_file")),
    calls(call('{"path":', index=0), call("{}", index=1, id="b", name="shell")),
    calls(call('"a.txt"}', index=0)),
    chunk(finish="tool_calls"),
    usage_chunk(prompt_tokens=10, completion_tokens=4, prompt_tokens_details={"cached_tokens": 8}),
    DONE,
]
STREAM = b"".join(CHUNKS)
FAULTY = b"".join(CHUNKS[:5]) + b'data: {"error":{"message":"gone"}}\n\n'
BODY = json.dumps(
    {
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "hello",
                    "reasoning_content": "hm",
                    "tool_calls": [call('{"a":1}', id="a", name="t")],
                },
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
).encode()
ANSWERS = [STREAM, STREAM.replace(b"\n", b"\r\n"), FAULTY, BODY, b"\xef\xbb\xbf" + STREAM]


def outcome(pieces: list[bytes]) -> tuple[Any, ...]:
    events, fault = decode(pieces)
    return events, type(fault), fault and (fault.message, fault.details)


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_single_cut_gives_the_same_events(answer):
    whole = outcome([answer])
    for at in range(len(answer)):
        assert outcome([answer[:at], answer[at:]]) == whole
    assert outcome([answer[at : at + 1] for at in range(len(answer))]) == whole


@given(st.sampled_from(ANSWERS), st.lists(st.integers(0, len(STREAM))))
def test_any_chunking_gives_the_same_events(answer, cuts):
    edges = [0, *sorted(cuts), max(len(answer), len(STREAM))]
    assert outcome([answer[a:b] for a, b in pairwise(edges)]) == outcome([answer])


@pytest.mark.parametrize("answer", [STREAM, BODY])
def test_every_truncation_is_a_typed_error_or_the_whole_answer(answer):
    whole, _ = decode([answer])
    for at in range(len(answer)):
        events, fault = decode([answer[:at]])
        if fault is None:  # cut after the finish reason: only usage may be missing
            assert calls_of(events) == calls_of(whole)
            assert text_of(events) == text_of(whole)
        else:
            assert fault.details["kind"] in ("truncated_stream", "empty_response")
            assert not calls_of(events)
            assert not [e for e in events if isinstance(e, StreamEnd)]


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, ...]] = []
    for key, inner in members:
        found.append((*at, key))
        if isinstance(inner, dict | list):
            found += paths(inner, (*at, key))
    return found


def damaged(value: Any, path: tuple[Any, ...], how: str) -> Any:
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    last = path[-1]
    match how:
        case "drop":
            del holder[last]
        case "null":
            holder[last] = None
        case "double":
            holder[last] = [holder[last], holder[last]]
        case "text":
            holder[last] = "surprise"
        case "number":
            holder[last] = -1e300
        case _:
            raise AssertionError(how)
    return changed


def is_typed(found: Outcome) -> bool:
    events, fault = found
    return isinstance(fault, ProviderError) or isinstance(events[-1], StreamEnd)


@pytest.mark.parametrize("how", ["drop", "null", "double", "text", "number"])
def test_damage_to_any_member_ends_in_a_typed_result(how):
    parsed = [json.loads(raw[6:]) for raw in CHUNKS if raw.startswith(b"data: {")]
    for at, value in enumerate(parsed):
        for path in paths(value):
            again = [*parsed[:at], damaged(value, path, how), *parsed[at + 1 :]]
            raw = [b"data: " + json.dumps(item).encode() + b"\n\n" for item in again]
            assert is_typed(decode([*raw, DONE]))
    for path in paths(json.loads(BODY)):
        assert is_typed(decode([json.dumps(damaged(json.loads(BODY), path, how)).encode()]))


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_at_all_end_in_a_typed_result(data, stream):
    assert is_typed(decode([data], stream=stream))


@given(st.data())
def test_any_interleaving_of_two_calls_gives_the_same_calls(data):
    written = ['{"path":"a b.txt","n":[1,2]}', '{"text":"\\"x\\" 語"}']
    queues: list[list[bytes]] = []
    for index, text in enumerate(written):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=3)))
        pieces = [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]
        first = calls(call(pieces[0], index=index, id=f"c{index}", name=f"t{index}"))
        queues.append([first, *(calls(call(piece, index=index)) for piece in pieces[1:])])
    merged = [queues[0].pop(0)]
    while any(queues):
        queue = data.draw(st.sampled_from([q for q in queues if q]))
        merged.append(queue.pop(0))
    assert calls_of(good(*merged, DONE)) == [("c0", "t0", written[0]), ("c1", "t1", written[1])]


@pytest.mark.parametrize("at", range(len(CHUNKS)))
def test_property_d_an_error_object_after_any_event_ends_the_answer(at):
    error = b'data: {"error":{"message":"gone"}}\n\n'
    events, fault = decode([*CHUNKS[:at], error])
    assert fault is not None
    assert "gone" in fault.message
    assert not calls_of(events)
