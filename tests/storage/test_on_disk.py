"""A store in a directory: who may open it, what is left of a crash, and of a full disk.

Few tests open one: each open leaves threads of the engine behind.
"""

import os
import resource
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from smista.core.errors import StorageError, StorageUnavailable
from smista.core.ids import new_uuid7
from smista.core.intents import TaskIntent
from smista.core.phase import AwaitingTool
from smista.core.records import (
    ContextReference,
    EventType,
    RunInput,
    RunState,
    Session,
    StoredMessage,
    TraceEvent,
    TurnRecord,
)
from smista.core.secret import Plain
from smista.ports.journal import Journal
from smista.storage import paths
from smista.storage.surreal import open_surreal
from tests.contract.builders import request_of

AT = datetime(2026, 11, 30, tzinfo=UTC)
SESSION = Session(
    id=new_uuid7(1, 1), user_id=new_uuid7(1, 2), title="t", created_at=AT, updated_at=AT
)
FIVE = tuple(ContextReference(kind="file", included=True, reason=str(n)) for n in range(5))


def turn(n: int, size: int = 10) -> TurnRecord:
    """Return turn *n*: one message, five references, five events."""
    message = StoredMessage(
        uuid=new_uuid7(2, n),
        n=n,
        role="user",
        run_id="r",
        format="text",
        content=Plain("x" * size),
        created_at=AT,
    )
    event = TraceEvent(
        event_type=EventType.MESSAGE,
        task_type=TaskIntent.CHAT,
        provider="ollama",
        model="m",
        created_at=AT,
        payload={"turn": n},
    )
    counts = {"messages": n + 1, "events": 5 * n + 5, "references": 5 * n + 5}
    return TurnRecord(
        session_id=SESSION.id,
        user_id=SESSION.user_id,
        at=AT,
        run=RunState(run_id="r", turn=n, updated_at=AT, **counts),
        messages=(message,),
        references=FIVE,
        first_reference=5 * n,
        references_id=new_uuid7(3, n),
        events=(event,) * 5,
        first_event=5 * n,
        events_id=new_uuid7(4, n),
    )


async def whole_turns(journal: Journal) -> int:
    """Return how many turns there are, having checked that each is there in full."""
    state = await journal.load(SESSION)
    turns = state.run.messages
    assert len(state.messages) == turns
    assert len(state.references) == 5 * turns
    events = await journal.trace(SESSION.id, limit=1000)
    assert [event.payload["turn"] for event in events] == [n for n in range(turns) for _ in FIVE]
    return turns


def modes(directory: Path) -> dict[str, int]:
    found = (directory, *directory.rglob("*"))
    return {str(path): stat.S_IMODE(path.stat().st_mode) for path in found}


@pytest.fixture
def open_umask() -> Iterator[None]:
    old = os.umask(0)
    yield
    os.umask(old)


@pytest.mark.usefixtures("open_umask")
async def test_a_store_lasts_and_is_closed_to_others(tmp_path: Path) -> None:
    place = tmp_path / "a b" / "store"
    async with open_surreal(str(place)) as journal:
        await journal.create_session(SESSION)
        await journal.record_turn(turn(0))
        opened = modes(place)
    (place / "data").chmod(0o755)
    (place / "lock").chmod(0o666)
    async with open_surreal(str(place)) as journal:
        assert await whole_turns(journal) == 1
        found = await journal.session(SESSION.user_id, SESSION.id)
        assert found == replace(SESSION, updated_at=AT)
        reopened = modes(place)
    assert (place / "clean").exists()
    for seen in (opened, reopened, modes(place)):
        assert [name for name, mode in seen.items() if mode & 0o077] == []


def test_the_second_process_is_told_who_holds_the_store(tmp_path: Path) -> None:
    paths.prepare(tmp_path)
    second = "import sys, pathlib; from smista.storage import paths\n"
    second += "with paths.held(pathlib.Path(sys.argv[1])): print('held')"
    command = [sys.executable, "-c", second, str(tmp_path)]

    with paths.held(tmp_path):
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"in use by process {os.getpid()}" in refused.stderr
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "held\n"


