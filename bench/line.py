"""One keep-alive HTTP/1.1 connection, as light as can be: what it costs is not the router's.

It reads no more of an answer than where it ends, and when its pieces came.
"""

import json
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import trio

_HEAD_END: Final = b"\r\n\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_READ: Final = 262_144


class Broken(Exception):
    """The connection ended within an answer."""


@dataclass(slots=True)
class Answer:
    """The bytes as they came. *times* are those of `pieces`, *asked* when the request went out.

    All in nanoseconds of the monotonic clock.
    """

    asked: int
    pieces: list[bytes] = field(default_factory=list[bytes])
    times: list[int] = field(default_factory=list[int])

    @property
    def raw(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def ok(self) -> bool:
        return self.pieces[0].startswith(b"HTTP/1.1 2")

    @property
    def milliseconds(self) -> float:
        return (self.times[-1] - self.asked) / 1e6

    def json(self) -> Any:
        return json.loads(self.raw.partition(_HEAD_END)[2])

    def last_with(self, mark: bytes) -> int:
        """Return when the last piece with *mark* in it came. Raises ValueError if none did."""
        for time_of, piece in zip(reversed(self.times), reversed(self.pieces), strict=True):
            if mark in piece:
                return time_of
        raise ValueError(f"no {mark!r} in {self.raw[:300]!r}")

    def first_with(self, mark: bytes) -> int:
        """Return when the first piece with *mark* in it came. Raises ValueError if none did."""
        for time_of, piece in zip(self.times, self.pieces, strict=True):
            if mark in piece:
                return time_of
        raise ValueError(f"no {mark!r} in {self.raw[:300]!r}")


class Line:
    """Owns one connection; asks one thing at a time."""

    def __init__(self, stream: trio.SocketStream, host: str) -> None:
        self._stream = stream
        self._host = f"Host: {host}\r\n".encode()

    async def ask(self, request: bytes) -> Answer:
        """Return the whole answer to *request*. Raises Broken."""
        answer = await self.begin(request)
        await self.finish(answer)
        return answer

    async def begin(self, request: bytes) -> Answer:
        """Send *request* and return with the first bytes of the answer."""
        answer = Answer(time.monotonic_ns())
        head, end, rest = request.partition(b"\r\n")
        await self._stream.send_all(b"".join((head, end, self._host, rest)))
        await self.more(answer)
        return answer

    async def finish(self, answer: Answer) -> None:
        while _HEAD_END not in answer.pieces[0]:
            await self.more(answer)
            answer.pieces[:2] = [answer.pieces[0] + answer.pieces[1]]
            del answer.times[0]
        head, _, body = answer.pieces[0].partition(_HEAD_END)
        length = _LENGTH.search(head)
        if length is None:
            await self._read_chunks(answer)
            return
        missing = int(length[1]) - len(body)
        while missing > 0:
            missing -= await self.more(answer)

    async def _read_chunks(self, answer: Answer) -> None:
        # The last chunk may itself come in two pieces.
        while not b"".join(answer.pieces[-2:]).endswith(_LAST_CHUNK):
            await self.more(answer)

    async def more(self, answer: Answer) -> int:
        """Take the next piece of *answer*; return its length. Raises Broken."""
        piece = await self._stream.receive_some(_READ)
        if not piece:
            raise Broken(f"the connection ended after {answer.raw[:300]!r}")
        answer.times.append(time.monotonic_ns())
        answer.pieces.append(piece)
        return len(piece)


@asynccontextmanager
async def open_line(port: int) -> AsyncGenerator[Line]:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        yield Line(stream, f"127.0.0.1:{port}")


def request(
    method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """Return a request without its Host, so that making it costs nothing while it is measured."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body is not None:
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode() + content
