"""What a person agreed to is what is written, whatever happens between the answer and the write."""

import os
import stat

import pytest

from cli.approvals import Answer
from cli.files import Differs, Unusable, replace_file, see
from cli.host import TerminalHost
from smista.core.policy import ToolsConfig
from tests.cli.ground import call, surroundings

NEW = "agreed\n"


class Quick:
    """Says yes, and does something to the project before the answer is heard; then says *later*."""

    def __init__(self, *acts, later=()):
        self.acts, self.later = list(acts), list(later)
        self.asked = []

    async def answer(self, question, *, always=False):
        self.asked.append(question)
        if self.acts:
            self.acts.pop(0)()
            return Answer(approved=True)
        return Answer(approved=self.later.pop(0) if self.later else False)


@pytest.fixture
def here(tmp_path):
    here = surroundings(tmp_path)
    (here.root / "in").mkdir()
    (here.root / "in" / "a").write_text("shown\n")
    (tmp_path / "victim").write_text("shown\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_text("shown\n")
    return here


def linked(here):
    (here.root / "in" / "a").unlink()
    (here.root / "in" / "a").symlink_to(here.root.parent / "victim")


def rewritten(here):
    (here.root / "in" / "a").write_text("else\n")


def same_bytes_in_another_file(here):
    (here.root / "in" / "b").write_text("shown\n")
    (here.root / "in" / "b").replace(here.root / "in" / "a")


def hard_linked(here):
    (here.root / "in" / "a").unlink()
    os.link(here.root.parent / "victim", here.root / "in" / "a")


def folder_linked(here):
    (here.root / "in").rename(here.root / "was")
    (here.root / "in").symlink_to(here.root.parent / "elsewhere")


def folder_exchanged(here):
    (here.root / "in").rename(here.root / "was")
    (here.root.parent / "elsewhere").rename(here.root / "in")


def removed(here):
    (here.root / "in" / "a").unlink()


def a_folder_now(here):
    (here.root / "in" / "a").unlink()
    (here.root / "in" / "a").mkdir()


SWAPS = [
    linked,
    rewritten,
    same_bytes_in_another_file,
    hard_linked,
    folder_linked,
    folder_exchanged,
    removed,
    a_folder_now,
]


def everything(here):
    top = here.root.parent
    return {str(p): p.read_text() for p in sorted(top.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("swap", SWAPS)
async def test_a_swap_after_the_answer_writes_nothing_and_asks_anew(here, swap):
    after = {}

    def act():
        swap(here)
        after.update(everything(here))

    person = Quick(act)
    host = TerminalHost(here, ToolsConfig(), terminal=person)
    (result,) = await host.run_tools((call("write_file", path="in/a", content=NEW),))
    assert result.is_error
    assert everything(here) == after
    asked_anew = len(person.asked) == 2
    # What has become of it may not be a file inside the project at all.
    assert asked_anew or swap in (folder_linked, linked, a_folder_now)


async def test_the_second_question_shows_the_change_as_it_is_now(here, capsys):
    person = Quick(lambda: rewritten(here), later=[True])
    host = TerminalHost(here, ToolsConfig(), terminal=person)
    (result,) = await host.run_tools((call("write_file", path="in/a", content=NEW),))
    assert (result.is_error, result.decision) == (False, "approved")
    assert "changed meanwhile" in person.asked[1]
    assert "-else" in capsys.readouterr().err
    assert (here.root / "in" / "a").read_text() == NEW


async def test_a_new_file_takes_nobodys_place(here):
    def planted():
        (here.root / "new").symlink_to(here.root.parent / "victim")

    person = Quick(planted)
    host = TerminalHost(here, ToolsConfig(), terminal=person)
    (result,) = await host.run_tools((call("write_file", path="new", content=NEW),))
    assert result.is_error
    assert (here.root.parent / "victim").read_text() == "shown\n"


async def test_what_was_approved_in_advance_is_not_written_over_a_change(here, monkeypatch):
    def seen_before(real):
        seen = see(real)
        rewritten(here)
        return seen

    monkeypatch.setattr("cli.tools.writing.see", seen_before)
    host = TerminalHost(here, ToolsConfig(), terminal=None, yes=True)
    (result,) = await host.run_tools((call("write_file", path="in/a", content=NEW),))
    assert result.decision == "rejected"
    assert (here.root / "in" / "a").read_text() == "else\n"


def test_mode_and_owner_are_kept(here):
    file = here.root / "in" / "a"
    if os.geteuid() == 0:
        os.chown(file, 12, 34)
    file.chmod(0o4754)
    replace_file(see(file), b"new", 0o022)
    status = file.stat()
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(status.st_mode) == 0o754
    if os.geteuid() == 0:
        assert (status.st_uid, status.st_gid) == (12, 34)


def test_folders_are_made_only_where_there_were_none(here):
    seen = see(here.root / "x" / "y" / "new")
    (here.root / "x").symlink_to(here.root.parent / "elsewhere")
    with pytest.raises(Differs):
        replace_file(seen, b"new", 0o022)
    assert sorted(path.name for path in (here.root.parent / "elsewhere").iterdir()) == ["a"]


def test_a_failed_write_leaves_the_file_and_no_litter(here, monkeypatch):
    def full(handle, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cli.files.write_all", full)
    with pytest.raises(Unusable, match="No space left"):
        replace_file(see(here.root / "in" / "a"), b"new", 0o022)
    assert [path.name for path in (here.root / "in").iterdir()] == ["a"]
    assert (here.root / "in" / "a").read_text() == "shown\n"


def test_no_descriptor_stays_open(here):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for at in range(20):
        replace_file(see(here.root / "in" / "a"), b"%d" % at, 0o022)
        see(here.root / "no" / "such" / "file")
        with pytest.raises(Unusable):
            see(here.root / "in")
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before
