"""A running front on a real socket, over ports that are scripted."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import trio
from pydantic import SecretStr

from smista.core.decision import Classification, CostRange, Decision, Item, Routing
from smista.core.errors import SessionNotFound
from smista.core.events import Event, Status, TextDeltaEvent, TurnEnd
from smista.core.intents import Confidence, IntentSource, Mode, TaskIntent
from smista.core.model_ref import (
    Capabilities,
    Catalog,
    ModelDescriptor,
    ProviderDescriptor,
    Unavailable,
)
from smista.core.prompt import Prompt
from smista.core.records import (
    AuthToken,
    EventType,
    MemoryRecord,
    MemoryScope,
    Session,
    TraceEvent,
    User,
)
from smista.core.request import ExecuteRequest
from smista.core.session_copy import SessionCopy
from smista.core.usage import UsageQuery
from smista.front.app import create_app
from smista.front.serve import serve
from smista.front.settings import FrontDurations, FrontSettings
from smista.ports.journal import CostSum, UsageSum
from smista.ports.sessions import Call

MINE = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
UNKNOWN = "018f9c3e-0000-7000-8000-000000000000"
NOON = datetime(2026, 5, 25, 12, tzinfo=UTC)
DONE = TurnEnd(Status.COMPLETED, {"message": {"role": "assistant", "content": "hello"}})

SETTINGS = FrontSettings(version="1.2.3", port=0, rate=None)


class Clock:
    """A wall clock that moves when told to."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time

    def advance(self, **parts: float) -> None:
        self.time += timedelta(**parts)


