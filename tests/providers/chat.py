"""Chat Completions chunks for tests, and a decoder fed with them in any pieces."""

import json
from collections.abc import Iterable
from typing import Any

from smista.core.errors import ProviderError
from smista.core.stream import StreamEnd, StreamEvent, TextDelta, ToolCallEnded, Usage
from smista.providers.chat_answer import ChatAnswer
from smista.providers.masking import create_mask
from smista.providers.wire import Caps, WireRequest

DONE = b"data: [DONE]\n\n"
Outcome = tuple[list[StreamEvent], ProviderError | None]


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event({**head, "choices": [choice], **more})


def said(text: str) -> bytes:
    return chunk({"content": text})


def calls(*entries: dict[str, Any]) -> bytes:
    return chunk({"tool_calls": list(entries)})


def call(arguments: Any = "", **more: Any) -> dict[str, Any]:
    """Return one entry of `tool_calls`; *more* may hold index, id, name."""
    name = more.pop("name", None)
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"type": "function", "function": function, **more}


def usage_chunk(**usage: Any) -> bytes:
    return event({"id": "c1", "model": "m", "choices": [], "usage": usage})


def decode(pieces: Iterable[bytes], *, stream: bool = True, caps: Caps | None = None) -> Outcome:
    decoder = open_decoder(stream=stream, caps=caps)
    events = [found for piece in pieces for found in decoder.feed(piece)]
    events += decoder.close()
    assert decoder.done != (decoder.fault is not None)
    return events, decoder.fault


def open_decoder(*, stream: bool = True, caps: Caps | None = None) -> ChatAnswer:
    request = WireRequest(url="http://127.0.0.1:1/v1/chat/completions", body=b"{}", stream=stream)
    mask = create_mask(None)
    return ChatAnswer(provider="openai-compat:t", request=request, caps=caps or Caps(), mask=mask)


def good(*pieces: bytes, stream: bool = True) -> list[StreamEvent]:
    events, fault = decode(pieces, stream=stream)
    assert fault is None, fault
    assert isinstance(events[-1], StreamEnd)
    return events


def kind(*pieces: bytes, stream: bool = True) -> str:
    _, fault = decode(pieces, stream=stream)
    assert fault is not None
    return str(fault.details.get("kind"))


def text_of(events: Iterable[StreamEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def calls_of(events: Iterable[StreamEvent]) -> list[tuple[str, str, str]]:
    return [(e.id, e.name, e.arguments) for e in events if isinstance(e, ToolCallEnded)]


def usage_of(events: Iterable[StreamEvent]) -> Usage:
    """The count that holds: the last one told."""
    return [e for e in events if isinstance(e, Usage)][-1]


def end_of(events: Iterable[StreamEvent]) -> StreamEnd:
    (end,) = [e for e in events if isinstance(e, StreamEnd)]
    return end
