"""Streams of the Messages API and of Gemini for tests, and dialects that read them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from smista.core.errors import ProviderError
from smista.core.stream import StreamEnd, StreamEvent
from smista.providers.anthropic import Anthropic
from smista.providers.gemini import Gemini
from smista.providers.masking import create_mask
from smista.providers.wire import Caps, WireRequest

ANTHROPIC = "anthropic"
GEMINI = "gemini"
Outcome = tuple[list[StreamEvent], ProviderError | None]


def open_dialect(kind: str, caps: Caps | None = None) -> Anthropic | Gemini:
    return Anthropic(caps=caps) if kind == ANTHROPIC else Gemini(caps=caps)


def decode(
    kind: str,
    pieces: Iterable[bytes],
    *,
    caps: Caps | None = None,
    names: Mapping[str, str] | None = None,
) -> Outcome:
    request = WireRequest(url="http://127.0.0.1:1", body=b"{}", stream=True, names=names or {})
    decoder = open_dialect(kind, caps).decoder(request, create_mask(None))
    events = [found for piece in pieces for found in decoder.feed(piece)]
    events += decoder.close()
    assert decoder.done != (decoder.fault is not None)
    return events, decoder.fault


def good(kind: str, *pieces: bytes, names: Mapping[str, str] | None = None) -> list[StreamEvent]:
    events, fault = decode(kind, pieces, names=names)
    assert fault is None, fault
    assert isinstance(events[-1], StreamEnd)
    return events


def fault_of(kind: str, *pieces: bytes, caps: Caps | None = None) -> ProviderError:
    _, fault = decode(kind, pieces, caps=caps)
    assert fault is not None
    return fault


def kind_of(kind: str, *pieces: bytes) -> str:
    return str(fault_of(kind, *pieces).details.get("kind"))


def sse(value: Any, event: str = "") -> bytes:
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + json.dumps(value).encode() + b"\n\n"


# The Messages API


def event(kind: str, **more: Any) -> bytes:
    return sse({"type": kind, **more}, kind)


def start(**usage: Any) -> bytes:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    return event("message_start", message={**head, "usage": usage or {"input_tokens": 3}})


def opened(index: Any, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def tool(index: Any, call_id: Any, name: str = "read", given: Any = None) -> bytes:
    return opened(index, type="tool_use", id=call_id, name=name, input=given or {})


def argued(index: Any, piece: str) -> bytes:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return event("content_block_delta", index=index, delta=delta)


def spoken(text: str, index: Any = 0) -> bytes:
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})


def closed(index: Any) -> bytes:
    return event("content_block_stop", index=index)


def changed(stop: str | None = "end_turn", **usage: Any) -> bytes:
    return event("message_delta", delta={"stop_reason": stop}, usage=usage or {"output_tokens": 5})


STOP = event("message_stop")


def finished(stop: str | None = "end_turn", **usage: Any) -> bytes:
    return changed(stop, **usage) + STOP


# Gemini


def chunk(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return sse({"candidates": [candidate], "modelVersion": "m", **more})


def function(name: str = "read", args: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args, **more}}


def counted(prompt: int | None, answer: int | None = None, **more: int) -> dict[str, Any]:
    pairs = {"promptTokenCount": prompt, "candidatesTokenCount": answer, **more}
    return {"usageMetadata": {name: value for name, value in pairs.items() if value is not None}}
