"""How a front reaches running sessions. A front parses, tells and relays; it decides nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import SecretStr

from smista.core.decision import Decision
from smista.core.events import Event
from smista.core.messages import Message
from smista.core.model_ref import Catalog, ProviderDescriptor
from smista.core.records import MemoryRecord, Session, TraceEvent
from smista.core.request import ExecuteRequest
from smista.core.session_copy import SessionCopy
from smista.core.usage import UsageQuery
from smista.ports.journal import CostSum, UsageSum
from smista.ports.provider import Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One message to one session, with what came in the headers of its request."""

    user_id: str
    session_id: str
    message: Message
    credentials: Mapping[str, SecretStr] = field(default_factory=dict[str, SecretStr], repr=False)
    idempotency_key: str | None = None


class TurnReader(Protocol):
    """The one reader of a turn. Leaving early (`close`) leaves the turn to its grace period."""

    async def wait_opened(self) -> None:
        """Return once the outcome belongs into a stream: something was said, or it is over."""
        ...

    def ready(self) -> list[Event]:
        """Take what is there now, without waiting; [] if nothing is."""
        ...

    async def wait_events(self) -> list[Event]:
        """Wait for events and take them; [] once the turn end was taken."""
        ...

    def close(self) -> None: ...


class Sessions(Protocol):
    """All that can be done with sessions. Every method raises SmistaError only.

    A session that is unknown, archived (but for update and delete) or another user's raises
    SessionNotFound.
    """

    async def create(
        self, user_id: str, *, title: str, scope: str | None, key_id: str | None
    ) -> Session: ...

    async def list(
        self, user_id: str, *, scope: str | None, title: str | None
    ) -> tuple[Session, ...]: ...

    async def fetch(self, user_id: str, session_id: str) -> dict[str, Any]:
        """Return the members of the API's session detail, `metadata.run` included."""
        ...

    async def update(
        self, user_id: str, session_id: str, *, title: str | None, archived: bool | None
    ) -> Session: ...

    async def delete(self, user_id: str, session_id: str) -> None: ...

    async def tell(self, call: Call) -> TurnReader:
        """Hand *call* to its session; raises if it is refused (RunInFlight, InvalidRequest)."""
        ...

    async def preview(
        self, user_id: str, session_id: str, request: ExecuteRequest, credentials: Credentials
    ) -> Decision: ...

    async def trace(
        self, user_id: str, session_id: str, *, offset: int, limit: int
    ) -> tuple[TraceEvent, ...]: ...

    async def usage(self, user_id: str, session_id: str) -> tuple[CostSum, ...]: ...

    async def facts(
        self, user_id: str, *, session_id: str | None = None
    ) -> tuple[MemoryRecord, ...]:
        """Return what is remembered for the user, and for that session too; newest first."""
        ...

    async def forget(self, user_id: str, fact_id: str, *, session_id: str | None = None) -> bool:
        """Delete a fact of the user, or of that session; False: there is none with this id."""
        ...

    async def export(self, user_id: str, session_id: str) -> SessionCopy: ...

    async def take_in(self, user_id: str, copy: SessionCopy) -> Session:
        """Make a session of *copy*; an encrypted one keeps its ids. Raises SessionExists."""
        ...

    async def spending(self, user_id: str, query: UsageQuery) -> tuple[UsageSum, ...]: ...

    def providers(self) -> tuple[ProviderDescriptor, ...]: ...

    async def models(self, credentials: Credentials, *, deadline: float) -> Catalog: ...
