"""A stand-in router on a real socket: scripted answers, remembered requests."""

import json
from collections import defaultdict, deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import h11
import trio

from smista.core.challenge import proof

BODY_OF_COMPLETED = {
    "message": {"role": "assistant", "content": "hello"},
    "classification": {"intent": "chat", "source": "inferred", "reason": "default intent"},
    "routing": {"provider": "openai-compat:demo", "model": "m", "matched_rule": "all -> demo/m"},
    "context": {"included": [], "excluded": []},
    "usage": {"input_tokens": 3, "output_tokens": 2, "actual_cost": "0", "currency": "USD"},
    "trace_id": "trace:1",
}
SESSION = {
    "id": "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f",
    "title": "t",
    "encrypted": False,
    "created_at": "2026-05-25T09:00:00Z",
    "updated_at": "2026-05-25T09:00:00Z",
    "archived": False,
}
SECRET = "what only the user's own router knows"
DETAIL = {name: SESSION[name] for name in ("id", "title", "created_at", "updated_at")}
EXECUTE = f"/api/v1/sessions/{SESSION['id']}/execute"
CONTINUE = f"/api/v1/sessions/{SESSION['id']}/continue"


def turn(status: str, data: dict[str, Any], *allowed: str) -> dict[str, Any]:
    return {"status": status, "data": data, "allowed_continuations": list(allowed)}


def completed(text: str = "hello") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return turn("completed", {**BODY_OF_COMPLETED, "message": message})


def asks_tool(name: str, arguments: dict[str, Any], mode: str = "ask") -> dict[str, Any]:
    call_id = str(uuid4())
    request = {"call_id": call_id, "name": name, "arguments": arguments, "requires_approval": mode}
    return turn("awaiting_tool", {"tool_requests": [request], "trace_id": "trace:1"}, "break")


@dataclass
class Asked:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """*events* makes it a stream; *broken* ends it without a turn end; *hold* keeps it open."""

    body: Any = None
    status: int = 200
    events: list[dict[str, Any]] | None = None
    broken: bool = False
    hold: bool = False


def stream(end: dict[str, Any], *events: dict[str, Any]) -> Reply:
    return Reply(events=[*events, {"type": "turn_end", **end}])


@dataclass
class FakeRouter:
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    replies: dict[tuple[str, str], deque[Reply]] = field(default_factory=lambda: defaultdict(deque))
    held: trio.Event = field(default_factory=trio.Event)
    left: trio.Event = field(default_factory=trio.Event)
    secret: str | None = SECRET

    def __post_init__(self) -> None:
        token = {"token": "t0k3n", "expires_at": "2099-01-01T00:00:00Z"}
        self.always = {
            ("GET", "/status"): Reply({"status": "ok", "version": "9.9.9"}),
            ("POST", "/api/v1/auth/sign-in"): Reply(token),
            ("POST", "/api/v1/sessions"): Reply({"session": SESSION}, 201),
            ("GET", f"/api/v1/sessions/{SESSION['id']}"): Reply({"session": DETAIL}),
        }

    def answer(self, method: str, path: str, *replies: Reply) -> None:
        self.replies[method, path].extend(replies)

    def to(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.path == path]

    async def start(self, nursery: trio.Nursery, port: int = 0) -> "FakeRouter":
        serve = partial(trio.serve_tcp, self._serve, port, host="127.0.0.1")
        listeners = await nursery.start(serve)
        self.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        return self

    async def _serve(self, socket: trio.SocketStream) -> None:
        async with socket:
            try:
                while (asked := await self._read(socket)) is not None:
                    self.asked.append(asked)
                    if "x-smista-challenge" not in asked.headers:
                        await self._reply(socket, self._choose(asked))
                        return
                    await self._prove(socket, asked)
            except trio.BrokenResourceError:
                self.left.set()

    async def _read(self, socket: trio.SocketStream) -> Asked | None:
        connection = h11.Connection(h11.SERVER)
        head, body = None, b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await socket.receive_some(65536))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode(): value.decode() for name, value in head.headers}
                path, _, query = head.target.decode().partition("?")
                parsed = json.loads(body) if body else None
                return Asked(head.method.decode(), path, query, headers, parsed)
            else:
                return None

    def _choose(self, asked: Asked) -> Reply:
        route = (asked.method, asked.path)
        if self.replies[route]:
            return self.replies[route].popleft()
        missing = Reply({"error": {"code": "not_found", "message": f"no {asked.path}"}}, 404)
        return self.always.get(route, missing)

    async def _prove(self, socket: trio.SocketStream, asked: Asked) -> None:
        """Answer a challenge; what is asked next comes on the same connection."""
        told = self._choose(asked).body
        if self.secret is not None and isinstance(told, dict):
            address, port = socket.socket.getsockname()[:2]
            nonce = asked.headers["x-smista-challenge"]
            told = {**told, "proof": proof(self.secret, nonce, address=address, port=port)}
        body = json.dumps(told).encode()
        head = f"HTTP/1.1 200 X\r\nContent-Length: {len(body)}\r\n\r\n"
        await socket.send_all(head.encode() + body)

    async def _reply(self, socket: trio.SocketStream, reply: Reply) -> None:
        kind = "application/json" if reply.events is None else "text/event-stream"
        head = f"HTTP/1.1 {reply.status} X\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n"
        await socket.send_all(head.encode())
        if reply.events is None:
            await socket.send_all(json.dumps(reply.body).encode())
            return
        for event in reply.events:
            await socket.send_all(b": keep-alive\n\ndata: " + json.dumps(event).encode() + b"\n\n")
        if reply.hold:
            self.held.set()
            await socket.receive_some(1)  # returns when the client leaves
            self.left.set()
