"""One provider, two places: the user's own Ollama, and Ollama's cloud.

A prompt for a local model goes to the own server only, and only after that server has said,
now, that it runs the model itself.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import trio
from pydantic import SecretStr

from smista.core.errors import (
    InvalidProviderCredentials,
    ProviderFailure,
    ProviderTimeout,
    ProviderUnavailable,
)
from smista.core.model_ref import ProviderDescriptor
from smista.core.prompt import Prompt
from smista.core.stream import StreamEvent
from smista.providers.ollama_facts import is_remote
from smista.providers.sources import OllamaSource
from smista.providers.transport import WireProvider


class OllamaProvider:
    """A Provider. *here* is the own server and what it offers, None if it is not enabled.

    *patience*: seconds for the own server to say where it runs a model.
    """

    def __init__(
        self,
        *,
        here: tuple[WireProvider, OllamaSource] | None,
        cloud: WireProvider,
        patience: float,
    ) -> None:
        self._here = here
        self._cloud = cloud
        self._patience = patience

    @property
    def descriptor(self) -> ProviderDescriptor:
        return (self._cloud if self._here is None else self._here[0]).descriptor

    @asynccontextmanager
    async def open_stream(
        self, prompt: Prompt, *, key: SecretStr | None
    ) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """Send *prompt* to the place that serves its model (`ports.provider`)."""
        provider = await self._place(prompt, key)
        async with provider.open_stream(prompt, key=key) as stream:
            yield stream

    async def _place(self, prompt: Prompt, key: SecretStr | None) -> WireProvider:
        if self._here is not None:
            provider, source = self._here
            if not prompt.local and source.forwards(prompt.model):
                return provider
            if prompt.local or source.offers(prompt.model):
                await self._require_near(source, prompt.model, key)
                return provider
        if prompt.local:
            text = f"ollama: {prompt.model} is a local model, and no local server is enabled"
            raise ProviderUnavailable(text, provider="ollama")
        if key is None:
            text = f"ollama: {prompt.model} is served by Ollama Cloud, which wants a key"
            raise InvalidProviderCredentials(text, provider="ollama")
        return self._cloud

    async def _require_near(self, source: OllamaSource, model: str, key: SecretStr | None) -> None:
        """Raise ProviderFailure if *model* is served elsewhere by now."""
        try:
            with trio.fail_after(self._patience):
                shown = await source.show(model, key)
        except trio.TooSlowError:
            text = f"ollama did not say within {self._patience:g} seconds where {model} runs"
            raise ProviderTimeout(text, kind="stalled", provider="ollama") from None
        if is_remote(model, shown):
            raise ProviderFailure(
                f"ollama: {model} was listed as a local model, but is served by another host now;"
                " nothing was sent",
                kind="not_local",
                provider="ollama",
            )
