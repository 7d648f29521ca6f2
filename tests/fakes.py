"""Fakes that keep the contracts of the real things: a scripted provider, a registry, a clock."""

from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import trio
from pydantic import SecretStr

from actors.parts import Clock
from smista.core.errors import SmistaError
from smista.core.model_ref import Capabilities, Catalog, ModelDescriptor, ProviderDescriptor
from smista.core.prompt import Prompt
from smista.core.stream import Finish, StreamEnd, StreamEvent, TextDelta, ToolCallEnded, ToolStarted
from smista.core.stream import Usage as ModelUsage
from smista.ports.provider import Credentials

ALL = Capabilities(streaming=True, tools=True, json_output=True, system_prompt=True, memory=True)


def descriptor(provider: str, model: str, **facts) -> ModelDescriptor:
    """A model with tools and a comfortable window; *facts* replace what matters to a test."""
    given = {"auth": "none", "capabilities": ALL, "max_context_tokens": 100_000, **facts}
    return ModelDescriptor(provider=provider, model=model, **given)


class Stall:
    """A point where the model falls silent for ever: *reached* it, *left* it by a cancel."""

    def __init__(self) -> None:
        self.reached = trio.Event()
        self.left = trio.Event()


Step = StreamEvent | SmistaError | Stall


def said(*texts: str, usage: ModelUsage | None = None) -> list[Step]:
    """A whole answer of *texts*."""
    deltas: list[Step] = [TextDelta(text=text) for text in texts]
    return [*deltas, usage or ModelUsage(input_tokens=10, output_tokens=5), end()]


def called(name: str, arguments: str, *, text: str = "", index: int = 0) -> list[Step]:
    """A whole answer that asks for one tool."""
    return [
        *([TextDelta(text=text)] if text else []),
        ToolStarted(index=index, name=name),
        ToolCallEnded(index=index, id=f"call_{index}", name=name, arguments=arguments),
        ModelUsage(input_tokens=10, output_tokens=5),
        end(Finish.TOOL_CALLS),
    ]


def end(finish: Finish = Finish.STOP) -> StreamEnd:
    return StreamEnd(finish=finish)


class ScriptedProvider:
    """Answers each call with the next script; *prompts* keeps what it was asked, *closed* counts
    the answers that were left before their end."""

    def __init__(
        self, *scripts: Iterable[Step], provider_id: str = "openai-compat:a", local: bool = True
    ) -> None:
        self.descriptor = ProviderDescriptor(id=provider_id, display_name="A", local=local)
        self.scripts = deque(list(script) for script in scripts)
        self.prompts: list[Prompt] = []
        self.keys: list[SecretStr | None] = []
        self.closed = 0

    @asynccontextmanager
    async def open_stream(
        self, prompt: Prompt, *, key: SecretStr | None
    ) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        await trio.lowlevel.checkpoint()
        self.prompts.append(prompt)
        self.keys.append(key)
        playing = _Playing(self.scripts.popleft())
        try:
            yield playing
        finally:
            self.closed += not playing.over


class _Playing:
    def __init__(self, script: list[Step]) -> None:
        self._script = deque(script)
        self.over = False

    def __aiter__(self) -> "_Playing":
        return self

    async def __anext__(self) -> StreamEvent:
        await trio.lowlevel.checkpoint()
        if not self._script:
            self.over = True
            raise StopAsyncIteration
        match self._script.popleft():
            case Stall() as stall:
                stall.reached.set()
                try:
                    await trio.sleep_forever()
                finally:
                    stall.left.set()
            case SmistaError() as error:
                raise error
            case event:
                return event


class FakeProviders:
    """A registry of scripted providers and the models they declare."""

    def __init__(self, *providers: ScriptedProvider, models: Iterable[ModelDescriptor]) -> None:
        self._providers = {p.descriptor.id: p for p in providers}
        self._catalog = Catalog(models=tuple(models))
        self.asked: list[bool] = []  # each listing: was it for local models only?
        self.fresh = True
        self.hang = False

    def add(self, provider: ScriptedProvider) -> None:
        self._providers[provider.descriptor.id] = provider

    def name_only(self, *models: ModelDescriptor) -> None:
        """Offer *models* to whoever knows their names, and list them nowhere."""
        self._catalog = self._catalog._replace(by_name=models)

    def descriptors(self) -> tuple[ProviderDescriptor, ...]:
        return tuple(p.descriptor for p in self._providers.values())

    def provider(self, provider_id: str) -> ScriptedProvider | None:
        return self._providers.get(provider_id)

    def settled(self, credentials: Credentials) -> bool:
        return self.fresh

    async def catalog(
        self, credentials: Credentials, *, local_only: bool = False, deadline: float = 10.0
    ) -> Catalog:
        await trio.lowlevel.checkpoint()
        self.asked.append(local_only)
        if self.hang:
            await trio.sleep_forever()
        return self._catalog


class TickingClock(Clock):
    """A clock that moves one millisecond at every look, and randomness that is not."""

    def __init__(self) -> None:
        self._at = datetime(2026, 1, 1, tzinfo=UTC)
        self._drawn = 0

    def now(self) -> datetime:
        self._at += timedelta(milliseconds=1)
        return self._at

    def entropy(self) -> int:
        self._drawn += 1
        return self._drawn

    def jitter(self) -> float:
        return 0.5
