"""From a turn to its readers, bounded.

The turn puts events and waits when a reader is slow; it never waits for one that is gone. What
was said is kept (up to a limit), so that a returning client hears it in one piece per kind.
Exactly one TurnEnd is put, last. All of it runs in one Trio loop, so nothing here is locked.
"""

from collections import deque
from collections.abc import Callable

import trio

from smista.core.events import Event, ReasoningDeltaEvent, TextDeltaEvent, TurnEnd

WAITING_BYTES = 262_144  # characters that may wait for one reader


class TurnStream:
    """Owns the events of one turn. *leave* is told when the last reader left before the end."""

    def __init__(
        self,
        *,
        limit: int,
        said_bytes: int,
        leave: Callable[["TurnStream"], None],
        waiting_bytes: int = WAITING_BYTES,
    ) -> None:
        self._limit = limit
        self._waiting_bytes = waiting_bytes
        self._said_bytes = said_bytes
        self._leave = leave
        self._readers: list[Reader] = []
        self._said: list[Event] = []
        self._said_size = 0
        self._room = trio.lowlevel.ParkingLot()
        self.opened = False
        self.ended = False

    @property
    def attached(self) -> bool:
        return bool(self._readers)

    def open(self) -> None:
        """Say that the outcome belongs into a stream from now on."""
        self.opened = True
        for reader in self._readers:
            reader.wake()

    def put(self, event: Event) -> None:
        """Hand *event* to every reader; after this, wait in `room` if `full`."""
        self.opened = True
        self.ended = isinstance(event, TurnEnd)
        if self.tellable:
            self._said.append(event)
            self._said_size += _size(event)
            if not self.tellable:
                self._said.clear()  # too much to tell again, so it need not be kept either
        for reader in self._readers:
            reader.push(event)

    @property
    def full(self) -> bool:
        return any(self._is_full(reader) for reader in self._readers)

    def _is_full(self, reader: "Reader") -> bool:
        return reader.waiting >= self._limit or reader.waiting_size >= self._waiting_bytes

    async def room(self, *, patience: float) -> None:
        """Wait for the readers; one that took nothing for *patience* seconds counts as gone."""
        while self.full:
            with trio.move_on_after(patience) as patient:
                await self._room.park()
            if patient.cancelled_caught:
                for reader in [r for r in self._readers if self._is_full(r)]:
                    reader.close()

    @property
    def tellable(self) -> bool:
        """Whether a new reader can still be told all that was said."""
        return self._said_size <= self._said_bytes

    def attach(self) -> "Reader":
        """Take a reader on: it hears all that was said, joined."""
        reader = Reader(self, _joined(self._said))
        self._readers.append(reader)
        return reader

    def drop(self, reader: "Reader") -> None:
        """Forget *reader*; the turn goes on, for its grace time if that was the last one."""
        if reader in self._readers:
            self._readers.remove(reader)
            self._room.unpark_all()
            if not self._readers and not self.ended:
                self._leave(self)

    def took(self) -> None:
        """Say that a reader has taken what waited."""
        self._room.unpark_all()


class Reader:
    """One reader of a turn (`ports.sessions.TurnReader`)."""

    def __init__(self, stream: TurnStream, said: list[Event]) -> None:
        self._stream = stream
        self._waiting: deque[Event] = deque(said)
        self.waiting_size = sum(map(_size, said))
        self._bell = trio.lowlevel.ParkingLot()
        self._over = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def push(self, event: Event) -> None:
        self._waiting.append(event)
        self.waiting_size += _size(event)
        self._bell.unpark_all()

    def wake(self) -> None:
        self._bell.unpark_all()

    async def wait_opened(self) -> None:
        while not (self._stream.opened or self._waiting or self._over):
            await self._bell.park()

    def ready(self) -> list[Event]:
        """Take all that waits, without waiting."""
        taken = list(self._waiting)
        if taken:
            self._waiting.clear()
            self.waiting_size = 0
            self._over = self._over or isinstance(taken[-1], TurnEnd)
            self._stream.took()
        return taken

    async def wait_events(self) -> list[Event]:
        """Wait for events and take them; [] once the end was taken or the reader was dropped."""
        while not self._waiting and not self._over:
            await self._bell.park()
        return self.ready()

    def close(self) -> None:
        """Leave. Before the turn's end this may start the turn's grace period."""
        self._over = True
        self._waiting.clear()
        self._bell.unpark_all()
        self._stream.drop(self)


def _size(event: Event) -> int:
    """Return about how many bytes *event* holds; all but the deltas are small or come once."""
    return len(event.delta) if isinstance(event, TextDeltaEvent | ReasoningDeltaEvent) else 0


def _joined(events: list[Event]) -> list[Event]:
    """Join the deltas of each kind into one event, reasoning first; all else follows as it was."""
    text = "".join(e.delta for e in events if isinstance(e, TextDeltaEvent))
    reasoning = "".join(e.delta for e in events if isinstance(e, ReasoningDeltaEvent))
    joined: list[Event] = []
    if reasoning:
        joined.append(ReasoningDeltaEvent(reasoning))
    if text:
        joined.append(TextDeltaEvent(text))
    joined += [e for e in events if not isinstance(e, TextDeltaEvent | ReasoningDeltaEvent)]
    return joined
