"""Taking back: byte for byte, the last change first, never over somebody else's work."""

import os
import shutil
import stat
from uuid import uuid4

import pytest

from cli.change_store import ChangeStore
from cli.files import Differs, see
from cli.host import TerminalHost
from cli.session_folder import KEPT_DAYS, Clear, session_folder, sweep
from cli.undo import ChangedSince, undo_of
from smista.core.policy import ToolsConfig
from smista.core.session_key import SessionKey
from smista.local.session_keys import SessionKeys
from tests.cli.ground import call, surroundings

SESSION = "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
KEY = "sk-" + "abcdefghij0123456789" * 2


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


@pytest.fixture
async def machine(here):
    return await begun(here, SESSION)


async def begun(here, session):
    host = TerminalHost(here, ToolsConfig(), terminal=None, yes=True)
    await host.begin(session)
    return host


async def do(host, name, **arguments):
    (result,) = await host.run_tools((fresh(name, **arguments),))
    assert not result.is_error, result.content


def fresh(name, **arguments):
    request = call(name, **arguments)
    return type(request)(str(uuid4()), request.name, request.arguments, "ask")


def back(here, *, redo=False, force=False):
    """Take one step and return what it returns; what is kept is read anew each time."""
    undo = undo_of(here, SESSION)
    return undo.take(undo.next_step(redo=redo), force=force)


async def test_an_edit_that_held_a_key_is_taken_back_byte_for_byte(here, machine):
    file = here.root / "settings.py"
    before = f'\ufeffTOKEN = "{KEY}"\r\nport = 1\n\x0cend without newline'.encode()
    file.write_bytes(before)
    file.chmod(0o640)
    await do(machine, "edit_file", path="settings.py", old=KEY, new="from the environment")
    assert KEY.encode() not in file.read_bytes()
    back(here)
    assert file.read_bytes() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


async def test_changes_are_taken_back_the_last_one_first(here, machine):
    file = here.root / "a"
    file.write_text("0")
    for number in (1, 2, 3):
        await do(machine, "write_file", path="a", content=str(number))
    for expected in ("2", "1", "0"):
        back(here)
        assert file.read_text() == expected
    assert undo_of(here, SESSION).next_step() is None


async def test_a_created_file_goes_with_the_folders_that_were_made_for_it(here, machine):
    await do(machine, "write_file", path="x/y/new", content="1")
    (here.root / "x" / "mine").write_text("stays")
    back(here)
    assert sorted(path.name for path in here.root.rglob("*")) == ["mine", "x"]


async def test_taking_back_can_be_taken_back(here, machine):
    await do(machine, "write_file", path="x/new", content="one")
    await do(machine, "write_file", path="x/new", content="two")
    back(here)
    back(here)
    assert not (here.root / "x").exists()
    back(here, redo=True)
    assert (here.root / "x" / "new").read_text() == "one"
    back(here, redo=True)
    assert (here.root / "x" / "new").read_text() == "two"
    assert undo_of(here, SESSION).next_step(redo=True) is None
    back(here)
    assert (here.root / "x" / "new").read_text() == "one"


async def test_a_file_that_changed_since_is_left_alone(here, machine):
    file = here.root / "a"
    file.write_text("before")
    await do(machine, "write_file", path="a", content="after")
    file.write_text("somebody else's")
    with pytest.raises(ChangedSince, match="--force"):
        back(here)
    assert file.read_text() == "somebody else's"
    copy = back(here, force=True)
    assert file.read_text() == "before"
    assert copy.read_text() == "somebody else's"


async def test_a_file_that_was_deleted_since_comes_back_when_forced(here, machine):
    file = here.root / "a"
    file.write_text("before")
    file.chmod(0o755)
    await do(machine, "write_file", path="a", content="after")
    file.unlink()
    with pytest.raises(ChangedSince):
        back(here)
    assert back(here, force=True) is None
    assert file.read_text() == "before"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


async def test_what_changes_between_showing_and_taking_back_stops_it(here, machine):
    file = here.root / "a"
    file.write_text("before")
    await do(machine, "write_file", path="a", content="after")
    undo = undo_of(here, SESSION)
    step = undo.next_step()
    file.write_text("quick")
    with pytest.raises(Differs):
        undo.take(step)
    assert file.read_text() == "quick"
    assert [record.kind for record in undo_of(here, SESSION).changes()] == ["change"]


async def test_a_link_in_the_files_place_is_not_followed(here, machine, tmp_path):
    file, victim = here.root / "a", tmp_path / "victim"
    file.write_text("before")
    await do(machine, "write_file", path="a", content="after")
    victim.write_text("after")
    file.unlink()
    file.symlink_to(victim)
    with pytest.raises(Differs):
        back(here)
    assert victim.read_text() == "after"


def test_a_change_that_was_never_made_is_none(here):
    file = here.root / "a"
    file.write_text("before")
    store = ChangeStore(session_folder(here, SESSION, Clear()))
    store.keep(see(file), b"killed before it was written", what="write_file", name="a")
    assert undo_of(here, SESSION).next_step() is None
    assert file.read_text() == "before"


async def test_what_somebody_took_back_by_hand_is_passed_over(here, machine):
    (here.root / "a").write_text("before")
    (here.root / "b").write_text("before")
    await do(machine, "write_file", path="a", content="after")
    await do(machine, "write_file", path="b", content="after")
    (here.root / "b").write_text("before")
    back(here)
    assert (here.root / "a").read_text() == "before"
    assert undo_of(here, SESSION).next_step() is None
    (here.root / "b").write_text("after")
    back(here)
    assert (here.root / "b").read_text() == "before"


