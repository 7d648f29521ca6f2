"""The providers with a witness: who keeps the last known facts hears when they are new."""

from collections.abc import Callable

import trio

from smista.core.model_ref import Catalog, ProviderDescriptor
from smista.ports.provider import Credentials, Provider, Providers

Note = Callable[[Catalog], None]
"""Keeps a catalog; may block, so it is called in a thread. It raises nothing."""


class NotedProviders:
    """*providers* as they are; each catalog that differs from the last one goes to *note*."""

    def __init__(self, providers: Providers, note: Note) -> None:
        self._providers = providers
        self._note = note
        self._last = Catalog()

    def descriptors(self) -> tuple[ProviderDescriptor, ...]:
        return self._providers.descriptors()

    def provider(self, provider_id: str) -> Provider | None:
        return self._providers.provider(provider_id)

    def settled(self, credentials: Credentials) -> bool:
        return self._providers.settled(credentials)

    async def catalog(
        self, credentials: Credentials, *, local_only: bool = False, deadline: float = 10.0
    ) -> Catalog:
        """Return the catalog (`ports.provider`); a new one is kept before this returns."""
        catalog = await self._providers.catalog(
            credentials, local_only=local_only, deadline=deadline
        )
        # Nearly always it is the very same object.
        if catalog is not self._last and catalog != self._last:
            self._last = catalog
            await trio.to_thread.run_sync(self._note, catalog)
        return catalog
