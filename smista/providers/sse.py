"""Server-sent events from bytes cut anywhere. It holds back nothing but an unfinished line."""

from dataclasses import dataclass
from typing import Final

_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Frame:
    """One event: its name ("" if it has none) and its data lines."""

    event: str
    data: str


class SseReader:
    """Bytes in any split in, the same frames out.

    LF, CR and CRLF end a line; comments and unknown fields are skipped. Once a line or the
    data of an event exceeds *limit* bytes, *overflow* is set and nothing more is read.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._rest = b""
        self._started = False
        self._skip_lf = False
        self._event = ""
        self._data: list[bytes] = []
        self._size = 0
        self.overflow = False

    def feed(self, data: bytes) -> list[Frame]:
        """Return the events that *data* completes."""
        if self.overflow or not (piece := self._unmarked(data)):
            return []
        if self._skip_lf:
            piece = piece.removeprefix(b"\n")
            self._skip_lf = False
        if b"\r" in piece:
            self._skip_lf = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = (
            (self._rest + piece).split(b"\n") if b"\n" in piece else (self._rest + piece,)
        )
        frames = self._lines(lines)
        self.overflow = self.overflow or len(self._rest) > self._limit
        return frames

    def close(self) -> list[Frame]:
        """Return the last event if the stream ended before its blank line."""
        if not self._started:
            self._rest, self._started = self._rest.removeprefix(_BOM), True
        lines = [self._rest, b""]
        self._rest = b""
        return [] if self.overflow else self._lines(lines)

    def _unmarked(self, data: bytes) -> bytes:
        # The byte order mark may itself be cut; three bytes decide.
        if self._started:
            return data
        head = self._rest + data
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._rest = head
            return b""
        self._rest, self._started = b"", True
        return head.removeprefix(_BOM)

    def _lines(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        for line in lines:
            if len(line) > self._limit or self._size > self._limit:
                self.overflow = True
                break
            if line:
                self._field(line)
            elif (frame := self._dispatch()) is not None:
                frames.append(frame)
        return frames

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")

    def _dispatch(self) -> Frame | None:
        event, data = self._event, self._data
        self._event, self._data, self._size = "", [], 0
        return Frame(event, b"\n".join(data).decode("utf-8", "replace")) if data else None
