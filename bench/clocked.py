"""`python -m bench.clocked`: a model as light as can be, which tells when each of its turns went.

It answers Chat Completions in the demo model's words and prints, for each turn, the number that
its prompt names and three times in nanoseconds of the monotonic clock: asked, first byte of the
answer, last byte. It understands no more of HTTP than what smista sends.
"""

import os
import re
import time
from typing import Final

import trio

from bench.script import DELTAS
from smista.demo import chat_completions
from smista.demo.asked import Asked
from smista.demo.script import Text, Tokens

NUMBERED: Final = "number %d"
_NUMBER: Final = re.compile(rb"number (\d+)")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD: Final = (
    b"HTTP/1.1 200 \r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_READ: Final = 262_144
_MARGIN: Final = 512
"""The newest prompt is the end of a body, or nearly."""


async def main() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    _tell(f"port {listeners[0].socket.getsockname()[1]}")
    pieces = answer_pieces()

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            while (body := await read_body(stream)) is not None:
                await _answer(stream, newest_number(body), pieces)

    await trio.serve_listeners(serve, listeners)


def answer_pieces() -> list[bytes]:
    """Return what is sent, each piece on its own: the head with the first delta, ..., the end."""
    asked = Asked(model="demo", user="", texts=("",), digest="0" * 16)
    tokens = Tokens(input=1_000, output=80)
    writer = chat_completions.create_writer(asked, tokens)
    begin, deltas = writer.begin(), list(writer.step(Text(text="word " * 80, deltas=DELTAS)))
    pieces = [_HEAD + _chunk(begin + deltas[0]), *map(_chunk, deltas[1:])]
    return [*pieces, _chunk(writer.end(tokens)) + b"0\r\n\r\n"]


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def read_body(stream: trio.abc.ReceiveStream) -> bytes | None:
    """Return the body of the next request; None if there is none."""
    held = b""
    while b"\r\n\r\n" not in held:
        piece = await stream.receive_some(_READ)
        if not piece:
            return None
        held += piece
    head, _, body = held.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    missing = int(length[1]) - len(body) if length else 0
    while missing > 0:
        piece = await stream.receive_some(_READ)
        if not piece:
            return None
        body += piece
        missing -= len(piece)
    return body


def newest_number(body: bytes) -> int:
    """Return the number in the newest prompt of *body*, -1 without one."""
    found = _NUMBER.findall(body, max(0, body.rfind(b'"user"') - _MARGIN))
    return int(found[-1]) if found else -1


async def _answer(stream: trio.SocketStream, number: int, pieces: list[bytes]) -> None:
    asked = first = time.monotonic_ns()
    for piece in pieces[:-1]:
        await stream.send_all(piece)
    last = time.monotonic_ns()
    await stream.send_all(pieces[-1])
    _tell(f"turn {number} {asked} {first} {last}")


def _tell(line: str) -> None:
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    trio.run(main)
