"""The providers of this router: settings in, providers and their models out."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx
import trio

from smista.core.errors import InvalidProviderConfiguration
from smista.core.model_ref import Catalog, ModelDescriptor, ProviderDescriptor
from smista.net import Client, DirectClient, LazyClient, create_client
from smista.ports.provider import Credentials, Provider
from smista.providers.anthropic import BASE_URL as ANTHROPIC_URL
from smista.providers.anthropic import Anthropic
from smista.providers.anthropic_models import parse_models as parse_anthropic
from smista.providers.catalogue import Catalogue, Source
from smista.providers.compatible import Compatible
from smista.providers.facts import Facts, OwnPrice, load_facts
from smista.providers.fetch import Fetcher
from smista.providers.gemini import BASE_URL as GEMINI_URL
from smista.providers.gemini import Gemini
from smista.providers.gemini_models import parse_models as parse_gemini
from smista.providers.ollama import CLOUD_URL, Ollama
from smista.providers.ollama_provider import OllamaProvider
from smista.providers.openai import BASE_URL as OPENAI_URL
from smista.providers.openai import OpenAI
from smista.providers.openai_models import parse_names
from smista.providers.peers import require_near_peer
from smista.providers.sources import DeclaredSource, ListedSource, OllamaSource
from smista.providers.transport import Patience, WireProvider
from smista.providers.wire import Caps, Dialect

_OLLAMA_KEYLESS: Final = (
    "[router.ollama] is not enabled in router.toml, and no key for Ollama Cloud came along"
)
_SHOW_PATIENCE: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatInstance:
    """One named compatible endpoint, *id* is `openai-compat:<name>`, with its declared models."""

    id: str
    base_url: str
    local: bool = False
    display_name: str | None = None
    models: tuple[ModelDescriptor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where the built-in providers answer. No setting changes them; tests and tries do.

    *own_ollama* is the user's own server, None if it is not enabled.
    """

    anthropic: str = ANTHROPIC_URL
    gemini: str = GEMINI_URL
    openai: str = OPENAI_URL
    ollama_cloud: str = CLOUD_URL
    own_ollama: str | None = None


class Registry:
    """The providers, and the catalogue of what they offer."""

    def __init__(self, providers: Mapping[str, Provider], catalogue: Catalogue) -> None:
        self._providers = providers
        self._catalogue = catalogue

    def descriptors(self) -> tuple[ProviderDescriptor, ...]:
        return tuple(provider.descriptor for provider in self._providers.values())

    def provider(self, provider_id: str) -> Provider | None:
        return self._providers.get(provider_id)

    def settled(self, credentials: Credentials) -> bool:
        return self._catalogue.settled(credentials)

    async def catalog(
        self, credentials: Credentials, *, local_only: bool = False, deadline: float = 10.0
    ) -> Catalog:
        """Return what can be listed within *deadline* seconds (`ports.provider`)."""
        return await self._catalogue.catalog(credentials, local_only=local_only, deadline=deadline)


@asynccontextmanager
async def open_registry(
    instances: Iterable[CompatInstance],
    *,
    endpoints: Endpoints | None = None,
    prices: Sequence[OwnPrice] = (),
    patience: Patience | None = None,
    caps: Caps | None = None,
    concurrency: int = 256,
) -> AsyncGenerator[Registry]:
    """Own the clients of all providers while the registry is open.

    At most *concurrency* answers of one provider are under way at a time, the others queue.
    Raises InvalidProviderConfiguration for a base_url or a model that cannot be right.
    """
    async with AsyncExitStack() as clients:
        builder = _Builder(
            endpoints=endpoints or Endpoints(),
            facts=load_facts(prices),
            patience=patience or Patience(),
            caps=caps,
            concurrency=concurrency,
        )
        builder.add_built_in()
        for instance in instances:
            builder.add_instance(instance)
        for client in builder.clients:
            clients.push_async_callback(client.aclose)
        async with _open_tasks() as tasks:
            catalogue = Catalogue(builder.sources, builder.facts, tasks)
            yield Registry(builder.providers, catalogue)


@asynccontextmanager
async def _open_tasks() -> AsyncGenerator[trio.Nursery]:
    """Give questions a place that outlives who asked them; what the body raises stays as it is."""
    try:
        async with trio.open_nursery() as tasks:
            yield tasks
            tasks.cancel_scope.cancel(reason="the registry is closed")
    except BaseExceptionGroup as group:
        match group.exceptions:
            case (error,):
                raise error from None
            case _:
                raise


