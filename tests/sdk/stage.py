"""A stand-in router whose answers wait for one another, as those of a redirected run do."""

import json
from dataclasses import dataclass, field
from typing import Any

import trio

from tests.sdk.router import FakeRouter, Reply, turn


@dataclass
class Cue(Reply):
    """*sets* happens when the request is there; *wait* must happen before what is in *then*."""

    sets: trio.Event | None = None
    wait: trio.Event | None = None
    then: list[dict[str, Any]] = field(default_factory=list)


class Stage(FakeRouter):
    async def _reply(self, socket: trio.SocketStream, reply: Reply) -> None:
        if isinstance(reply, Cue) and reply.sets is not None:
            reply.sets.set()
        await super()._reply(socket, reply)
        if isinstance(reply, Cue) and reply.wait is not None:
            await reply.wait.wait()
            for event in reply.then:
                await socket.send_all(b"data: " + json.dumps(event).encode() + b"\n\n")


def ends(end: dict[str, Any]) -> dict[str, Any]:
    return {"type": "turn_end", **end}


def says(delta: str) -> dict[str, Any]:
    return {"type": "text_delta", "delta": delta}


def error(code: str) -> dict[str, Any]:
    return turn("error", {"error": {"code": code, "message": code}})


def refuses(code: str, status: int, *, sets: trio.Event | None = None) -> Cue:
    return Cue({"error": {"code": code, "message": code}}, status, sets=sets)
