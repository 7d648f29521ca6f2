"""From a model's name to the facts about it."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from smista.core.model_ref import ModelDescriptor, ModelRef

REMOTE_PROVIDERS: Final = frozenset({"anthropic", "gemini", "openai"})
"""Built-in providers that have no local form."""

_FAMILY: Final = re.compile(r"claude-([a-z]+)\Z")
_NUMBER: Final = re.compile(r"\d+")
_DATED: Final = 10_000

Index = Mapping[ModelRef, Sequence[ModelDescriptor]]


def index_models(models: Sequence[ModelDescriptor]) -> Index:
    """Return *models* by name; Ollama may offer one name twice, here and in its cloud."""
    found: dict[ModelRef, list[ModelDescriptor]] = {}
    for model in models:
        found.setdefault(model.ref, []).append(model)
    return found


def resolve(ref: ModelRef, index: Index) -> ModelDescriptor | None:
    """Return the model that *ref* means, None if it is not known.

    Of two with one name the local one is meant. `claude-<family>` means the newest of the family.
    """
    found = list(index.get(ref, ()))
    if not found and ref.provider == "anthropic" and (family := _FAMILY.match(ref.model)):
        found = _newest(family[1], index)
    if not found:
        return None
    return next((model for model in found if model.local), found[0])


def _newest(family: str, index: Index) -> list[ModelDescriptor]:
    members = [
        model
        for ref, models in index.items()
        if ref.provider == "anthropic" and family in ref.model.split("-")
        for model in models
    ]
    return sorted(members, key=lambda model: _version(model.model), reverse=True)


def _version(name: str) -> tuple[list[int], int]:
    """Return the version in *name*, and its date for telling equal versions apart."""
    numbers = [int(number) for number in _NUMBER.findall(name)]
    version = [number for number in numbers if number < _DATED]
    return version, max((number for number in numbers if number >= _DATED), default=0)
