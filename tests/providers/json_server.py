"""A server of JSON for tests: paths in, scripted answers out, and who asked what with which key."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio

from tests.providers.raw_server import read_request

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]
Handler = Callable[["Ask"], Awaitable[Answer] | Answer]


@dataclass(frozen=True)
class Ask:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class JsonServer:
    """*handlers*: path (no query) → what answers it; other paths are not found."""

    handlers: dict[str, Handler] = field(default_factory=dict)
    asked: list[Ask] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [ask.path for ask in self.asked]

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        async with stream:
            try:
                while raw := await read_request(stream):
                    await self._answer(stream, _parse(raw))
            except trio.BrokenResourceError:
                return

    async def _answer(self, stream: trio.SocketStream, ask: Ask) -> None:
        self.asked.append(ask)
        handler = self.handlers.get(ask.path.partition("?")[0])
        found = (404, {"error": "not found"}) if handler is None else handler(ask)
        status, value, *more = found if isinstance(found, tuple) else await found
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        headers = {"content-length": str(len(body)), **(more[0] if more else {})}
        lines = [f"HTTP/1.1 {status} X", *(f"{n}: {v}" for n, v in headers.items()), "", ""]
        await stream.send_all("\r\n".join(lines).encode() + body)


def _parse(raw: bytes) -> Ask:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Ask(method, path, headers, json.loads(body) if body else None)


@asynccontextmanager
async def open_json_server() -> AsyncGenerator[JsonServer]:
    server = JsonServer()
    async with trio.open_nursery() as nursery:
        (listener, *_) = await nursery.start(
            partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1")
        )
        server.port = listener.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()
