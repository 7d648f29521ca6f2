"""A router as users run it, with a demo model beside it: three processes, this one the client's.

The store is on the disk, every commit is synced, the trace is on.
"""

import os
import sys
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trio

from bench.line import Line, open_line, request
from bench.processes import free_port, open_process

API: Final = "/api/v1"
CHECKOUT: Final = str(Path(__file__).resolve().parents[1])
SETTINGS: Final = """\
[router]
port = {port}

[router.storage]
path = "db"

[router.rate_limit]
enabled = false

[router.limits]
max_concurrent_requests = 2000

[router.providers."openai-compat:bench"]
base_url = "http://127.0.0.1:{model_port}/v1"
local = true
models = [{{ name = "demo", max_context_tokens = 1_000_000 }}]
"""
_TELLS_WITHIN: Final = 10.0
_REF: Final = "openai-compat:bench/demo"


@dataclass(frozen=True, slots=True)
class Clocked:
    """When a turn of the clocked model was asked for, began to be answered, and was complete."""

    asked: int
    first: int
    last: int


class Told:
    """What the model said of itself: its port, and when it was asked and left.

    *turns*: what the clocked model said of each, by its number.
    """

    def __init__(self) -> None:
        self.port = 0
        self.turns: dict[int, Clocked] = {}
        self._seen: deque[int] = deque()
        self._left: deque[int] = deque()
        self._news = trio.lowlevel.ParkingLot()

    def hear(self, line: str) -> None:
        word, *said = line.split(" ")
        numbers = [int(number) for number in said]
        match word:
            case "port":
                self.port = numbers[0]
            case "seen":
                self._seen.append(numbers[0])
            case "left":
                self._left.append(numbers[0])
            case "turn":
                self.turns[numbers[0]] = Clocked(*numbers[1:])
            case _:
                raise ValueError(f"no model of the bench says {line!r}")
        self._news.unpark_all()

    def forget(self) -> None:
        """Drop what is known, before what is to be measured."""
        self._seen.clear()
        self._left.clear()

    async def next_seen(self) -> int:
        """Return when the model was asked next, in nanoseconds of the monotonic clock."""
        return await self._next(self._seen)

    async def next_left(self) -> int:
        """Return when a client left a held answer next."""
        return await self._next(self._left)

    async def wait_turns(self, numbers: Iterable[int]) -> None:
        """Return once all turns of *numbers* were told of."""
        with trio.fail_after(_TELLS_WITHIN):
            while not all(number in self.turns for number in numbers):
                await self._news.park()

    async def _next(self, times: deque[int]) -> int:
        with trio.fail_after(_TELLS_WITHIN):
            while not times:
                await self._news.park()
        return times.popleft()


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """*pid* is the router's; *token* belongs to the one user of it."""

    port: int
    pid: int
    told: Told
    token: str

    def execute(self, session_id: str, text: str = "go on") -> bytes:
        """Return the request for a streamed turn with *text*."""
        path = f"{API}/sessions/{session_id}/execute"
        headers = {**self._bearer, "Accept": "text/event-stream"}
        return request("POST", path, execute_body(text), headers)

    def brk(self, session_id: str) -> bytes:
        path = f"{API}/sessions/{session_id}/continue"
        return request("POST", path, {"type": "break"}, self._bearer)

    def sealed(self, session_id: str, envelopes: Mapping[str, Any]) -> bytes:
        """Return the request that stores what a turn of an encrypted session left to seal."""
        path = f"{API}/sessions/{session_id}/continue"
        body = {"type": "sealed", "data": {"encrypted": envelopes}}
        return request("POST", path, body, self._bearer)

    async def new_session(self, line: Line, key_id: str | None = None) -> str:
        """Make a session, an encrypted one if there is a *key_id*."""
        body = {"title": "b"} if key_id is None else {"title": "b", "key_id": key_id}
        answer = await line.ask(request("POST", f"{API}/sessions", body, self._bearer))
        return str(answer.json()["session"]["id"])

    @property
    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


STATUS: Final = request("GET", "/status")


def direct(text: str = "go on") -> bytes:
    """Return the request that asks the demo model itself."""
    body = {
        "model": "demo",
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return request("POST", "/v1/chat/completions", body, {"Accept": "text/event-stream"})


def execute_body(text: str) -> dict[str, Any]:
    """Return a turn of ordinary size: ten rules, one file, a page of instructions."""
    rules = [
        {"name": f"r{n}", "intent": "edit", "paths": [f"src/part{n}/**"], "model": _REF}
        for n in range(10)
    ]
    file = {"path": "src/a.py", "content": "x = 1\n" * 300, "content_hash": "h", "required": False}
    return {
        "input": {"text": text},
        "workspace": {"root": "/home/u/project", "referenced_paths": ["src/a.py"]},
        "policy": {
            "version": 1,
            "source": "merged",
            "classification": {"rules": [{"intent": "edit", "keywords": ["fix", "edit"]}]},
            "routing": {"default": {"model": _REF}, "rules": rules},
            "tools": {"permissions": {"shell": "ask"}},
            "privacy": {"restricted_paths": ["**/*.pem", "secrets/**", ".env*"]},
        },
        "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
        "attachments": {
            "files": [file],
            "instructions": [{"source": "AGENTS.md", "content": "Be brief. " * 100}],
        },
    }


@asynccontextmanager
async def open_house(*, model: str = "bench.model") -> AsyncGenerator[House]:
    """Lend a running router; processes and files are gone afterwards, whatever happens.

    *model*: the module that answers as the model.
    """
    told = Told()
    with tempfile.TemporaryDirectory(prefix="smista-bench-") as place:
        async with open_model(told, model), open_router(Path(place), told.port) as (port, pid):
            yield House(port=port, pid=pid, told=told, token=await _token(port))


@asynccontextmanager
async def open_model(told: Told, model: str) -> AsyncGenerator[None]:
    command = [sys.executable, "-m", model]
    async with open_process(
        command, channel="stdout", heard=told.hear, up_at="port", env=environment()
    ):
        yield


@asynccontextmanager
async def open_router(place: Path, model_port: int) -> AsyncGenerator[tuple[int, int]]:
    """Lend port and process id of a router that keeps everything in *place*."""
    port = free_port()
    file = settings_file(place, port, model_port)
    command = [sys.executable, "-P", "-m", "smista", "start", "--foreground", "--config", str(file)]
    env = router_environment(place)
    async with open_process(
        command, channel="stderr", heard=_drop, up_at="router answers", env=env
    ) as process:
        yield port, process.pid


def _drop(line: str) -> None:
    """Forget *line*: the router's log is read so that it never waits for us, and for no more."""


def settings_file(place: Path, port: int, model_port: int) -> Path:
    file = place / "router.toml"
    file.write_text(SETTINGS.format(port=port, model_port=model_port), "utf-8")
    return file


def router_environment(place: Path) -> dict[str, str]:
    return {**environment(), "HOME": str(place), "SMISTA_HOME": str(place / "home")}


def environment() -> dict[str, str]:
    """Return what a child needs of ours, and no settings of the user's own smista.

    It runs the code that lies beside the bench, wherever else smista is installed.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "PYTHONPATH": CHECKOUT}


async def _token(port: int) -> str:
    async with open_line(port) as line:
        made = await line.ask(request("POST", f"{API}/auth/bootstrap"))
        headers = {"X-Smista-Api-Key": made.json()["api_key"]}
        signed = await line.ask(request("POST", f"{API}/auth/sign-in", headers=headers))
        return str(signed.json()["token"])
