"""The one canonical form of a conversation; every dialect re-expresses it for its provider."""

from dataclasses import dataclass
from enum import StrEnum

from smista.core.secret import Envelope


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call the model made. *call_id* is ours (a UUID), *provider_call_id* the provider's.

    *arguments* is a JSON object as text, or what the model wrote instead of one.
    """

    call_id: str
    provider_call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a session's history, oldest first.

    A TOOL message answers *call_id* and names the *paths* its content came from. *run_id* tells
    the current run's exchanges from older ones. *restricted*: written while restricted content
    was in view, so it may not reach a remote model. *note*: a USER message that the router
    wrote. *sealed* is what storage holds of it in an encrypted session; until its client has
    *opened* it, the text and what a call asked for are empty.
    """

    uuid: str
    role: Role
    text: str
    run_id: str
    calls: tuple[Call, ...] = ()
    call_id: str | None = None
    is_error: bool = False
    paths: tuple[str, ...] | None = None
    provider: str | None = None
    model: str | None = None
    restricted: bool = False
    interrupted: bool = False
    note: bool = False
    sealed: Envelope | None = None
    opened: bool = True