async def test_a_held_store_is_unavailable_and_left_alone(tmp_path: Path) -> None:
    paths.prepare(tmp_path)
    with paths.held(tmp_path), pytest.raises(StorageUnavailable, match="in use"):
        async with open_surreal(str(tmp_path)):
            raise AssertionError("opened a store that is held")
    assert os.listdir(tmp_path) == ["lock"]


async def test_a_link_in_the_stores_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="neither"):
        async with open_surreal(str(tmp_path / "store")):
            raise AssertionError("followed the link")

    (tmp_path / "elsewhere" / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(StorageError):
        async with open_surreal(str(tmp_path / "elsewhere")):
            raise AssertionError("followed the link")
    assert not (tmp_path / "victim").exists()


def test_what_belongs_to_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(StorageError, match=f"belongs to user {owner}"):
        paths.prepare(tmp_path)


async def test_a_stop_after_an_error_is_clean_and_an_unreadable_store_is_kept(
    tmp_path: Path,
) -> None:
    with pytest.RaisesGroup(KeyError):
        async with open_surreal(str(tmp_path)):
            raise KeyError
    assert (tmp_path / "clean").exists()

    (log,) = (tmp_path / "data").rglob("*.manifest")
    log.write_bytes(b"no manifest")
    with pytest.raises(StorageUnavailable, match="opened"):
        async with open_surreal(str(tmp_path)):
            raise AssertionError("opened garbage")
    assert log.read_bytes() == b"no manifest"
    assert not (tmp_path / "clean").exists()


async def test_a_torn_log_shows_whole_turns_only(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    sizes: list[int] = []
    async with open_surreal(str(kept)) as journal:
        await journal.create_session(SESSION)
        for n in range(3):
            await journal.record_turn(turn(n))
            (log,) = (kept / "data").rglob("*.clog")
            sizes.append(log.stat().st_size)
    assert (kept / "clean").exists()

    # Cuts through the third turn: near its start, its middle and its end; and one that is whole.
    third = sizes[2] - sizes[1]
    cuts = {third - 200: 2, third // 2: 2, 100: 2, 1: 2, 0: 3}
    for cut, turns in cuts.items():
        torn = tmp_path / f"torn{cut}"
        shutil.copytree(kept, torn)
        (torn / "clean").unlink()
        os.truncate(torn / log.relative_to(kept), sizes[2] - cut)
        async with open_surreal(str(torn)) as journal:
            assert await whole_turns(journal) == turns
            assert await journal.sessions(SESSION.user_id) != ()
            await journal.record_turn(turn(2))
            assert await whole_turns(journal) == 3


async def test_a_torn_end_of_a_run_leaves_the_run_and_its_input_or_neither(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    given = RunInput(run_id="r", request=request_of("x" * 2000), created_at=AT)
    paused = replace(turn(0), input=given)
    paused = replace(paused, run=replace(paused.run, phase=AwaitingTool(())))
    async with open_surreal(str(kept)) as journal:
        await journal.create_session(SESSION)
        await journal.record_turn(paused)
        (log,) = (kept / "data").rglob("*.clog")
        size = log.stat().st_size
        await journal.record_turn(replace(turn(1), drop_input=True))
        whole = log.stat().st_size

    seen: set[bool] = set()
    for cut in range(0, 400, 40):
        torn = tmp_path / f"torn{cut}"
        shutil.copytree(kept, torn)
        (torn / "clean").unlink()
        os.truncate(torn / log.relative_to(kept), whole - cut)
        async with open_surreal(str(torn)) as journal:
            state = await journal.load(SESSION)
            over = state.run.turn == 1
            assert state.input == (None if over else given)
            seen.add(over)
    assert whole - 400 > size
    assert seen == {True, False}


async def test_a_full_disk_is_told_and_gets_over(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with open_surreal(str(tmp_path / "store")) as journal:
        await journal.create_session(SESSION)
        await journal.record_turn(turn(0))
        (log,) = (tmp_path / "store" / "data").rglob("*.clog")
        # Our writes fail as on a full disk, in the middle of the record.
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 5000, limits[1]))
        try:
            with pytest.raises(StorageUnavailable):
                await journal.record_turn(turn(1, size=20_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        # The repair begins at once, before the next write is taken.
        await journal.record_turn(turn(1, size=20_000))
        assert await whole_turns(journal) == 2
