"""A model that answers as a stream, and the set of providers the router can route through."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pydantic import SecretStr

from smista.core.model_ref import Catalog, ProviderDescriptor
from smista.core.prompt import Prompt
from smista.core.stream import StreamEvent

Credentials = Mapping[str, SecretStr]
"""Provider id → key. A key goes to the provider it is filed under and to no other."""


class Provider(Protocol):
    """One model server.

    `open_stream` sends *prompt* and yields the events of the answer, the last one a StreamEnd.
    Leaving the context in the middle closes the connection to the server. Raises ProviderError
    on entry or while iterating; a stream that ends early raises BadStream. It asks once: only
    the turn decides to ask again.
    """

    @property
    def descriptor(self) -> ProviderDescriptor: ...

    def open_stream(
        self, prompt: Prompt, *, key: SecretStr | None
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]: ...


class Providers(Protocol):
    """The registry: every configured provider, and what can be listed with given credentials."""

    def descriptors(self) -> tuple[ProviderDescriptor, ...]: ...

    def provider(self, provider_id: str) -> Provider | None: ...

    def settled(self, credentials: Credentials) -> bool:
        """Whether `catalog` can answer now, for all providers, without any connection.

        If not, the caller first finds out whether its turn allows remote connections at all.
        """
        ...

    async def catalog(
        self, credentials: Credentials, *, local_only: bool = False, deadline: float = 10.0
    ) -> Catalog:
        """Return all models that can be listed within *deadline* seconds.

        *local_only*: no connection to a remote host is made; cached facts serve.
        """
        ...
