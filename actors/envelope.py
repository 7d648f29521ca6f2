"""A message on its way into a session: what was said, its answer, and where its turn speaks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import trio
from pydantic import SecretStr

from actors.turn_stream import Reader, TurnStream
from smista.core.errors import SmistaError
from smista.core.identity import Identity
from smista.core.lifecycle import Told
from smista.core.messages import Execute, Message
from smista.core.records import AnsweredRecord, Session, SessionState


@dataclass(eq=False, slots=True, kw_only=True)
class Envelope:
    """A client's message. Each is answered exactly once: taken, or refused with an error.

    *stream* is where the turn it starts will speak, *reader* what its client listens to: that
    stream, or the one of the turn that the same message started before.
    """

    message: Message
    stream: TurnStream
    reader: Reader
    credentials: Mapping[str, SecretStr] = field(default_factory=dict[str, SecretStr], repr=False)
    identity: Identity | None = None
    _answered: trio.Event = field(default_factory=trio.Event)
    _refusal: SmistaError | None = None

    @property
    def told(self) -> Told:
        return Told.EXECUTE if isinstance(self.message, Execute) else Told(self.message.type)

    def take(self) -> None:
        self._answered.set()

    def refuse(self, error: SmistaError) -> None:
        self._refusal = error
        self._answered.set()

    @property
    def answered(self) -> bool:
        return self._answered.is_set()

    async def verdict(self) -> None:
        """Return when the message was taken; raise the refusal otherwise."""
        await self._answered.wait()
        if self._refusal is not None:
            raise self._refusal


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """Turn *serial* has settled. *state* is what storage now holds, None if that is not known."""

    serial: int
    state: SessionState | None
    answered: tuple[AnsweredRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ReaderLeft:
    """The reader of *stream* is gone."""

    stream: TurnStream


@dataclass(frozen=True, slots=True)
class Abandon:
    """Interrupt turn *serial* at its checkpoint; None: whichever is served."""

    serial: int | None = None


@dataclass(eq=False, slots=True)
class Leave:
    """Break the run, then write *update* (an archived session), or delete the session if None.

    Going through the actor is what keeps a turn from writing beside the deletion. The actor ends
    with it.
    """

    update: Session | None = None
    _done: trio.Event = field(default_factory=trio.Event)
    _error: SmistaError | None = None

    def finish(self, error: SmistaError | None = None) -> None:
        self._error = error
        self._done.set()

    async def wait(self) -> None:
        """Return when it is durable; raise the error that prevented it."""
        await self._done.wait()
        if self._error is not None:
            raise self._error


@dataclass(eq=False, slots=True)
class Forget:
    """The user deletes a fact of the session: neither the actor nor its turn shall know it.

    Once it is *done*, nothing that still holds the fact can be on its way into the store but what
    is there before the deletion.
    """

    fact_id: str
    done: trio.Event = field(default_factory=trio.Event)


House = TurnEnded | ReaderLeft | Abandon | Leave | Forget
