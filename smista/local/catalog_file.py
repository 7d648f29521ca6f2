"""The last known facts about models, in a file: the router writes it, `smista explain` reads it.

Facts only: no key, no address. What cannot be read counts as not there.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from smista.core.model_ref import Catalog, ModelDescriptor, Unavailable
from smista.local.paths import Places, private_directory, read_private, write_private


class CachedCatalog(BaseModel):
    """*written_at* is when the router last saw something new."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, hide_input_in_errors=True)

    written_at: datetime
    models: tuple[ModelDescriptor, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    by_name: tuple[ModelDescriptor, ...] = ()

    @property
    def all_models(self) -> tuple[ModelDescriptor, ...]:
        """Return what resolves: listed models first, then those found by their exact name."""
        return (*self.models, *self.by_name)


def catalog_path(places: Places) -> Path:
    return places.config / "catalog.json"


def read_catalog(path: Path) -> CachedCatalog | None:
    """Return what was kept in *path*, None if there is nothing of use. Raises NotOurs."""
    content = read_private(path)
    if content is None:
        return None
    try:
        return CachedCatalog.model_validate_json(content)
    except ValidationError:
        return None


def write_catalog(path: Path, catalog: Catalog, *, now: datetime) -> None:
    """Keep *catalog* in *path*. Raises NotOurs, OSError.

    Of a provider that could not be listed now, the models that were known before stay.
    """
    before = read_catalog(path) or CachedCatalog(written_at=now)
    missing = {entry.provider for entry in catalog.unavailable}
    models = (*catalog.models, *_kept(before.models, catalog.models, missing))
    # Where models are told only to who has a key, none being there means that no key was.
    keyless = {m.provider for m in before.by_name} - {m.provider for m in catalog.by_name}
    by_name = (*catalog.by_name, *_kept(before.by_name, catalog.by_name, missing | keyless))
    # The messages of other programs stay out: nobody knows what they quote.
    unavailable = tuple(entry.model_copy(update={"message": None}) for entry in catalog.unavailable)
    cached = CachedCatalog(written_at=now, models=models, unavailable=unavailable, by_name=by_name)
    private_directory(path.parent)
    write_private(path, cached.model_dump_json(exclude_none=True).encode())


def _kept(
    old: tuple[ModelDescriptor, ...], new: tuple[ModelDescriptor, ...], away: set[str]
) -> Iterator[ModelDescriptor]:
    """Yield the *old* models of providers that are *away*, less those that *new* tells of."""
    told = {model.ref for model in new}
    return (model for model in old if model.provider in away and model.ref not in told)
