"""The writer alone, before a scripted engine."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from smista.core.errors import StorageError, StorageUnavailable
from smista.storage.bridge import LogFailed, RowExists
from smista.storage.rows import Unit
from smista.storage.values import Ref
from smista.storage.writer import MOST_UNITS, MOST_WAITING, Statements, Writer


class ScriptedEngine:
    """Takes transactions; *faults* are raised for those whose values hold the named key."""

    def __init__(self, **faults: StorageError) -> None:
        self.faults = faults
        self.taken: list[tuple[str, set[str]]] = []
        self.gate = trio.Event()
        self.gate.set()

    async def query(self, text: str, values: Mapping[str, Any]) -> list[Any]:
        await self.gate.wait()
        keys = _keys(list(values.values()))
        for name, error in self.faults.items():
            if name in keys and (not isinstance(error, RowExists) or "INSERT" in text):
                raise error
        self.taken.append((text, keys))
        return []


def _keys(value: Any) -> set[str]:
    if isinstance(value, Ref):
        return {str(value.key)}
    if isinstance(value, dict):
        return _keys(list(value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()


class Mending:
    """Mends at the *nth* try; each try is seen."""

    def __init__(self, engine: ScriptedEngine, at: int = 1) -> None:
        self.engine, self.at, self.tries = engine, at, 0
        self.mended = trio.Event()

    async def __call__(self) -> None:
        await trio.lowlevel.checkpoint()
        self.tries += 1
        if self.tries < self.at:
            raise StorageUnavailable("still full")
        self.engine.faults = {}
        self.mended.set()


def unit(name: str) -> Unit:
    return Unit(inserts={"t": [{"id": Ref("t", name)}]}, puts=({"id": Ref("run", name)},))


def start(nursery: trio.Nursery, engine: ScriptedEngine) -> Writer:
    writer = Writer(engine, Mending(engine))
    nursery.start_soon(writer.serve)
    return writer


async def outcomes(writer: Writer, *names: str) -> dict[str, str]:
    """Write the named units at once and return what became of each."""
    found: dict[str, str] = {}

    async def one(name: str) -> None:
        try:
            await writer.write(unit(name))
            found[name] = "written"
        except StorageError as error:
            found[name] = type(error).__name__

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(one, name)
    return found


async def test_units_that_wait_together_commit_together(nursery: trio.Nursery) -> None:
    engine = ScriptedEngine()
    engine.gate = trio.Event()
    writer = start(nursery, engine)
    nursery.start_soon(writer.write, unit("first"))
    await wait_all_tasks_blocked()
    names = [f"u{n}" for n in range(MOST_UNITS + 10)]
    for name in names:
        nursery.start_soon(writer.write, unit(name))
    await wait_all_tasks_blocked()
    engine.gate.set()
    await wait_all_tasks_blocked()
    writer.close()

    assert [len(keys) for _, keys in engine.taken] == [1, MOST_UNITS, 10]
    assert set().union(*(keys for _, keys in engine.taken)) == {"first", *names}


async def test_the_row_that_makes_a_unit_exist_is_written_last(nursery: trio.Nursery) -> None:
    engine = ScriptedEngine()
    writer = start(nursery, engine)
    await writer.write(unit("a"))
    writer.close()
    ((text, _),) = engine.taken
    assert text.index("BEGIN") < text.index("INSERT") < text.index("UPSERT") < text.index("COMMIT")


async def test_a_bad_unit_fails_alone(nursery: trio.Nursery) -> None:
    writer = start(nursery, ScriptedEngine(bad=StorageError("no")))
    found = await outcomes(writer, "a", "b", "bad", "c")
    writer.close()
    assert found == {"a": "written", "b": "written", "bad": "StorageError", "c": "written"}


async def test_rows_that_exist_are_written_over(nursery: trio.Nursery) -> None:
    engine = ScriptedEngine(again=RowExists("there"))
    writer = start(nursery, engine)
    found = await outcomes(writer, "a", "again")
    writer.close()
    assert set(found.values()) == {"written"}
    assert all("INSERT" not in text for text, keys in engine.taken if "again" in keys)


async def test_statements_commit_by_themselves_and_in_their_turn(nursery: trio.Nursery) -> None:
    engine = ScriptedEngine()
    engine.gate = trio.Event()
    writer = start(nursery, engine)
    for work in (unit("a"), unit("b"), Statements(text="X", values={}), unit("c")):
        nursery.start_soon(writer.write, work)
        await wait_all_tasks_blocked()
    engine.gate.set()
    await wait_all_tasks_blocked()
    writer.close()
    assert ["X" in text for text, _ in engine.taken] == [False, False, True, False]


async def test_nobody_waits_for_what_is_offered_and_the_log_tells_of_its_failure(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    engine = ScriptedEngine(bad=StorageError("no such luck"))
    writer = start(nursery, engine)
    for name in ("good", "bad"):
        writer.offer(Statements(text="TIDY", values={name: Ref("t", name)}))
    await writer.write(unit("a"))
    writer.close()
    assert [keys for _, keys in engine.taken] == [{"good"}, {"a"}]
    assert [record.getMessage() for record in caplog.records] == [
        "the store could not be tidied up: no such luck"
    ]
    writer.offer(Statements(text="TIDY", values={}))
    assert len(engine.taken) == 2


async def test_without_room_for_it_what_is_offered_is_left_undone() -> None:
    engine = ScriptedEngine()
    writer = Writer(engine, Mending(engine))
    for _ in range(MOST_WAITING + 5):
        writer.offer(Statements(text="TIDY", values={}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.serve)
        writer.close()
    assert len(engine.taken) == MOST_WAITING


async def test_what_is_dropped_goes_after_the_row_that_makes_a_unit_exist(
    nursery: trio.Nursery,
) -> None:
    engine = ScriptedEngine()
    writer = start(nursery, engine)
    puts = ({"id": Ref("t", "over")}, {"id": Ref("run", "last")})
    await writer.write(Unit(puts=puts, drops=[Ref("t", "old")]))
    writer.close()
    ((text, keys),) = engine.taken
    assert text.rindex("UPSERT") < text.index("DELETE") < text.index("COMMIT")
    assert keys == {"over", "old", "last"}


async def test_after_a_log_fault_the_store_is_mended_and_goes_on(nursery: trio.Nursery) -> None:
    engine = ScriptedEngine(full=LogFailed("full"))
    writer = start(nursery, engine)
    found = await outcomes(writer, "a", "full")
    await wait_all_tasks_blocked()
    assert found == {"a": "LogFailed", "full": "LogFailed"}
    assert not writer.broken
    assert await outcomes(writer, "full", "a") == {"full": "written", "a": "written"}
    writer.close()


async def test_until_it_is_mended_writes_are_refused_at_once(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    engine = ScriptedEngine(full=LogFailed("full"))
    mending = Mending(engine, at=4)
    writer = Writer(engine, mending)
    nursery.start_soon(writer.serve)
    assert await outcomes(writer, "full") == {"full": "LogFailed"}
    began = trio.current_time()
    assert await outcomes(writer, "a", "b") == dict.fromkeys("ab", "StorageUnavailable")
    assert trio.current_time() == began

    await mending.mended.wait()
    assert 30 < trio.current_time() - began < 40
    assert await outcomes(writer, "a") == {"a": "written"}
    writer.close()


async def test_a_cancelled_caller_does_not_take_a_begun_write_back(nursery: trio.Nursery) -> None:
    engine = ScriptedEngine()
    engine.gate = trio.Event()
    writer = start(nursery, engine)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            inner.start_soon(writer.write, unit("a"))
            await wait_all_tasks_blocked()
            scope.cancel()
    engine.gate.set()
    await writer.write(unit("b"))
    writer.close()
    assert [keys for _, keys in engine.taken] == [{"a"}, {"b"}]


async def test_a_closed_writer_writes_what_waits_and_refuses_the_rest() -> None:
    engine = ScriptedEngine()
    engine.gate = trio.Event()
    writer = Writer(engine, Mending(engine))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.serve)
        for name in "abc":
            nursery.start_soon(writer.write, unit(name))
        await wait_all_tasks_blocked()
        writer.close()
        engine.gate.set()
    assert set().union(*(keys for _, keys in engine.taken)) == set("abc")
    with pytest.raises(StorageUnavailable):
        await writer.write(unit("late"))


async def test_nobody_waits_for_ever_on_a_writer_that_is_cancelled() -> None:
    engine = ScriptedEngine()
    engine.gate = trio.Event()
    writer = Writer(engine, Mending(engine))
    found: dict[str, str] = {}

    async def write_all() -> None:
        found.update(await outcomes(writer, *(f"u{n}" for n in range(MOST_UNITS + 5))))

    async with trio.open_nursery() as outer:
        outer.start_soon(write_all)
        async with trio.open_nursery() as inner:
            inner.start_soon(writer.serve)
            await wait_all_tasks_blocked()
            inner.cancel_scope.cancel()
            engine.gate.set()
    assert set(found.values()) == {"written", "StorageUnavailable"}
