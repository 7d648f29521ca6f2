"""The bodies a router answers with, as frozen types. They tolerate members they do not know."""

from datetime import datetime
from typing import Any

from pydantic import SecretStr

from smista.core.model_ref import ModelDescriptor, ProviderDescriptor, Unavailable
from smista.core.policy import Frozen


class RouterStatus(Frozen):
    """*proof* answers a challenge: see `core.challenge`."""

    status: str
    version: str
    proof: str | None = None


class Identity(Frozen):
    """A fresh user. The key is shown this once."""

    user_id: str
    api_key: SecretStr


class Token(Frozen):
    token: SecretStr
    expires_at: datetime


class SessionSummary(Frozen):
    id: str
    title: str | None = None
    scope: str | None = None
    encrypted: bool = False
    key_id: str | None = None
    created_at: datetime
    updated_at: datetime
    archived: bool = False


class StoredMessage(Frozen):
    """*content* holds `plaintext`, or `encrypted` with an envelope.

    An envelope is bound to the *reference*; *format* says what opens: the text (`text`), or JSON
    that holds it (`calls`, `entry`).
    """

    role: str
    content: dict[str, Any]
    provider: str | None = None
    model: str | None = None
    reference: str | None = None
    format: str | None = None


class SessionDetail(Frozen):
    id: str
    title: str | None = None
    scope: str | None = None
    key_id: str | None = None
    created_at: datetime
    updated_at: datetime
    messages: tuple[StoredMessage, ...] = ()
    metadata: dict[str, Any] = {}


class TraceEntry(Frozen):
    """*payload* holds `plaintext`, or `encrypted` with an envelope, which is bound to the *id*."""

    event_type: str
    task_type: str
    provider: str
    model: str
    created_at: datetime
    payload: dict[str, Any]
    matched_rule: str | None = None
    id: str | None = None


class RememberedFact(Frozen):
    """*content* holds `plaintext`, or `encrypted` with an envelope."""

    id: str
    scope: str
    content: dict[str, Any]
    restricted: bool = False
    created_at: datetime
    updated_at: datetime
    key: str | None = None


class Models(Frozen):
    models: tuple[ModelDescriptor, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()


class Providers(Frozen):
    providers: tuple[ProviderDescriptor, ...] = ()
