"""A store that is mostly dead, or that something was deleted from, is copied when it is opened."""

import resource
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smista.core.records import AuthToken, Session, User
from smista.core.secret import Plain
from smista.ports.journal import Journal
from smista.storage import paths, vacuum
from smista.storage.bridge import Target
from smista.storage.store import open_directory_store
from smista.storage.surreal import SurrealJournal, open_surreal
from tests.contract.builders import AT, USER, full_turn, id_of, new_session, said, turn

SECRET = "tell nobody"
OWNER = User(id=USER, api_key_hash="h", created_at=AT, updated_at=AT)
TOKEN = AuthToken(id=id_of(3), user_id=USER, token_hash="x", created_at=AT, expires_at=AT)


async def everything(journal: Journal) -> list[Any]:
    """Return all that the journal tells of what the tests wrote."""
    sessions = await journal.sessions(USER)
    return [
        await journal.user(USER),
        await journal.token(TOKEN.id),
        sessions,
        [await journal.load(session, messages=None) for session in sessions],
        [await journal.trace(session.id, limit=1000) for session in sessions],
        [await journal.usage(session.id) for session in sessions],
    ]


async def fill(journal: Journal, sessions: int = 3) -> list[Session]:
    """Write sessions of more rows than are copied at once."""
    await journal.add_user(OWNER)
    await journal.add_token(TOKEN)
    made = [await new_session(journal, 10 + n) for n in range(sessions)]
    for session in made:
        await journal.record_turn(full_turn(session))
        messages = tuple(said(n, "user", f"{n}") for n in range(2, 150))
        await journal.record_turn(turn(session, messages=messages))
    return made


def holds(directory: Path, text: str) -> bool:
    files = (path for path in (directory / "data").rglob("*") if path.is_file())
    return any(text.encode() in path.read_bytes() for path in files)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def open_to_others(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.stat().st_mode & 0o077]


def inode(directory: Path) -> int:
    """Return which file the engine's log is."""
    return next((directory / "data").rglob("*.clog")).stat().st_ino


async def test_what_was_deleted_leaves_the_disk_and_the_rest_stays(tmp_path: Path) -> None:
    async with open_surreal(str(tmp_path)) as journal:
        made = await fill(journal)
        gone = await new_session(journal, 50)
        await journal.record_turn(turn(gone, messages=(said(0, "user", SECRET),)))
        await journal.delete_session(gone.id)
        before = await everything(journal)
    assert holds(tmp_path, SECRET)
    size = paths.size(tmp_path)

    async with open_surreal(str(tmp_path)) as journal:
        assert await everything(journal) == before
        await journal.record_turn(full_turn(made[0]))
    assert not holds(tmp_path, SECRET)
    assert paths.size(tmp_path) < size
    assert names(tmp_path) == ["clean", "data", "lock"]
    assert open_to_others(tmp_path) == []

    log = inode(tmp_path)
    async with open_surreal(str(tmp_path)):
        pass
    assert inode(tmp_path) == log


async def test_a_large_store_is_copied_only_if_it_is_mostly_dead(tmp_path: Path) -> None:
    async with open_surreal(str(tmp_path)) as journal:
        (session,) = await fill(journal, sessions=1)
    alive = paths.size(tmp_path)
    async with open_surreal(str(tmp_path), vacuum_above=alive // 2) as journal:
        assert paths.size(tmp_path) >= alive
        for n in range(120):
            content = Plain(f"{n}" * 2000)
            message = replace(said(0, "user", "x"), content=content)
            await journal.record_turn(turn(session, messages=(message,)))
        before = await everything(journal)
    dead = paths.size(tmp_path)
    assert dead > 3 * alive

    async with open_surreal(str(tmp_path), vacuum_above=dead):
        assert paths.size(tmp_path) >= dead
    async with open_surreal(str(tmp_path), vacuum_above=alive) as journal:
        assert paths.size(tmp_path) < dead / 2
        assert await everything(journal) == before


async def test_a_store_that_is_large_and_mostly_alive_is_not_copied_for_one_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "AT_ONCE", 0)
    async with open_surreal(str(tmp_path)) as journal:
        made = await fill(journal)
        await journal.delete_session((await new_session(journal, 50)).id)
    log = inode(tmp_path)
    async with open_surreal(str(tmp_path)) as journal:
        assert inode(tmp_path) == log
        for session in made:
            await journal.delete_session(session.id)
    async with open_surreal(str(tmp_path)):
        assert inode(tmp_path) != log


def _half_a_copy(store: Path) -> None:
    (store / "new" / "clog").mkdir(parents=True)
    (store / "new" / "clog" / "0.clog").write_bytes(b"half")


def _between_the_renames(store: Path) -> None:
    shutil.copytree(store / "data", store / "new")
    (store / "data").rename(store / "old")


def _before_the_old_is_removed(store: Path) -> None:
    shutil.copytree(store / "data", store / "old")
    next((store / "old").rglob("*.clog")).unlink()


async def test_a_copy_that_takes_too_long_is_given_up_until_more_is_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_surreal(str(tmp_path)) as journal:
        await fill(journal, sessions=1)
        gone = [await new_session(journal, number) for number in (50, 51)]
        await journal.delete_session(gone[0].id)
        before = await everything(journal)
    log, size = inode(tmp_path), paths.size(tmp_path)

    target = Target(url=f"surrealkv://{tmp_path / 'data'}", namespace="smista", database="local")
    for _ in range(2):
        async with open_directory_store(tmp_path, target, durable=True, patience=0.0) as store:
            journal = SurrealJournal(store)
            assert await everything(journal) == before
    assert caplog.text.count("would take more than") == 1
    assert inode(tmp_path) == log
    assert size < paths.size(tmp_path) < 2 * size

    async with open_surreal(str(tmp_path), vacuum_above=size // 4) as journal:
        await journal.delete_session(gone[1].id)
    assert inode(tmp_path) == log
    async with open_surreal(str(tmp_path)) as journal:
        assert len(await journal.sessions(USER)) == 1
    assert inode(tmp_path) != log


CUTS = (_half_a_copy, _between_the_renames, _before_the_old_is_removed)


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.__name__)
def test_a_copy_that_was_cut_short_is_undone_or_completed(
    tmp_path: Path, cut: Callable[[Path], None]
) -> None:
    log = tmp_path / "data" / "clog" / "0.clog"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"all")
    cut(tmp_path)
    for _ in range(2):
        paths.settle(tmp_path)
        assert names(tmp_path) == ["data"]
        assert log.read_bytes() == b"all"


async def test_a_copy_that_fails_leaves_the_store_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_surreal(str(tmp_path)) as journal:
        await fill(journal, sessions=1)
        await journal.delete_session((await new_session(journal, 50)).id)
        before = await everything(journal)
    size = paths.size(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Writing fails as on a full disk, in the middle of the copy.
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 4, limits[1]))
    try:
        async with open_surreal(str(tmp_path)) as journal:
            assert await everything(journal) == before
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "keeps its size" in caplog.text
    assert paths.size(tmp_path) == size
    async with open_surreal(str(tmp_path)) as journal:
        assert await everything(journal) == before
    assert paths.size(tmp_path) < size
