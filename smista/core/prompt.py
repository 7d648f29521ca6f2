"""What a model is sent, in no provider's words. One prompt belongs to one model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smista.core.history import Message
from smista.core.intents import Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool on offer: its JSON Schema and the permission key that governs it.

    *strict*: a provider that can should hold the model to the schema; an optional member is then
    one that may be null.
    """

    name: str
    description: str
    permission: str
    parameters: Mapping[str, Any]
    writes: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """*data* is base64."""

    media_type: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """*system* is the preamble; *messages* end with the user's text or this run's tool results.

    *images* belong to the newest user message. *effort* None: the model has no such control.
    *local*: the model was chosen as a local one, so nothing of this may leave for another host.
    """

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    images: tuple[Image, ...] = ()
    effort: Effort | None = None
    max_output_tokens: int | None = None
    local: bool = False
