"""The one task that writes. Units that wait together commit together.

Two write transactions that overlap lose updates in this engine, so nothing else may write. Knows
statements, but neither tables nor files.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import trio

from smista.core.errors import LeaseLost, StorageError, StorageUnavailable
from smista.storage.bridge import LEASE_LOST, LogFailed, RowExists
from smista.storage.rows import Row, Unit

_log = logging.getLogger("smista.storage")

MOST_UNITS: Final = 64
MOST_WAITING: Final = 256
_PAUSES: Final = (1.0, 5.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Query text with values to bind, for what rows cannot say; commits as one."""

    text: str
    values: Mapping[str, Any]


class Engine(Protocol):
    """What the writer needs of the bridge."""

    async def query(self, text: str, values: Mapping[str, Any]) -> list[Any]: ...


@dataclass(slots=True)
class _Waiting:
    """Work for the writer, and what it answered; *alone*: nobody waits for its end."""

    work: Unit | Statements
    done: trio.Event = field(default_factory=trio.Event)
    answers: list[Any] = field(default_factory=list[Any])
    error: StorageError | None = None
    alone: bool = False

    def end(self, error: StorageError | None = None) -> None:
        if error is not None and self.alone:
            _log.warning("the store could not be tidied up: %s", error)
        self.error = error
        self.done.set()


class Writer:
    """Owns the order of writes. *broken*: the log failed, and the store is not mended yet.

    *mend* reopens a store whose log failed, repairs it and proves it with a write; it raises
    StorageError while that cannot be done, and until it succeeds every write is refused.
    """

    def __init__(self, engine: Engine, mend: Callable[[], Awaitable[None]]) -> None:
        self._engine = engine
        self._mend = mend
        self._send, self._receive = trio.open_memory_channel[_Waiting](MOST_WAITING)
        self.broken = False
        self._carried: _Waiting | None = None

    async def write(self, work: Unit | Statements) -> list[Any]:
        """Return once *work* is durable, with what statements answered.

        A cancelled caller does not take a begun write back.
        """
        waiting = _Waiting(work)
        try:
            await self._send.send(waiting)
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            raise StorageUnavailable("the store is closed") from None
        await waiting.done.wait()
        if waiting.error is not None:
            # Neighbours share the cause; each caller gets an error of its own to raise.
            raise type(waiting.error)(waiting.error.message) from waiting.error
        return waiting.answers

    def offer(self, work: Statements) -> None:
        """Take *work* that nobody waits for; without room for it, it is left undone."""
        with suppress(trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            self._send.send_nowait(_Waiting(work, alone=True))

    def close(self) -> None:
        """Take no more; serve() returns once what waits is written."""
        self._send.close()

    async def serve(self) -> None:
        """Write until closed."""
        try:
            while batch := await self._next_batch():
                with trio.CancelScope(shield=True):
                    await self._commit(batch)
                if self.broken:
                    await self._recover()
        finally:
            self._refuse_the_rest()

    async def _next_batch(self) -> list[_Waiting]:
        """Return what waits, at most MOST_UNITS; [] once closed. Statements go by themselves."""
        first = await self._first()
        if first is None:
            return []
        batch = [first]
        while isinstance(first.work, Unit) and len(batch) < MOST_UNITS:
            following = self._next_nowait()
            if following is None:
                break
            if not isinstance(following.work, Unit):
                self._carried = following
                break
            batch.append(following)
        return batch

    async def _first(self) -> _Waiting | None:
        carried, self._carried = self._carried, None
        if carried is not None:
            return carried
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            return None

    def _next_nowait(self) -> _Waiting | None:
        try:
            return self._receive.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel):
            return None

    async def _commit(self, batch: Sequence[_Waiting]) -> None:
        error = await self._attempt(batch, anew=False)
        if error is None or len(batch) == 1 or _meets_all(error):
            if isinstance(error, RowExists):
                error = await self._attempt(batch[:1], anew=True)
            for each in batch:
                each.end(error)
            return
        # One bad unit must not fail its neighbours.
        for number, each in enumerate(batch):
            if self.broken:
                _refuse(batch[number:])
                return
            await self._commit([each])

    async def _attempt(self, batch: Sequence[_Waiting], *, anew: bool) -> StorageError | None:
        """Commit *batch* as one; *anew*: rows that are there already are written over."""
        try:
            text, values = _transaction([each.work for each in batch], anew=anew)
            answers = await self._engine.query(text, values)
            if len(batch) == 1:
                batch[0].answers = answers
        except LogFailed as error:
            self.broken = True
            return error
        except StorageError as error:
            return error
        return None

    async def _recover(self) -> None:
        """Mend the store, refusing writes meanwhile; each failed try is followed by a pause."""
        tries = 0
        while self.broken:
            try:
                with trio.CancelScope(shield=True):
                    await self._mend()
                self.broken = False
            except StorageError as error:
                _log.error("the store is still unusable: %s", error)
                pause = _PAUSES[min(tries, len(_PAUSES) - 1)]
                tries += 1
                if not await self._refuse_for(pause):
                    return
        _log.warning("the store was reopened after a failed write")

    async def _refuse_for(self, seconds: float) -> bool:
        """Return False if the writer was closed meanwhile."""
        with trio.move_on_after(seconds):
            while waiting := await self._first():
                _refuse([waiting])
            return False
        return True

    def _refuse_the_rest(self) -> None:
        carried, self._carried = self._carried, None
        _refuse([carried] if carried else [])
        while waiting := self._next_nowait():
            _refuse([waiting])
        self._receive.close()


