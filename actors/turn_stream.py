"""From a turn to its one reader, bounded.

The turn puts events and waits when the reader is slow; it never waits for a reader that is gone.
What was said is kept (up to a limit), so that a returning reader hears it in one piece per kind.
Exactly one TurnEnd is put, last. Everything runs in one Trio loop; nothing here has a lock.
"""

from collections import deque
from collections.abc import Callable

import trio

from smista.core.events import Event, ReasoningDeltaEvent, TextDeltaEvent, TurnEnd


class TurnStream:
    """Owns the events between a turn and its reader."""

    def __init__(self, *, limit: int, said_bytes: int) -> None:
        self._limit = limit
        self._said_bytes = said_bytes
        self._waiting: deque[Event] = deque()
        self._said: list[Event] = []
        self._said_size = 0
        self._bell = trio.lowlevel.ParkingLot()
        self._room = trio.lowlevel.ParkingLot()
        self._opened = False
        self._ended = False
        self._taken = False
        self.attached = True

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def spoke(self) -> bool:
        """Whether a client may have seen anything of this turn."""
        return bool(self._said)

    def open(self) -> None:
        """Say that the outcome belongs into a stream from now on."""
        if not self._opened:
            self._opened = True
            self._bell.unpark_all()

    def put(self, event: Event) -> None:
        """Hand *event* to the reader; after this, wait in `room` if `full`."""
        self._opened = True
        self._ended = isinstance(event, TurnEnd)
        if self._said_size <= self._said_bytes:
            self._said.append(event)
            if isinstance(event, TextDeltaEvent | ReasoningDeltaEvent):
                self._said_size += len(event.delta)
        if self.attached:
            self._waiting.append(event)
            self._bell.unpark_all()

    @property
    def full(self) -> bool:
        return self.attached and len(self._waiting) >= self._limit

    async def room(self, *, patience: float) -> bool:
        """Wait until the reader has taken something; False if it did not within *patience* s."""
        with trio.move_on_after(patience):
            while self.full:
                await self._room.park()
        return not self.full

    def detach(self) -> None:
        """Forget the reader; the turn goes on without one."""
        self.attached = False
        self._waiting.clear()
        self._room.unpark_all()
        self._bell.unpark_all()

    def attach(self) -> bool:
        """Take a new reader on: it hears all that was said, joined. False if too much was said."""
        if self._said_size > self._said_bytes:
            return False
        self._waiting = deque(_joined(self._said))
        self.attached = True
        self._bell.unpark_all()
        return True

    async def wait_opened(self) -> None:
        while not self._opened:
            await self._bell.park()

    def take(self) -> list[Event]:
        """Take all that waits, without waiting."""
        taken = list(self._waiting)
        self._waiting.clear()
        if taken:
            self._taken = isinstance(taken[-1], TurnEnd)
            self._room.unpark_all()
        return taken

    async def wait_events(self) -> list[Event]:
        """Wait for events and take them; [] once the end was taken or the reader was dropped."""
        while not self._waiting and not self._taken and self.attached:
            await self._bell.park()
        return self.take()


class Reader:
    """The front's end of a stream; *leave* tells the session that its reader is gone."""

    def __init__(self, stream: TurnStream, leave: Callable[[], None]) -> None:
        self._stream = stream
        self._leave = leave

    async def wait_opened(self) -> None:
        await self._stream.wait_opened()

    def ready(self) -> list[Event]:
        return self._stream.take()

    async def wait_events(self) -> list[Event]:
        return await self._stream.wait_events()

    def close(self) -> None:
        """Leave. Before the turn's end this starts the turn's grace period."""
        if self._stream.attached and not self._stream.ended:
            self._stream.detach()
            self._leave()


def _joined(events: list[Event]) -> list[Event]:
    """Join the deltas of each kind into one event, where the first of its kind stood."""
    text = "".join(e.delta for e in events if isinstance(e, TextDeltaEvent))
    reasoning = "".join(e.delta for e in events if isinstance(e, ReasoningDeltaEvent))
    joined: list[Event] = []
    if reasoning:
        joined.append(ReasoningDeltaEvent(reasoning))
    if text:
        joined.append(TextDeltaEvent(text))
    joined += [e for e in events if not isinstance(e, TextDeltaEvent | ReasoningDeltaEvent)]
    return joined
