"""Durable memory. Domain words only: no query language passes this door."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from smista.core.records import (
    AuthToken,
    MemoryRecord,
    MemoryScope,
    Session,
    SessionState,
    TraceEvent,
    TurnRecord,
    User,
)
from smista.core.retention import Bounds, Share
from smista.core.session_copy import SessionCopy
from smista.core.usage import UsageQuery


class Journal(Protocol):
    """Remembers users, tokens and sessions.

    A write returns once it is durable. Raises StorageError (StorageUnavailable if trying again
    may help) and nothing else of its own. A cancelled caller leaves a begun write to its end.
    Reads of sessions are scoped to their owner: another user's session reads as None.
    """

    @property
    def shared(self) -> bool:
        """Whether other routers may use the store: a run is then served under a lease only."""
        ...

    async def add_user(self, user: User) -> None: ...

    async def user(self, user_id: str) -> User | None: ...

    async def add_token(self, token: AuthToken) -> None: ...

    async def token(self, token_id: str) -> AuthToken | None: ...

    async def revoke_token(self, token_id: str, *, at: datetime) -> None: ...

    async def create_session(self, session: Session) -> None: ...

    async def session(self, user_id: str, session_id: str) -> Session | None:
        """Return the session, archived or not, or None."""
        ...

    async def sessions(
        self, user_id: str, *, scope: str | None = None, title: str | None = None
    ) -> tuple[Session, ...]:
        """Return the user's sessions, most recently updated first.

        *scope* matches exactly, *title* as a case-insensitive part.
        """
        ...

    async def update_session(self, session: Session) -> None:
        """Write title, archived_at and updated_at of an existing session."""
        ...

    async def delete_session(self, session_id: str) -> None:
        """Delete the session and every row that belongs to it."""
        ...

    async def load(
        self, session: Session, *, messages: int | None = 400, at: datetime | None = None
    ) -> SessionState:
        """Return what a session actor needs: run, input and the newest *messages* (None: all).

        Cut at a whole exchange: the first message is never a tool's. Answered messages are those
        of the 24 hours before *at* (None: before the session's last turn); older ones are deleted.
        """
        ...

    async def read_out(self, session: Session) -> SessionCopy:
        """Return all of *session* but what belongs to a live run alone."""
        ...

    async def take_in(self, copy: SessionCopy) -> bool:
        """Make the session that *copy* holds, whole or not at all; False: its id is taken."""
        ...

    async def record_turn(self, record: TurnRecord) -> None:
        """Write all of *record* or nothing. Sending the same record again changes nothing.

        Raises LeaseLost if the session has had a lease after the record's own.
        """
        ...

    async def facts(self, scope: MemoryScope, owner_id: str) -> tuple[MemoryRecord, ...]:
        """Return what is remembered for a user, or for a session alone; newest first."""
        ...

    async def forget_fact(self, scope: MemoryScope, owner_id: str, fact_id: str) -> bool:
        """Delete a fact and its text; False: its owner has no such fact."""
        ...

    async def take_lease(self, session: Session, *, router: str, seconds: float) -> int | None:
        """Take the lease of the session's run for *router*; return its number.

        The number is one more than the run's `lease` was. So a state that was loaded while nobody
        held the lease is still the present one if the number follows on its own. None: another
        router holds a lease that has not expired, or the session is gone.
        """
        ...

    async def renew_lease(self, session_id: str, number: int, *, seconds: float) -> bool:
        """Let lease *number* last *seconds* from now, unless it was released.

        False: there has been another one since, or the session is gone.
        """
        ...

    async def release_lease(self, session_id: str, number: int) -> bool:
        """Give lease *number* back and raise the run's `lease` by one.

        For who wrote nothing: a turn under that lease cannot be written any more. False: it was
        given back before, or is not the session's last; then nothing was changed.
        """
        ...

    async def trace(
        self, session_id: str, *, offset: int = 0, limit: int = 50
    ) -> tuple[TraceEvent, ...]:
        """Return events *offset* to *offset + limit* of those that are kept, oldest first."""
        ...

    async def usage(self, session_id: str) -> tuple["CostSum", ...]:
        """Return the session's cost events summed by provider, model and task type."""
        ...

    async def spending(self, user_id: str, query: UsageQuery) -> tuple["UsageSum", ...]:
        """Return the cost events of the user's sessions, archived ones too, summed by group."""
        ...

    async def due_sessions(self, bounds: Bounds) -> tuple[Share, tuple[Session, ...]]:
        """Return how many of all users' sessions are over age, and which."""
        ...

    async def due_events(self, before: datetime) -> Share:
        """Return how much of all traces is of *before* or earlier, in whatever units it is kept."""
        ...

    async def drop_events(self, before: datetime) -> None:
        """Delete what `due_events` counts; a trace begins then with what is left of it."""
        ...

    async def unlock(self, *, router: str = "") -> int:
        """Clear every lock that no living router can hold; return how many there were.

        In a shared store those are the leases of *router*, which is just starting, and the expired;
        the run's `lease` is raised then as by release_lease().
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSum:
    """Tokens and USD (text of a decimal) of *requests* model calls; None: never reported."""

    provider: str
    model: str
    task_type: str
    requests: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """As CostSum, for one *group*: (provider, model), (task type,), (day,) or (scope or None,)."""

    group: tuple[str | None, ...]
    requests: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: str | None = None