class FakeJournal:
    """Users and tokens in two dictionaries."""

    def __init__(self) -> None:
        self.users: dict[str, User] = {}
        self.tokens: dict[str, AuthToken] = {}
        self.broken: Exception | None = None
        self.token_reads = 0

    async def _checked(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.broken is not None:
            raise self.broken

    async def add_user(self, user: User) -> None:
        await self._checked()
        self.users[user.id] = user

    async def user(self, user_id: str) -> User | None:
        await self._checked()
        return self.users.get(user_id)

    async def add_token(self, token: AuthToken) -> None:
        await self._checked()
        self.tokens[token.id] = token

    async def token(self, token_id: str) -> AuthToken | None:
        self.token_reads += 1
        await self._checked()
        return self.tokens.get(token_id)

    async def revoke_token(self, token_id: str, *, at: datetime) -> None:
        await self._checked()
        self.tokens[token_id] = replace(self.tokens[token_id], revoked_at=at)


class FakeReader:
    """A turn that says what the test tells it to."""

    def __init__(self, *events: Event) -> None:
        self._events: deque[Event] = deque(events)
        self._changed = trio.Event()
        self._over = False
        self.closed = trio.Event()
        self.waited = trio.Event()

    def say(self, *events: Event) -> None:
        self._events.extend(events)
        self._changed.set()

    def end_silently(self) -> None:
        self._over = True
        self._changed.set()

    async def wait_opened(self) -> None:
        await self._wait()

    async def _wait(self) -> None:
        self.waited.set()
        while not self._events and not self._over:
            self._changed = trio.Event()
            await self._changed.wait()
        await trio.lowlevel.checkpoint()

    def ready(self) -> list[Event]:
        events = list(self._events)
        self._events.clear()
        self._over = self._over or any(isinstance(event, TurnEnd) for event in events)
        return events

    async def wait_events(self) -> list[Event]:
        if self._over and not self._events:
            return []
        await self._wait()
        return self.ready()

    def close(self) -> None:
        self.closed.set()


class FakeSessions:
    """One user's sessions. `fault` is raised by everything; `reader` is what `tell` returns."""

    def __init__(self) -> None:
        self.owner = ""
        self.session = Session(
            id=MINE, user_id="", title="Mine", created_at=NOON, updated_at=NOON, scope="/p"
        )
        self.reader = FakeReader(TextDeltaEvent("hello"), DONE)
        self.fault: BaseException | None = None
        self.calls: list[Call] = []
        self.seen: list[tuple[Any, ...]] = []
        self.told = trio.Event()
        self.hold: trio.Event | None = None
        self.left = trio.Event()
        self.costs: tuple[CostSum, ...] = ()
        self.sums: tuple[UsageSum, ...] = ()
        self.remembered: tuple[MemoryRecord, ...] = ()
        self.events: tuple[TraceEvent, ...] = (ROUTED,)
        self.catalog = Catalog((MODEL,), (Unavailable(provider="gemini", reason="timeout"),))

    async def _enter(self, user_id: str, session_id: str | None = None) -> None:
        await trio.lowlevel.checkpoint()
        if self.hold is not None:
            try:
                self.told.set()
                await self.hold.wait()
            finally:
                self.left.set()
        if self.fault is not None:
            raise self.fault
        if session_id is not None and (session_id != MINE or user_id != self.owner):
            raise SessionNotFound("there is no such session")

    async def create(
        self, user_id: str, *, title: str, scope: str | None, key_id: str | None
    ) -> Session:
        await self._enter(user_id)
        return replace(self.session, title=title, scope=scope, key_id=key_id)

    async def list(
        self, user_id: str, *, scope: str | None, title: str | None
    ) -> tuple[Session, ...]:
        await self._enter(user_id)
        self.seen.append((scope, title))
        return (replace(self.session, title=None),)

    async def fetch(self, user_id: str, session_id: str) -> dict[str, Any]:
        await self._enter(user_id, session_id)
        return {"id": session_id, "messages": [], "metadata": {}}

    async def update(
        self, user_id: str, session_id: str, *, title: str | None, archived: bool | None
    ) -> Session:
        await self._enter(user_id, session_id)
        return replace(
            self.session,
            title=title or self.session.title,
            archived_at=NOON if archived else None,
        )

    async def delete(self, user_id: str, session_id: str) -> None:
        await self._enter(user_id, session_id)

    async def tell(self, call: Call) -> FakeReader:
        await self._enter(call.user_id, call.session_id)
        self.calls.append(call)
        self.told.set()
        if self.reader.closed.is_set():
            self.reader = FakeReader(TextDeltaEvent("hello"), DONE)
        return self.reader

    async def preview(
        self,
        user_id: str,
        session_id: str,
        request: ExecuteRequest,
        credentials: Mapping[str, SecretStr],
    ) -> Decision:
        await self._enter(user_id, session_id)
        return DECISION

    async def trace(
        self, user_id: str, session_id: str, *, offset: int, limit: int
    ) -> tuple[TraceEvent, ...]:
        await self._enter(user_id, session_id)
        self.seen.append((offset, limit))
        return self.events

    async def usage(self, user_id: str, session_id: str) -> tuple[CostSum, ...]:
        await self._enter(user_id, session_id)
        return self.costs

    async def export(self, user_id: str, session_id: str) -> SessionCopy:
        await self._enter(user_id, session_id)
        return SessionCopy(session=self.session)

    async def take_in(self, user_id: str, copy: SessionCopy) -> Session:
        await self._enter(user_id)
        self.seen.append((copy,))
        return copy.session

    async def spending(self, user_id: str, query: UsageQuery) -> tuple[UsageSum, ...]:
        await self._enter(user_id)
        self.seen.append((query,))
        return self.sums

    async def facts(
        self, user_id: str, *, session_id: str | None = None
    ) -> tuple[MemoryRecord, ...]:
        await self._enter(user_id, session_id)
        if user_id != self.owner:
            return ()
        return tuple(f for f in self.remembered if session_id or f.scope is MemoryScope.USER)

    async def forget(self, user_id: str, fact_id: str, *, session_id: str | None = None) -> bool:
        found = [f for f in await self.facts(user_id, session_id=session_id) if f.id == fact_id]
        self.remembered = tuple(f for f in self.remembered if f not in found)
        return bool(found)

    def providers(self) -> tuple[ProviderDescriptor, ...]:
        return (ProviderDescriptor(id="ollama", display_name="Ollama", local=True),)

    async def models(self, credentials: Mapping[str, SecretStr], *, deadline: float) -> Catalog:
        await self._enter("")
        self.seen.append((dict(credentials), deadline))
        return self.catalog


MODEL = ModelDescriptor(
    provider="ollama",
    model="qwen",
    local=True,
    auth="none",
    capabilities=Capabilities(streaming=True),
    max_context_tokens=32_768,
)
ROUTED = TraceEvent(
    event_type=EventType.ROUTING_DECISION,
    task_type=TaskIntent.REVIEW,
    provider="ollama",
    model="qwen",
    created_at=NOON,
    payload={"provider": "ollama", "model": "qwen", "reason": "best"},
    matched_rule="r -> ollama/qwen",
)
DECISION = Decision(
    classification=Classification(
        intent=TaskIntent.REVIEW,
        source=IntentSource.INFERRED,
        reason="keyword 'review' matched rule 0",
        matched_rule=0,
        confidence=Confidence.HIGH,
    ),
    routing=Routing(
        task_type=TaskIntent.REVIEW, provider="ollama", model="qwen", reason="default route"
    ),
    descriptor=MODEL,
    prompt=Prompt(model="qwen", system="", messages=()),
    items=(
        Item(
            kind="file",
            label="a.py",
            tokens=1,
            required=True,
            restricted=False,
            included=True,
            reason="required",
        ),
        Item(
            kind="file",
            label=".env",
            tokens=1,
            required=False,
            restricted=True,
            included=False,
            reason="restricted",
        ),
    ),
    permissions={"shell": Mode.ASK, "file_read": Mode.ALLOW},
    cost=CostRange(),
)

EXECUTE_BODY: dict[str, Any] = {
    "input": {"text": "review it", "command": None, "explicit_model": None},
    "workspace": {"root": "/p", "referenced_paths": ["a.py"]},
    "policy": {
        "version": 1,
        "source": "merged",
        "classification": {"default_intent": "chat", "rules": []},
        "routing": {"default": {"model": "ollama/qwen"}, "rules": []},
        "tools": {"permissions": {"shell": "ask"}},
        "privacy": {},
    },
    "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
    "attachments": {"files": [], "instructions": []},
}


class Wire:
    """A connection that is read by hand."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.heard = b""

    async def until(self, mark: bytes) -> bytes:
        """Read until *mark* came; return all that came with it and before, since last time."""
        with trio.fail_after(10):
            while mark not in self.heard:
                chunk = await self.stream.receive_some()
                assert chunk, f"closed after {self.heard!r}"
                self.heard += chunk
        heard, self.heard = self.heard, b""
        return heard

    async def until_closed(self, within: float = 10) -> bytes:
        """Read until the other side closes; return what came."""
        with trio.fail_after(within):
            try:
                while chunk := await self.stream.receive_some():
                    self.heard += chunk
            except trio.BrokenResourceError:
                self.heard += b""
        return self.heard


@dataclass
class Running:
    """A served front and a client that is signed in to it."""

    url: str
    client: httpx.AsyncClient
    sessions: FakeSessions
    journal: FakeJournal
    clock: Clock
    stop: trio.Event
    stopped: trio.Event
    nursery: trio.Nursery = field(repr=False)
    token: str = ""
    api_key: str = ""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def raw(self, request: bytes) -> bytes:
        """Send *request* as it is and return all that comes back until the close."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        async with stream:
            await stream.send_all(request)
            return b"".join([chunk async for chunk in stream])

    @asynccontextmanager
    async def open_wire(
        self, request: bytes, *, window: int | None = None
    ) -> AsyncIterator["Wire"]:
        """Send *request* on a connection of its own; *window* bounds what may wait unread."""
        socket = trio.socket.socket()
        if window is not None:
            socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, window)
        await socket.connect(("127.0.0.1", self.port))
        async with trio.SocketStream(socket) as stream:
            await stream.send_all(request)
            yield Wire(stream)

    def head(self, method: str, path: str, *lines: str) -> bytes:
        """Return a request head with a right Host and *lines*."""
        host = f"Host: 127.0.0.1:{self.port}"
        return "\r\n".join((f"{method} {path} HTTP/1.1", host, *lines, "", "")).encode()

    def execute_bytes(self, *lines: str, body: bytes) -> bytes:
        return (
            self.head(
                "POST",
                f"/api/v1/sessions/{MINE}/execute",
                f"Authorization: Bearer {self.token}",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                *lines,
            )
            + body
        )


