"""The bytes of one answer → events: event stream or JSON, whatever was asked.

It looks at what comes, not at the content type: servers mislabel both. What the objects mean is
the business of a Turn.
"""

from typing import Any, Final, Protocol

from smista.core.errors import ProviderError
from smista.core.stream import StreamEvent
from smista.providers.faults import bad_stream, not_an_api
from smista.providers.json_values import BadJson, TooDeep, is_list, is_object, parse_json
from smista.providers.sse import Frame, SseReader
from smista.providers.wire import Caps, WireRequest

_SPACE: Final = b" \t\r\n"
_DONE: Final = "[DONE]"


class Turn(Protocol):
    """Reads the objects of one answer, in one format. Its methods raise ProviderError.

    *ended*: the server has said that nothing more will come.
    """

    @property
    def ended(self) -> bool: ...

    def read(self, chunk: dict[str, Any], *, event: str = "") -> list[StreamEvent]:
        """Take one object; *event* is the name its frame bears."""
        ...

    def is_beat(self, chunk: dict[str, Any]) -> bool:
        """Tell if *chunk* is a sign of life, and no mere heartbeat."""
        ...

    def end(self, *, explicit: bool) -> list[StreamEvent]:
        """Return the last events. *explicit*: the server said that this is the end."""
        ...

    def usage(self) -> list[StreamEvent]:
        """Return what has been counted so far."""
        ...


class Frames(Protocol):
    """Cuts a stream into frames, whatever pieces it comes in."""

    @property
    def overflow(self) -> bool: ...

    def feed(self, data: bytes) -> list[Frame]: ...

    def close(self) -> list[Frame]: ...


class EventAnswer:
    """The Decoder of every format that streams JSON objects, as server-sent events or *frames*.

    With *frames* of its own a body that begins with a bracket is a stream like any other.
    """

    def __init__(
        self,
        *,
        provider: str,
        request: WireRequest,
        caps: Caps,
        turn: Turn,
        frames: Frames | None = None,
    ) -> None:
        self._provider = provider
        self._request = request
        self._caps = caps
        self._events = frames or SseReader(limit=caps.line_bytes)
        self._brackets = b"{[" if frames is None else b""
        self._turn = turn
        self._body: bytearray | None = None
        self._head = b""
        self._sniffed = False
        self._size = 0
        self.done = False
        self.fault: ProviderError | None = None
        self.beats = 0

    def feed(self, data: bytes) -> list[StreamEvent]:
        if self.done or self.fault is not None:
            return []
        self._size += len(data)
        if self._size > self._caps.answer_bytes:
            return self._fail(self._too_big("the answer"))
        if not self._sniffed:
            data = self._sniff(data)
        if self._body is not None:
            return self._collect(data)
        return self._frames(self._events.feed(data)) if self._sniffed and not self.fault else []

    def close(self) -> list[StreamEvent]:
        """Take notice of the end of bytes: the answer is complete, or it is truncated."""
        if self.done or self.fault is not None:
            return []
        if self._body is not None:
            return self._whole(bytes(self._body))
        events = self._frames([f for f in self._events.close() if self._is_whole(f)])
        if self.done or self.fault is not None:
            return events
        return [*events, *self._end(explicit=False)]

    def _sniff(self, data: bytes) -> bytes:
        """Hold blank bytes back until one tells what kind of body this is; return them all."""
        self._head += data
        start = self._head.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)[:1]
        if not start or b"\xef\xbb\xbf".startswith(self._head):
            # Blank lines before a JSON body are a sign of life, in a stream they are none.
            self.beats += 0 if self._request.stream else 1
            self._head = self._head[:3] + self._head[3:].strip(_SPACE)
            return b""
        self._sniffed = True
        if start in self._brackets:
            self._body = bytearray()
        elif start == b"<":
            self.fault = not_an_api(self._provider, self._request.url, "200 with a web page", 200)
        held, self._head = self._head, b""
        return held

    def _collect(self, data: bytes) -> list[StreamEvent]:
        body = self._body if self._body is not None else bytearray()
        body += data
        self.beats += 1
        if len(body) > self._caps.line_bytes:
            return self._fail(self._too_big("the answer"))
        return []

    def _whole(self, body: bytes) -> list[StreamEvent]:
        try:
            value = parse_json(body.removeprefix(b"\xef\xbb\xbf"), depth=self._caps.depth)
        except TooDeep as error:
            return self._fail(bad_stream(self._provider, "bad_frame", str(error)))
        except BadJson as error:
            return self._fail(bad_stream(self._provider, "truncated_stream", str(error)))
        # A list is a stream that was not asked to be one: its objects, all at once.
        chunks = value if is_list(value) else [value]
        said: list[StreamEvent] = []
        for chunk in chunks:
            if not is_object(chunk):
                what = "the answer is JSON, but no object"
                return [*said, *self._fail(bad_stream(self._provider, "bad_frame", what))]
            said += self._chunk(chunk, "")
            if self.done or self.fault is not None:
                return said
        return [*said, *self._end(explicit=True)]

    def _frames(self, frames: list[Frame]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for frame in frames:
            events += self._frame(frame)
            if self.done or self.fault is not None:
                return events
        return [*events, *self._fail(self._too_big("a line"))] if self._events.overflow else events

    def _frame(self, frame: Frame) -> list[StreamEvent]:
        data = frame.data.strip()
        if data == _DONE:
            return self._end(explicit=True)
        if not data:
            return []
        try:
            value = parse_json(data, depth=self._caps.depth)
        except BadJson as error:
            return self._fail(bad_stream(self._provider, "bad_frame", str(error)))
        if value is None:
            return []
        if is_object(value):
            return self._chunk(value, frame.event)
        what = "an event is JSON, but no object"
        return self._fail(bad_stream(self._provider, "bad_frame", what))

    def _chunk(self, value: dict[str, Any], event: str) -> list[StreamEvent]:
        try:
            events = self._turn.read(value, event=event)
        except ProviderError as error:
            return self._fail(error)
        self.beats += self._turn.is_beat(value)
        return [*events, *self._end(explicit=True)] if self._turn.ended else events

    def _end(self, *, explicit: bool) -> list[StreamEvent]:
        try:
            events = self._turn.end(explicit=explicit)
        except ProviderError as error:
            return self._fail(error)
        self.done = True
        return events

    def _fail(self, error: ProviderError) -> list[StreamEvent]:
        """Note the fault; what the server has counted so far is still billed."""
        self.fault = error
        return self._turn.usage()

    def _is_whole(self, frame: Frame) -> bool:
        if frame.data.strip() == _DONE:
            return True
        try:
            parse_json(frame.data, depth=self._caps.depth)
        except BadJson:
            return False
        return True

    def _too_big(self, what: str) -> ProviderError:
        return bad_stream(self._provider, "too_large", f"{what} is larger than we accept")
