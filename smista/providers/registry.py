"""The providers of this router: settings in, providers and their models out."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx
import trio

from smista.core.errors import InvalidProviderConfiguration
from smista.core.model_ref import Catalog, ModelDescriptor, ProviderDescriptor, Unavailable
from smista.net import create_client
from smista.ports.provider import Credentials
from smista.providers.compatible import Compatible
from smista.providers.transport import Patience, WireProvider
from smista.providers.wire import Caps

BUILT_IN: Final = (
    ProviderDescriptor(id="anthropic", display_name="Anthropic"),
    ProviderDescriptor(id="gemini", display_name="Gemini"),
    ProviderDescriptor(id="ollama", display_name="Ollama", local=True),
    ProviderDescriptor(id="openai", display_name="OpenAI"),
)
_NOT_HERE: Final = "this version of smista serves OpenAI-compatible endpoints only"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatInstance:
    """One named compatible endpoint, *id* is `openai-compat:<name>`, with its declared models."""

    id: str
    base_url: str
    local: bool = False
    display_name: str | None = None
    models: tuple[ModelDescriptor, ...] = ()


class Registry:
    """Providers on given *providers*; their facts are declared, so a listing asks nobody."""

    def __init__(
        self, providers: Mapping[str, WireProvider], models: tuple[ModelDescriptor, ...]
    ) -> None:
        self._providers = providers
        self._catalog = Catalog(models, tuple(map(_unavailable, BUILT_IN)))

    def descriptors(self) -> tuple[ProviderDescriptor, ...]:
        return (*BUILT_IN, *(provider.descriptor for provider in self._providers.values()))

    def provider(self, provider_id: str) -> WireProvider | None:
        return self._providers.get(provider_id)

    def settled(self, credentials: Credentials) -> bool:
        """Return True: all facts are declared, so a listing asks nobody (`ports.provider`)."""
        return True

    async def catalog(
        self, credentials: Credentials, *, local_only: bool = False, deadline: float = 10.0
    ) -> Catalog:
        """Return the declared models (`ports.provider`); no connection is made."""
        await trio.lowlevel.checkpoint()
        return self._catalog


@asynccontextmanager
async def open_registry(
    instances: Iterable[CompatInstance],
    *,
    patience: Patience | None = None,
    caps: Caps | None = None,
    concurrency: int = 256,
) -> AsyncGenerator[Registry]:
    """Own the clients of all *instances* while the registry is open.

    At most *concurrency* answers of one provider are under way at a time, the others queue.
    Raises InvalidProviderConfiguration for a base_url or a model that cannot be right.
    """
    async with AsyncExitStack() as clients:
        providers: dict[str, WireProvider] = {}
        models: list[ModelDescriptor] = []
        for instance in instances:
            _check(instance)
            client = create_client(instance.base_url, local=instance.local)
            await clients.enter_async_context(client)
            providers[instance.id] = WireProvider(
                descriptor=_descriptor(instance),
                dialect=_dialect(instance, caps),
                client=client,
                limiter=trio.CapacityLimiter(concurrency),
                patience=patience or Patience(),
            )
            models += instance.models
        yield Registry(providers, tuple(models))


def _descriptor(instance: CompatInstance) -> ProviderDescriptor:
    return ProviderDescriptor(
        id=instance.id, display_name=instance.display_name or instance.id, local=instance.local
    )


def _dialect(instance: CompatInstance, caps: Caps | None) -> Compatible:
    return Compatible(
        provider=instance.id,
        base_url=instance.base_url,
        models={model.model: model.capabilities for model in instance.models},
        caps=caps,
    )


def _check(instance: CompatInstance) -> None:
    try:
        url = httpx.URL(instance.base_url)
    except httpx.InvalidURL:
        raise _wrong(instance, "base_url is no URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise _wrong(instance, "base_url must be http(s)://host[:port]/path")
    if url.userinfo or url.query or url.fragment:
        raise _wrong(instance, "base_url may hold no credentials, query or fragment")
    for model in instance.models:
        if model.provider != instance.id or model.local != instance.local:
            raise _wrong(instance, f"model {model.model!r} disagrees on provider or locality")


def _wrong(instance: CompatInstance, what: str) -> InvalidProviderConfiguration:
    # The URL itself is not quoted: it may hold a key.
    return InvalidProviderConfiguration(f"{instance.id}: {what}", provider=instance.id)


def _unavailable(descriptor: ProviderDescriptor) -> Unavailable:
    return Unavailable(provider=descriptor.id, reason="provider_unavailable", message=_NOT_HERE)
