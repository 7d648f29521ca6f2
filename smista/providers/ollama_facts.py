"""What Ollama tells of its models → facts. Pure."""

import re
from dataclasses import dataclass
from typing import Any, Final

from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.providers.json_values import count, is_object, items, member, text

Think = bool | str
"""A value of `think`: on, off, or one of the levels a model names."""

ON_OR_OFF: Final[tuple[Think, ...]] = (False, True)
_LEVELS: Final[tuple[Think, ...]] = ("low", "medium", "high")
_LEVELLED: Final = "gptoss"  # takes levels, and ignores on and off
_NUM_CTX: Final = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
# The server's own default for a model that tells nothing.
_UNTOLD_WINDOW: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """One line of the list of models. *digest* changes whenever the model behind a name does."""

    name: str
    digest: str
    remote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaModel:
    """A model and what only Ollama's dialect asks about."""

    descriptor: ModelDescriptor
    thinking: tuple[Think, ...]


def read_tags(value: Any) -> list[Tag]:
    """Return the models of `/api/tags`, each name once."""
    found: dict[str, Tag] = {}
    for entry in items(member(value, "models")):
        name = text(member(entry, "model")) or text(member(entry, "name"))
        if name:
            remote = is_remote(name, entry)
            found[name] = Tag(name=name, digest=text(member(entry, "digest")), remote=remote)
    return list(found.values())


def is_remote(name: str, facts: Any) -> bool:
    """Tell if a model that a server lists is in truth served elsewhere."""
    if member(facts, "remote_host") or member(facts, "remote_model"):
        return True
    tag = name.lower().rpartition(":")[2]
    return tag == "cloud" or name.lower().endswith("-cloud")


def read_model(name: str, shown: Any, *, local: bool, auth: str) -> OllamaModel | None:
    """Return the facts that `/api/show` tells of *name*; None if it is no model for talking."""
    abilities = frozenset(map(text, items(member(shown, "capabilities"))))
    if abilities and "completion" not in abilities:
        return None
    remote = is_remote(name, shown)
    descriptor = ModelDescriptor(
        provider="ollama",
        model=name,
        local=local and not remote,
        auth=auth,
        capabilities=_capabilities(abilities),
        max_context_tokens=_window(shown),
    )
    return OllamaModel(descriptor=descriptor, thinking=_thinking(shown))


def _capabilities(abilities: frozenset[str]) -> Capabilities:
    return Capabilities(
        streaming=True,
        tools="tools" in abilities,
        json_output=True,
        system_prompt=True,
        images="vision" in abilities,
        reasoning="thinking" in abilities,
        memory="tools" in abilities,
    )


def _window(shown: Any) -> int:
    """Return the window the model was made with, or else the one it was trained with."""
    made = _NUM_CTX.search(text(member(shown, "parameters")))
    if made is not None and int(made[1]) > 0:
        return int(made[1])
    info = member(shown, "model_info")
    architecture = text(member(info, "general.architecture"))
    trained = count(member(info, f"{architecture}.context_length"))
    if trained is None and is_object(info):
        named = (count(info[key]) for key in sorted(info) if key.endswith(".context_length"))
        trained = next((length for length in named if length), None)
    return trained or _UNTOLD_WINDOW


def _thinking(shown: Any) -> tuple[Think, ...]:
    values = items(member(member(shown, "thinking"), "values"))
    told = tuple(value for value in values if isinstance(value, bool | str))
    family = text(member(member(shown, "details"), "family"))
    return told or (_LEVELS if family == _LEVELLED else ON_OR_OFF)
