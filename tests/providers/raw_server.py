"""A server that sends exactly the bytes a test wants, on a real socket."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import trio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
Play = Callable[[trio.SocketStream], Awaitable[None]]


@dataclass
class RawServer:
    """*requests* are the raw heads and bodies; *left* is set when a client closed or reset."""

    play: Play
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    asked: trio.Event = field(default_factory=trio.Event)
    left: trio.Event = field(default_factory=trio.Event)
    left_at: float = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        async with stream:
            try:
                while request := await read_request(stream):
                    self.requests.append(request)
                    self.asked.set()
                    await self.play(stream)
            except trio.BrokenResourceError:
                pass
            except Finished:
                return
        self.left_at = trio.current_time()
        self.left.set()


class Finished(Exception):
    """The script wants the connection closed by the server."""


@asynccontextmanager
async def open_raw_server(play: Play) -> AsyncGenerator[RawServer]:
    server = RawServer(play)
    async with trio.open_nursery() as nursery:
        (listener, *_) = await nursery.start(
            partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1")
        )
        server.port = listener.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


async def read_request(stream: trio.SocketStream) -> bytes:
    """Return one request, b"" once the client has closed."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        part = await stream.receive_some()
        if not part:
            return b""
        raw += part
    head, _, body = raw.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0].partition(b":")[2]) - len(body) if lengths else 0
    while missing > 0:
        part = await stream.receive_some()
        raw, missing = raw + part, missing - len(part)
    return raw


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def sends(*pieces: bytes, then: str = "end") -> Play:
    """Return a play that sends an event stream of *pieces*, then ends, holds, closes or resets."""

    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD)
        for piece in pieces:
            await stream.send_all(chunked(piece))
        await finish(stream, then)

    return play


async def finish(stream: trio.SocketStream, then: str) -> None:
    match then:
        case "end":
            await stream.send_all(END)
        case "hold":
            await stream.receive_some()
            raise trio.BrokenResourceError
        case "close":
            raise Finished
        case "reset":
            linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
            stream.socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
            raise Finished
        case _:
            raise AssertionError(then)


def answers(status: int, body: bytes = b"", **headers: str) -> Play:
    """Return a play that sends one whole response."""

    async def play(stream: trio.SocketStream) -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await stream.send_all("\r\n".join([*lines, "", ""]).encode() + body)

    return play