def _meets_all(error: StorageError) -> bool:
    """Say if *error* is about the store; else it may be one unit's alone."""
    return isinstance(error, StorageUnavailable) and not isinstance(error, LeaseLost)


def _refuse(batch: Sequence[_Waiting]) -> None:
    for each in batch:
        each.end(StorageUnavailable("the store takes no writes now; try again shortly"))


def _transaction(works: Sequence[Unit | Statements], *, anew: bool) -> tuple[str, dict[str, Any]]:
    """Return query text and values: conditions, all inserts, then each unit's rows in order."""
    script = _Script()
    units = [work for work in works if isinstance(work, Unit)]
    for unit in units:
        script.demand_lease(unit)
    if anew:
        for unit in units:
            script.overwrite([row for rows in unit.inserts.values() for row in rows])
    else:
        script.insert(units)
    for work in works:
        match work:
            case Unit():
                script.finish(work)
            case Statements(text=text, values=values):
                script.add(text, values)
    return script.text(), script.values


class _Script:
    """Collects statements; every value is bound, none is spliced into the text."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._lines = ["BEGIN"]

    def text(self) -> str:
        return ";".join((*self._lines, "COMMIT;"))

    def add(self, text: str, values: Mapping[str, Any]) -> None:
        self._lines.append(text)
        self.values.update(values)

    def demand_lease(self, unit: Unit) -> None:
        if unit.lease is not None:
            where, number = self._bind(unit.puts[-1]["id"]), self._bind(unit.lease)
            found = f"SELECT VALUE lease FROM ONLY {where}"
            self._lines.append(f"IF ({found}) != {number} {{ THROW '{LEASE_LOST}' }}")

    def insert(self, units: Sequence[Unit]) -> None:
        tables: dict[str, list[Row]] = {}
        for unit in units:
            for table, rows in unit.inserts.items():
                tables.setdefault(table, []).extend(rows)
        for table, rows in tables.items():
            self._lines.append(f"INSERT INTO {table} {self._bind(rows)} RETURN NONE")

    def overwrite(self, rows: Sequence[Row]) -> None:
        for row in rows:
            content = {name: value for name, value in row.items() if name != "id"}
            where, what = self._bind(row["id"]), self._bind(content)
            self._lines.append(f"UPSERT {where} CONTENT {what} RETURN NONE")

    def finish(self, unit: Unit) -> None:
        self.overwrite(unit.puts[:-1])
        if unit.session is not None:
            where, when = self._bind(unit.session), self._bind(unit.touched)
            touch = f"UPDATE {where} SET updated_at = {when} RETURN VALUE id"
            self._lines.append(f"IF !({touch}) {{ THROW 'the session is gone' }}")
        self.overwrite(unit.puts[-1:])
        if unit.drops:
            self._lines.append(f"DELETE {self._bind(list(unit.drops))} RETURN NONE")

    def _bind(self, value: Any) -> str:
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f"${name}"