class _Builder:
    """Collects what a registry consists of."""

    def __init__(
        self,
        *,
        endpoints: Endpoints,
        facts: Facts,
        patience: Patience,
        caps: Caps | None,
        concurrency: int,
    ) -> None:
        self.facts = facts
        self.providers: dict[str, Provider] = {}
        self.sources: list[Source] = []
        self.clients: list[httpx.AsyncClient | DirectClient | LazyClient] = []
        self._endpoints = endpoints
        self._patience = patience
        self._caps = caps
        self._concurrency = concurrency

    def add_built_in(self) -> None:
        """Add the providers that every router has, in the order of their names."""
        at = self._endpoints
        # One client serves all hosts of the makers, made once one of them is asked: the bundle of
        # certificates takes time and memory.
        remote = LazyClient(at.openai, local=False)
        self.clients.append(remote)
        anthropic = Anthropic(base_url=at.anthropic, caps=self._caps)
        gemini = Gemini(base_url=at.gemini, caps=self._caps)
        openai = OpenAI(base_url=at.openai, efforts=self.facts.efforts, caps=self._caps)
        self._add("anthropic", "Anthropic", anthropic, remote)
        self._add("gemini", "Gemini", gemini, remote)
        self._add_ollama(remote)
        self._add("openai", "OpenAI", openai, remote)
        self.sources += (
            ListedSource(
                provider="anthropic",
                fetcher=_fetcher("anthropic", anthropic, remote),
                url=anthropic.models_url,
                headers=anthropic.models_headers,
                parse=parse_anthropic,
            ),
            ListedSource(
                provider="gemini",
                fetcher=_fetcher("gemini", gemini, remote),
                url=gemini.models_url,
                headers=gemini.models_headers,
                parse=parse_gemini,
            ),
            *self._ollama_sources,
            ListedSource(
                provider="openai",
                fetcher=_fetcher("openai", openai, remote),
                url=f"{at.openai.rstrip('/')}/models",
                parse=lambda value: tuple(map(self.facts.openai, parse_names(value))),
            ),
        )

    def add_instance(self, instance: CompatInstance) -> None:
        _check(instance)
        dialect = Compatible(
            provider=instance.id,
            base_url=instance.base_url,
            models={model.model: model.capabilities for model in instance.models},
            caps=self._caps,
        )
        client = self._client(instance.base_url, local=instance.local)
        name = instance.display_name or instance.id
        self._add(instance.id, name, dialect, client, local=instance.local)
        self.sources.append(DeclaredSource(provider=instance.id, models=instance.models))

    def _add_ollama(self, remote: Client) -> None:
        own, cloud_url = self._endpoints.own_ollama, self._endpoints.ollama_cloud
        descriptor = ProviderDescriptor(id="ollama", display_name="Ollama")
        cloud = OllamaSource(
            fetcher=_fetcher("ollama", Ollama(base_url=cloud_url), remote),
            base_url=cloud_url,
            local=False,
            spare=own is not None,
            needs_key=_OLLAMA_KEYLESS,
        )
        elsewhere = Ollama(base_url=cloud_url, local=False, known=cloud.known, caps=self._caps)
        here = None if own is None else self._own_ollama(own, descriptor)
        self._ollama_sources = [cloud] if here is None else [here[1], cloud]
        self.providers["ollama"] = OllamaProvider(
            here=here,
            cloud=self._wire(descriptor, elsewhere, remote),
            patience=min(_SHOW_PATIENCE, self._patience.first),
        )

    def _own_ollama(
        self, url: str, descriptor: ProviderDescriptor
    ) -> tuple[WireProvider, OllamaSource]:
        _check_url("ollama", url)
        client = self._client(url, local=True)
        source = OllamaSource(
            fetcher=_fetcher("ollama", Ollama(base_url=url), client, local=True),
            base_url=url,
            local=True,
        )
        dialect = Ollama(base_url=url, known=source.known, caps=self._caps)
        near = descriptor.model_copy(update={"local": True})
        return self._wire(near, dialect, client), source

    def _client(self, url: str, *, local: bool) -> httpx.AsyncClient | DirectClient:
        client = DirectClient(url) if local else create_client(url, local=False)
        self.clients.append(client)
        return client

    def _add(
        self,
        provider_id: str,
        name: str,
        dialect: Dialect,
        client: Client,
        *,
        local: bool = False,
    ) -> None:
        descriptor = ProviderDescriptor(id=provider_id, display_name=name, local=local)
        self.providers[provider_id] = self._wire(descriptor, dialect, client)

    def _wire(
        self, descriptor: ProviderDescriptor, dialect: Dialect, client: Client
    ) -> WireProvider:
        return WireProvider(
            descriptor=descriptor,
            dialect=dialect,
            client=client,
            limiter=trio.CapacityLimiter(self._concurrency),
            patience=self._patience,
        )


def _fetcher(provider: str, dialect: Dialect, client: Client, *, local: bool = False) -> Fetcher:
    return Fetcher(
        provider=provider,
        client=client,
        failed=dialect.failure,
        key_headers=dialect.key_headers,
        trace=require_near_peer(provider) if local else None,
    )


def _check(instance: CompatInstance) -> None:
    _check_url(instance.id, instance.base_url)
    for model in instance.models:
        if model.provider != instance.id or model.local != instance.local:
            what = f"model {model.model!r} disagrees on provider or locality"
            raise _wrong(instance.id, what)


def _check_url(provider: str, base_url: str) -> None:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        raise _wrong(provider, "base_url is no URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise _wrong(provider, "base_url must be http(s)://host[:port]/path")
    if url.userinfo or url.query or url.fragment:
        raise _wrong(provider, "base_url may hold no credentials, query or fragment")


def _wrong(provider: str, what: str) -> InvalidProviderConfiguration:
    # The URL itself is not quoted: it may hold a key.
    return InvalidProviderConfiguration(f"{provider}: {what}", provider=provider)
