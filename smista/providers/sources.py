"""Where lists of models come from: a provider's API, Ollama, or the router's own settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import trio
from pydantic import SecretStr

from smista.core.errors import ModelNotFound, ProviderError
from smista.core.model_ref import ModelDescriptor
from smista.providers.catalogue import Listing
from smista.providers.fetch import Fetcher
from smista.providers.ollama_facts import OllamaModel, Tag, read_model, read_tags

HOUR: Final = 3600.0
MINUTE: Final = 60.0
_SHOWN_AT_ONCE: Final = 8
KEYLESS: Final = "no credentials configured for the provider"
_LATEST: Final = ":latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSource:
    """Models that the router's settings declare; nobody is asked."""

    provider: str
    models: tuple[ModelDescriptor, ...]
    local: bool = True  # no connection is ever made
    needs_key: str | None = None
    fresh: float = HOUR
    spare: bool = False

    async def list_models(self, key: SecretStr | None) -> Listing:
        await trio.lowlevel.checkpoint()
        return Listing(models=self.models)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSource:
    """A provider that lists its models at *url*; *parse* reads the list."""

    provider: str
    fetcher: Fetcher
    url: str
    parse: Callable[[Any], tuple[ModelDescriptor, ...]]
    headers: Mapping[str, str] | None = None
    local: bool = False
    needs_key: str | None = KEYLESS
    fresh: float = HOUR
    spare: bool = False

    async def list_models(self, key: SecretStr | None) -> Listing:
        value = await self.fetcher.get(self.url, key=key, headers=self.headers)
        return Listing(models=self.parse(value))


class OllamaSource:
    """An Ollama server or its cloud: the list of names, and what it shows of each.

    A model is asked about again only when its digest has changed.
    """

    provider = "ollama"

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        base_url: str,
        local: bool,
        spare: bool = False,
        needs_key: str | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._url = base_url.rstrip("/")
        self._shown: dict[str, tuple[Tag, OllamaModel | None]] = {}
        self.local = local
        self.needs_key = needs_key
        self.fresh = MINUTE if local else HOUR
        self.spare = spare

    async def list_models(self, key: SecretStr | None) -> Listing:
        """Return the models; what is served elsewhere is found by its name only.

        Raises ProviderError if the list, or none of its models, can be had.
        """
        tags = read_tags(await self._fetcher.get(f"{self._url}/api/tags", key=key))
        await self._look_at(tags, key)
        known = [self._shown[tag.name][1] for tag in tags if tag.name in self._shown]
        models = tuple(model.descriptor for model in known if model is not None)
        if not self.local:
            return Listing(models=() if self.spare else models, by_name=models)
        here = tuple(model for model in models if model.local)
        there = tuple(model for model in models if not model.local)
        return Listing(models=here, by_name=(*there, *_short(here)))

    async def show(self, name: str, key: SecretStr | None) -> Any:
        """Return what the server tells of *name* now. Raises ProviderError."""
        return await self._fetcher.post(f"{self._url}/api/show", {"model": name}, key=key)

    def known(self, name: str) -> OllamaModel | None:
        """Return the facts of *name* as the last list told them."""
        _, model = self._shown.get(name) or self._shown.get(name + _LATEST) or (None, None)
        return model

    def forwards(self, name: str) -> bool:
        """Tell if this server is known to have *name* served elsewhere."""
        tag, _ = self._shown.get(name, (None, None))
        return tag is not None and tag.remote

    def offers(self, name: str) -> bool:
        return name in self._shown or name + _LATEST in self._shown

    async def _look_at(self, tags: list[Tag], key: SecretStr | None) -> None:
        listed = {tag.name: tag for tag in tags}
        self._shown = {n: shown for n, shown in self._shown.items() if listed.get(n) == shown[0]}
        errors: list[ProviderError] = []
        limiter = trio.CapacityLimiter(_SHOWN_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for tag in tags:
                if tag.name not in self._shown:
                    nursery.start_soon(self._look, tag, key, limiter, errors)
        if errors and not self._shown:
            raise errors[0]

    async def _look(
        self,
        tag: Tag,
        key: SecretStr | None,
        limiter: trio.CapacityLimiter,
        errors: list[ProviderError],
    ) -> None:
        """Note what is shown of *tag*; a model that cannot be shown is left out."""
        async with limiter:
            try:
                shown = await self.show(tag.name, key)
            except ModelNotFound:
                return  # it was removed in the meantime
            except ProviderError as error:
                errors.append(error)
                return
        auth = "none" if self.local else "api_key"
        model = read_model(tag.name, shown, local=self.local and not tag.remote, auth=auth)
        self._shown[tag.name] = (tag, model)


def _short(models: tuple[ModelDescriptor, ...]) -> tuple[ModelDescriptor, ...]:
    """Return models under the names that leave out `:latest`, as Ollama itself takes them."""
    return tuple(
        model.model_copy(update={"model": model.model.removesuffix(_LATEST)})
        for model in models
        if model.model.endswith(_LATEST)
    )
