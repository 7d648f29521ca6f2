"""Bytes of a router's event stream, in any split → events. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from smista.core.events import (
    Event,
    ReasoningDeltaEvent,
    Status,
    TextDeltaEvent,
    ToolCallRequested,
    ToolCallStarted,
    ToolRequest,
    TurnEnd,
    UsageEvent,
)
from smista.sdk.errors import BadAnswer, is_object

MAX_FRAME: Final = 32 * 1024 * 1024
"""Bytes. A turn end repeats the answer and its context, so a frame may be large."""


class FrameReader:
    """Holds the line and the frame that are not complete yet."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[dict[str, Any]]:
        """Return the frames that *piece* completes. Raises BadAnswer."""
        frames: list[dict[str, Any]] = []
        # Only LF ends a line here: JSON may hold U+2028 and its like.
        *lines, rest = piece.split(b"\n")
        for line in lines:
            frames += self._take_line(bytes(self._line) + line)
            self._line.clear()
        self._line += rest
        if len(self._line) + self._size > MAX_FRAME:
            raise BadAnswer(f"a frame of the stream is larger than {MAX_FRAME} bytes")
        return frames

    def _take_line(self, line: bytes) -> list[dict[str, Any]]:
        line = line.removesuffix(b"\r")
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            self._size += len(line)
            return []
        if line or not self._data:
            return []  # a comment keeps the connection alive; other fields mean nothing to us
        text = b"\n".join(self._data)
        self._data.clear()
        self._size = 0
        return [_parse(text)]


def event_of(frame: Mapping[str, Any]) -> Event | None:
    """Return the event that *frame* states; None for one that only newer clients know."""
    match frame:
        case {"type": "text_delta", "delta": str(delta)}:
            return TextDeltaEvent(delta)
        case {"type": "reasoning_delta", "delta": str(delta)}:
            return ReasoningDeltaEvent(delta)
        case {"type": "tool_call_started", "call_id": str(call_id), "name": str(name)}:
            return ToolCallStarted(call_id, name)
        case {"type": "tool_call_requested"}:
            return ToolCallRequested(tool_request(frame))
        case {"type": "usage", **usage}:
            return UsageEvent(usage)
        case {"type": "turn_end"}:
            return turn_of(frame)
        case _:
            return None


def turn_of(envelope: Mapping[str, Any]) -> TurnEnd:
    """Return the outcome of a turn. Raises BadAnswer for a status that this client lacks."""
    status, data = envelope.get("status"), envelope.get("data")
    if status not in {known.value for known in Status} or not is_object(data):
        raise BadAnswer("the turn ended in a way this version does not know; update smista")
    return TurnEnd(Status(status), data, tuple(envelope.get("allowed_continuations", ())))


def tool_request(entry: Mapping[str, Any]) -> ToolRequest:
    """Return the call that *entry* asks for. Raises BadAnswer."""
    call_id, name, arguments = entry.get("call_id"), entry.get("name"), entry.get("arguments")
    if not isinstance(call_id, str) or not isinstance(name, str) or not is_object(arguments):
        raise BadAnswer("a tool request without call_id, name or arguments")
    return ToolRequest(
        call_id=call_id,
        name=name,
        arguments=arguments,
        # Whatever is not plainly allowed is asked.
        requires_approval="allow" if entry.get("requires_approval") == "allow" else "ask",
        restricted_in_view=entry.get("restricted_in_view") is True,
        masked=entry.get("masked") is True,
    )


def _parse(text: bytes) -> dict[str, Any]:
    try:
        frame = json.loads(text)
    except ValueError as error:
        raise BadAnswer("a frame of the stream is not JSON") from error
    if not is_object(frame):
        raise BadAnswer("a frame of the stream is not an object")
    return frame