@asynccontextmanager
async def running(
    settings: FrontSettings = SETTINGS,
    *,
    sign_in: bool = True,
    wrap: Callable[[Any], Any] = lambda app: app,
    **durations: float,
) -> AsyncIterator[Running]:
    """Serve a front on a free port; its client is signed in."""
    settings = replace(settings, durations=replace(FrontDurations(), **durations))
    sessions, journal, clock = FakeSessions(), FakeJournal(), Clock()
    app = wrap(create_app(sessions, journal, settings, now=clock))
    stop, stopped = trio.Event(), trio.Event()

    async def serving(task_status: trio.TaskStatus[Sequence[str]]) -> None:
        await serve(app, settings, shutdown_trigger=stop.wait, task_status=task_status)
        stopped.set()

    async with trio.open_nursery() as nursery:
        urls = await nursery.start(partial(serving))
        async with httpx.AsyncClient(base_url=urls[0], trust_env=False, timeout=20) as client:
            front = Running(urls[0], client, sessions, journal, clock, stop, stopped, nursery)
            if sign_in:
                await _sign_in(front)
            yield front
        nursery.cancel_scope.cancel()


async def _sign_in(front: Running) -> None:
    made = (await front.client.post("/api/v1/auth/bootstrap")).json()
    front.sessions.owner, front.api_key = made["user_id"], made["api_key"]
    answer = await front.client.post(
        "/api/v1/auth/sign-in", headers={"X-Smista-Api-Key": front.api_key}
    )
    front.token = answer.json()["token"]
    front.client.headers["Authorization"] = f"Bearer {front.token}"
