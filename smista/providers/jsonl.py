"""One JSON text a line, from bytes cut anywhere. It holds back nothing but an unfinished line."""

from smista.providers.sse import Frame


class JsonLines:
    """Bytes in any split in, the same frames out; blank lines are none.

    Once a line exceeds *limit* bytes, *overflow* is set and nothing more is read.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._size = 0
        self.overflow = False

    def feed(self, data: bytes) -> list[Frame]:
        """Return the lines that *data* completes."""
        if self.overflow:
            return []
        head, *more = data.split(b"\n")
        self._hold(head)
        frames: list[Frame] = []
        for part in more:
            frames += self._line()
            self._hold(part)
        return frames

    def close(self) -> list[Frame]:
        """Return the last line if the stream ended before its end of line."""
        return [] if self.overflow else self._line()

    def _hold(self, part: bytes) -> None:
        self._rest.append(part)
        self._size += len(part)
        self.overflow = self.overflow or self._size > self._limit

    def _line(self) -> list[Frame]:
        line = b"".join(self._rest).removeprefix(b"\xef\xbb\xbf").strip()
        self._rest, self._size = [], 0
        if self.overflow or not line:
            return []
        return [Frame("", line.decode("utf-8", "replace"))]