async def test_the_diff_tells_what_all_changes_come_to(here, machine):
    (here.root / "a").write_text("one\ntwo\n")
    await do(machine, "edit_file", path="a", old="one", new="1")
    await do(machine, "edit_file", path="a", old="two", new="2")
    await do(machine, "write_file", path="b", content="+++ b/a\n")
    diff = undo_of(here, SESSION).diff()
    assert "-one\n-two\n+1\n+2\n" in diff
    assert "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n++++ b/a\n" in diff
    step = undo_of(here, SESSION).next_step()
    assert step.shown == "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-+++ b/a\n"


async def test_nothing_of_an_encrypted_session_is_kept_in_clear(here, machine):
    key = SessionKey(b"k" * 32)
    session = str(uuid4())
    keys = SessionKeys(here.places)
    keys.store(key)
    keys.record(session, key.key_id)
    (here.root / "marker-name").write_text("marker-before")
    host = await begun(here, session)
    await do(host, "write_file", path="marker-name", content="marker-after")
    kept = [path.read_bytes() for path in here.places.config.rglob("*") if path.is_file()]
    assert not any(b"marker" in each or b"bWFya2Vy" in each for each in kept)
    undo = undo_of(here, session)
    undo.take(undo.next_step())
    assert (here.root / "marker-name").read_text() == "marker-before"
    keys.remove(key.key_id)
    assert undo_of(here, session) is None


async def test_all_that_is_kept_is_private(here, machine):
    old = os.umask(0)
    try:
        await do(machine, "write_file", path="a", content="1")
    finally:
        os.umask(old)
    kept = list((here.places.config / "sessions").rglob("*"))
    assert len(kept) > 3
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in kept} == {0}


async def test_the_newest_session_of_this_project_is_meant(here, machine, tmp_path):
    await do(machine, "write_file", path="a", content="1")
    other = surroundings(tmp_path, root=tmp_path / "other")
    (tmp_path / "other").mkdir()
    elsewhere = await begun(other, str(uuid4()))
    await do(elsewhere, "write_file", path="b", content="2")
    (here.places.config / "sessions" / "not one of ours").mkdir()
    undo = undo_of(here, None)
    undo.take(undo.next_step())
    assert not (here.root / "a").exists()
    assert (tmp_path / "other" / "b").exists()
    assert undo_of(here, str(uuid4())) is None


async def test_without_room_for_the_before_image_nothing_is_written(here, machine, monkeypatch):
    (here.root / "a").write_text("before")

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cli.change_store.create_private", full)
    (result,) = await machine.run_tools((fresh("write_file", path="a", content="after"),))
    assert result.is_error
    assert "No space left" in result.content
    assert (here.root / "a").read_text() == "before"


async def test_a_write_that_failed_is_no_change_and_leaves_no_folder(here, machine, monkeypatch):
    (here.root / "a.txt").write_text("one")

    def full(handle, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("cli.files.write_all", full)
        for path in ("a.txt", "new/folder/b.txt"):
            request = fresh("write_file", path=path, content="two")
            (result,) = await machine.run_tools((request,))
            assert "No space left" in result.content
    assert os.listdir(here.root) == ["a.txt"]
    assert undo_of(here, SESSION) is None


async def test_what_was_written_before_it_failed_can_be_taken_back(here, machine, monkeypatch):
    (here.root / "a.txt").write_text("one")

    def broken(folder):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr("cli.files._sync", broken)
        (result,) = await machine.run_tools((fresh("write_file", path="a.txt", content="two"),))
    assert result.is_error
    back(here)
    assert (here.root / "a.txt").read_text() == "one"


@pytest.mark.parametrize("left", [b"", b"{", b"\xff", b"[]", b"{}"])
async def test_a_damaged_record_costs_that_change_alone(here, machine, left):
    for text in ("one", "two"):
        await do(machine, "write_file", path=f"{text}.txt", content=text)
    store = ChangeStore(session_folder(here, SESSION, Clear()))
    changes = here.places.config / "sessions" / SESSION / "changes"
    max(changes.iterdir()).write_bytes(left)
    assert [record.name for record in store.records()] == ["one.txt"]
    back(here)
    assert os.listdir(here.root) == ["two.txt"]


async def test_what_another_process_removes_meanwhile_stops_no_sweep(here, monkeypatch):
    for session in (SESSION, SESSION[:-1] + "0"):
        await do(await begun(here, session), "write_file", path="a.txt", content=session)
    top = here.places.config / "sessions"
    monkeypatch.setattr("shutil.rmtree", lambda *_, rmtree=shutil.rmtree, **__: rmtree(top))
    sweep(here.places, 1e12)
    assert not top.exists()


def test_two_processes_keep_changes_of_one_session_beside_each_other(here, monkeypatch):
    folder = session_folder(here, SESSION, Clear())
    seen = see(here.root / "a.txt")
    one, other = ChangeStore(folder), ChangeStore(folder)
    monkeypatch.setattr(other, "_next", iter([1, 2]).__next__)  # it looked before one was kept
    one.keep(seen, b"1", what="write_file", name="a.txt")
    other.keep(seen, b"2", what="write_file", name="a.txt")
    assert [record.number for record in one.records()] == [1, 2]


async def test_old_changes_make_room_for_new_ones(here, machine, monkeypatch):
    monkeypatch.setattr("cli.change_store.MAX_CHANGES", 3)
    for number in range(6):
        await do(machine, "write_file", path="a", content=str(number))
    assert len(undo_of(here, SESSION).changes()) == 3


async def test_what_is_old_is_swept_and_nothing_else(here, machine):
    await do(machine, "write_file", path="a", content="1")
    (folder,) = (here.places.config / "sessions").iterdir()
    written = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    sweep(here.places, written + (KEPT_DAYS - 1) * 86_400)
    assert folder.exists()
    sweep(here.places, written + (KEPT_DAYS + 1) * 86_400)
    assert not folder.exists()
