"""A directory of sessions over fakes: what most tests of the actors need."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from actors.directory import Directory, open_directory
from actors.parts import Clock, Durations, Limits, Parts
from smista.core.events import Event, TurnEnd
from smista.core.messages import (
    Break,
    Execute,
    Inject,
    InjectData,
    InjectMessage,
    ToolResultEntry,
    ToolResults,
    ToolResultsData,
)
from smista.core.records import User
from smista.core.request import ExecuteRequest
from smista.ports.journal import Journal
from smista.ports.sessions import Call, TurnReader
from smista.storage.memory import MemoryJournal
from tests.fakes import FakeProviders, ScriptedProvider, TickingClock, descriptor

USER = "018bcfe5-6800-7001-8000-000000000001"


def request(text: str = "tell me", **changes) -> ExecuteRequest:
    """A request with the plainest policy; *changes* replace whole members of its body."""
    body = {
        "input": {"text": text},
        "workspace": {"root": "/project", "referenced_paths": []},
        "policy": {
            "version": 1,
            "source": "merged",
            "classification": {},
            "routing": {"default": {"model": "openai-compat:a/m"}},
            "tools": {"permissions": {"file_read": "allow", "file_write": "ask"}},
            "privacy": {},
        },
        "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
        "attachments": {"files": [], "instructions": []},
    }
    return ExecuteRequest.model_validate({**body, **changes})


class House:
    """A directory with one session, and short words to speak to it."""

    def __init__(
        self,
        directory: Directory,
        journal: Journal,
        session_id: str,
        providers: FakeProviders,
    ) -> None:
        self.directory = directory
        self.journal = journal
        self.session_id = self.first = session_id
        self.providers = providers
        self.user = USER

    def provide(self, provider: ScriptedProvider) -> None:
        self.providers.add(provider)

    @staticmethod
    def result(asked: dict[str, Any]) -> ToolResultEntry:
        return result(asked["call_id"], decision="approved")

    async def tell(self, message) -> TurnReader:
        return await self.directory.tell(
            Call(user_id=USER, session_id=self.session_id, message=message)
        )

    async def execute(self, text: str = "tell me", **changes) -> TurnReader:
        return await self.tell(Execute(request=request(text, **changes)))

    async def answer(self, *results: ToolResultEntry) -> TurnReader:
        return await self.tell(ToolResults(data=ToolResultsData(results=results)))

    async def stop(self) -> TurnReader:
        return await self.tell(Break())

    async def inject(self, text: str) -> TurnReader:
        return await self.tell(Inject(data=InjectData(messages=(InjectMessage(text=text),))))

    async def state(self):
        session = await self.journal.session(USER, self.session_id)
        return await self.journal.load(session, messages=None)

    async def trace(self):
        return await self.journal.trace(self.session_id, limit=10_000)


@asynccontextmanager
async def open_house(
    *providers: ScriptedProvider,
    models=(),
    durations: Durations | None = None,
    limits: Limits | None = None,
    journal: Journal | None = None,
    clock: Clock | None = None,
    router: str = "",
) -> AsyncGenerator[House]:
    journal = journal or MemoryJournal()
    clock = clock or TickingClock()
    limits = limits or Limits()
    declared = [descriptor(p.descriptor.id, "m", local=p.descriptor.local) for p in providers]
    if not declared:
        declared = [descriptor("openai-compat:a", "m", local=True)]
    registry = FakeProviders(*providers, models=[*declared, *models])
    parts = Parts(
        journal=journal,
        providers=registry,
        slots=trio.CapacityLimiter(limits.concurrent_turns),
        clock=clock,
        durations=durations or Durations(),
        limits=limits,
        router=router,
    )
    now = clock.now()
    if await journal.user(USER) is None:
        await journal.add_user(User(id=USER, api_key_hash="x", created_at=now, updated_at=now))
    async with open_directory(parts) as directory:
        session = await directory.create(USER, title="t", scope=None, key_id=None)
        yield House(directory, journal, session.id, registry)


async def hear(reader: TurnReader) -> list[Event]:
    """Take everything a turn says."""
    heard: list[Event] = []
    while events := await reader.wait_events():
        heard += events
    return heard


async def outcome(reader: TurnReader) -> TurnEnd:
    """Take everything and return the turn's end."""
    return (await hear(reader))[-1]


def result(call_id: str, content: str = "ok", **more) -> ToolResultEntry:
    return ToolResultEntry(call_id=call_id, content=content, **more)


open_quick = partial(open_house, durations=Durations(backoff=0.0))
