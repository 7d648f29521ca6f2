"""Under locality no remote host is connected to, nor is its name looked up: with real providers."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from pydantic import SecretStr

from actors.directory import Directory, open_directory
from actors.parts import Durations, Parts
from smista.core.events import Status
from smista.core.messages import Execute
from smista.core.model_ref import ModelDescriptor
from smista.core.records import User
from smista.ports.sessions import Call
from smista.providers.registry import CompatInstance, Endpoints, open_registry
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, outcome, request
from tests.actors.test_approvals import policy
from tests.actors.test_fallbacks import LOCAL_ONLY
from tests.fakes import ALL, TickingClock

NEAR, FAR = "openai-compat:near", "openai-compat:far"
KEYS = {
    name: SecretStr("sk-of-a-provider")
    for name in ("anthropic", "gemini", "ollama", "openai", NEAR, FAR)
}
CHAIN = {
    "model": f"{NEAR}/m",
    "fallbacks": [f"{FAR}/m", "openai/gpt-6.2-sol", "ollama/big:cloud", "anthropic/claude-sonnet"],
}


class Recorder(trio.abc.HostnameResolver):
    """Notes where the interpreter is told to connect, and which names are looked up; none is."""

    def __init__(self) -> None:
        self.near: list[object] = []
        self.far: list[object] = []
        self.on = True
        sys.addaudithook(self.hear)  # there is no way to take it out again, only to fall silent

    def hear(self, event: str, details: tuple[Any, ...]) -> None:
        match event, details:
            case "socket.connect", (_, (str(host), *_)) if self.on:
                (self.near if host in ("127.0.0.1", "::1") else self.far).append(host)
            case _:
                return

    async def getaddrinfo(self, host, port, family=0, type=0, proto=0, flags=0):  # noqa: A002
        self.far.append(host)
        await trio.lowlevel.checkpoint()
        raise OSError("no name is looked up here")

    async def getnameinfo(self, sockaddr, flags):
        raise OSError("no address is looked up here")


@pytest.fixture
async def recorder() -> AsyncIterator[Recorder]:
    made = Recorder()
    before = trio.socket.set_custom_hostname_resolver(made)
    yield made
    made.on = False
    trio.socket.set_custom_hostname_resolver(before)


def instances(port: int) -> list[CompatInstance]:
    """Return a local endpoint where nobody listens any more, and a remote one."""
    places = ((NEAR, f"http://127.0.0.1:{port}/v1", True), (FAR, "http://far.invalid/v1", False))
    return [
        CompatInstance(
            id=name,
            base_url=url,
            local=local,
            models=(
                ModelDescriptor(
                    provider=name, model="m", local=local, max_context_tokens=9000, capabilities=ALL
                ),
            ),
        )
        for name, url, local in places
    ]


@asynccontextmanager
async def open_real() -> AsyncGenerator[tuple[Directory, str]]:
    """Yield a directory over real providers, and a session; the own Ollama is down too."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    journal, clock = MemoryJournal(), TickingClock()
    far = "https://far.invalid"
    endpoints = Endpoints(
        anthropic=far,
        gemini=far,
        openai=far,
        ollama_cloud=far,
        own_ollama=f"http://127.0.0.1:{port}",
    )
    async with open_registry(instances(port), endpoints=endpoints) as registry:
        parts = Parts(
            journal=journal,
            providers=registry,
            slots=trio.CapacityLimiter(1),
            clock=clock,
            durations=Durations(backoff=0.0),
        )
        now = clock.now()
        await journal.add_user(User(id=USER, api_key_hash="x", created_at=now, updated_at=now))
        async with open_directory(parts) as directory:
            session = await directory.create(USER, title="t", scope=None, key_id=None)
            yield directory, session.id


async def test_fc_51_a_turn_that_has_to_stay_local_connects_to_nobody_else(recorder):
    routed = policy(routing={"default": CHAIN})
    asked = request(policy=routed, local_preferences=LOCAL_ONLY)
    async with open_real() as (directory, session):
        await directory.preview(USER, session, asked, KEYS)
        call = Call(
            user_id=USER,
            session_id=session,
            message=Execute(request=asked),
            credentials=KEYS,
        )
        end = await outcome(await directory.tell(call))
    assert end.status is Status.ERROR
    assert recorder.far == []
    assert len(recorder.near) >= 3  # the prompt went to the local endpoint, and was tried again


async def test_without_locality_the_same_turn_looks_for_remote_hosts(recorder):
    asked = request(policy=policy(routing={"default": CHAIN}))
    async with open_real() as (directory, session):
        call = Call(
            user_id=USER,
            session_id=session,
            message=Execute(request=asked),
            credentials=KEYS,
        )
        await outcome(await directory.tell(call))
    assert recorder.far != []
