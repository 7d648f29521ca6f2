"""A copy of restricted content is known under any name, and so is what was made from it."""

import os
from dataclasses import replace
from uuid import uuid4

import pytest

from cli import copies as copies_module
from cli import restricted_lines
from cli.approvals import Answer
from cli.copies import ALIAS, BEYOND, COPY, DERIVED, Copies
from cli.host import TerminalHost
from cli.workspace import collect
from smista.core.policy import PrivacyPolicy, ToolsConfig
from smista.core.privacy import guard
from smista.core.request import Skill
from smista.local.config_model import ConfigFile
from tests.cli.ground import call, surroundings

SECRET = "DATABASE_URL=postgres://admin:marker@db/prod\n"


@pytest.fixture
def here(tmp_path):
    here = surroundings(tmp_path)
    (here.root / ".env").write_text(f"# settings\n{SECRET}PIN=1\n")
    (here.root / "free.md").write_text("a page about other things\n")
    return here


def lists(here, *patterns):
    privacy = PrivacyPolicy(restricted_paths=(*patterns, ".env", "*.pem"))
    return guard(ConfigFile(privacy=privacy).policy(), str(here.root))


@pytest.fixture
def copies(here):
    return Copies(here, lists(here))


def why(copies, here, name):
    file = here.root / name
    return copies.look([(file.read_text(), (name,))])[0]


def test_what_has_nothing_of_it_is_free(copies, here):
    assert why(copies, here, "free.md") is None


def test_a_copy_a_link_a_renamed_file_and_an_excerpt_are_known(copies, here):
    (here.root / "copy").write_text((here.root / ".env").read_text())
    os.link(here.root / ".env", here.root / "hard")
    (here.root / "excerpt").write_text(f"so it says:\n    {SECRET}\nand more\n")
    assert [why(copies, here, name) is None for name in ("copy", "hard", "excerpt")] == [False] * 3
    (here.root / "x.pem").write_text("-----BEGIN marker-----\n")
    copies.look([("", ())])
    (here.root / "x.pem").rename(here.root / "renamed")
    os.link(here.root / "renamed", here.root / "y.pem")
    assert why(copies, here, "renamed") is not None


@pytest.mark.parametrize(
    "shape",
    [
        "{}",
        "     1\t{}",
        "a.txt:12: {}",
        "+{}",
        "> {}",
        "export {}",
        '  "{}",',
        "^abc123 (somebody 2026-01-01 00:00:00 +0000 1) {}",
        "the file says: {}",
        "{}\r",
    ],
)
def test_a_line_is_known_behind_what_tools_put_before_it(copies, shape):
    assert copies.look([(shape.format(SECRET.strip()), ())]) == [COPY]


def test_a_short_file_is_known_as_a_whole(copies, here):
    (here.root / "pin.pem").write_text("1234\n")
    assert copies.look([("1234", ()), ("12345", ())]) == [COPY, None]


def test_what_changes_is_looked_at_again(copies, here):
    assert copies.look([("a new line of secrets", ())]) == [None]
    (here.root / ".env").write_text("a new line of secrets\n")
    assert copies.look([("a new line of secrets", ()), (SECRET, ())]) == [COPY, None]
    (here.root / "sub").mkdir()
    (here.root / "sub" / "b.pem").write_text("another long secret line\n")
    assert copies.look([("another long secret line", ())]) == [COPY]
    (here.root / "sub" / "b.pem").unlink()
    assert copies.look([("another long secret line", ())]) == [None]


def test_a_file_that_did_not_change_is_not_read_again(copies, monkeypatch):
    copies.look([("", ())])
    monkeypatch.setattr(restricted_lines, "read_file", lambda real: pytest.fail(f"{real} read"))
    assert copies.look([(SECRET, ())]) == [COPY]


@pytest.mark.parametrize("bound", ["MAX_ENTRIES", "MAX_FILES", "MAX_BYTES"])
def test_beyond_its_bounds_everything_counts_as_a_copy(copies, here, monkeypatch, bound):
    monkeypatch.setattr(restricted_lines, bound, 0)
    assert why(copies, here, "free.md") == BEYOND


def test_a_restricted_file_that_is_no_text_hides_nothing_else(copies, here, monkeypatch):
    monkeypatch.setattr(restricted_lines, "MAX_BYTES", 100)
    (here.root / "photo.pem").write_bytes(b"\x89PNG\0" * 1000)
    os.mkfifo(here.root / "fifo.pem")
    (here.root / "gone.pem").symlink_to("nowhere")
    assert why(copies, here, "free.md") is None
    os.link(here.root / "photo.pem", here.root / "photo")
    assert copies.look([("", ("photo",))]) == [ALIAS]


async def test_attachments_diff_and_instructions_are_marked_before_they_are_sent(copies, here):
    (here.root / "notes.txt").write_text(SECRET)
    (here.root / "AGENTS.md").write_text(f"use this:\n{SECRET}")
    collected = await collect("look at @notes.txt and @free.md", here)
    diff = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+{SECRET}"
    workspace = collected.workspace.model_copy(update={"git_diff": diff})
    marked = await copies.mark(replace(collected, workspace=workspace))
    assert [file.restricted for file in marked.attachments.files] == [True, None]
    assert marked.workspace.git_diff_restricted
    assert marked.attachments.instructions == ()
    assert "restricted: notes.txt (it holds lines of a restricted file)" in marked.notices
    assert any("AGENTS.md" in notice for notice in marked.notices)


async def test_instructions_and_skills_under_a_restricted_path_are_left_out(here):
    (here.root / "AGENTS.md").write_text("be brief\n")
    copies = Copies(here, lists(here, "AGENTS.md", ".agents/**"))
    collected = await collect("hello", here)
    skills = (
        Skill(name="free", content="# how to\n", path="skills/free/SKILL.md"),
        Skill(name="kept", content="# how to\n", path=".agents/skills/kept/SKILL.md"),
        Skill(name="leaky", content=f"# use\n{SECRET}", path="skills/leaky/SKILL.md"),
    )
    sent = collected.attachments.model_copy(update={"available_skills": skills})
    marked = await copies.mark(replace(collected, attachments=sent))
    assert marked.attachments.instructions == ()
    assert [skill.name for skill in marked.attachments.available_skills] == ["free"]
    said = "\n".join(marked.notices)
    assert all(name in said for name in ("AGENTS.md", "kept/SKILL.md", "leaky/SKILL.md"))


def seeing(name, **arguments):
    """Return a call that a model made with restricted content before it."""
    request = call(name, **arguments)
    return type(request)(str(uuid4()), request.name, request.arguments, "ask", True)


async def host_of(here, copies, person=None):
    host = TerminalHost(
        here, ToolsConfig(), terminal=person, yes=True, guard=lists(here), copies=copies
    )
    await host.begin(str(uuid4()))
    return host


async def test_what_a_model_wrote_with_restricted_content_in_view_is_known(copies, here):
    host = await host_of(here, copies)
    wrote = seeing("write_file", path="notes.md", content="the admin's word is: marker, indeed\n")
    (result,) = await host.run_tools((wrote,))
    assert not result.is_error
    # By its name, by its lines under another name, and by another process.
    assert why(copies, here, "notes.md") == DERIVED
    (here.root / "notes.md").rename(here.root / "renamed.md")
    assert why(copies, here, "renamed.md") == DERIVED
    later = Copies(here, lists(here))
    assert why(later, here, "renamed.md") == DERIVED
    assert why(later, here, "free.md") is None
    # Nobody can read in the register what was written, or where.
    kept = b"".join(p.read_bytes() for p in (here.places.config / "written").iterdir())
    assert b"marker" not in kept
    assert b"notes" not in kept


async def test_lines_that_were_there_before_are_no_news(copies, here):
    host = await host_of(here, copies)
    edit = seeing("edit_file", path="free.md", old="other", new="secret, hidden")
    await host.run_tools((edit,))
    (here.root / "old.md").write_text("a page about other things\n")
    assert why(copies, here, "old.md") is None
    assert why(copies, here, "free.md") == DERIVED


async def test_what_a_command_wrote_then_is_known_too(copies, here):
    class Yes:
        async def answer(self, question, *, always=False):
            return Answer(approved=True)

    host = await host_of(here, copies, Yes())
    line = "mkdir sub && rev .env > sub/backwards && echo done"
    (result,) = await host.run_tools((seeing("shell", command=line),))
    assert result.content.startswith("done")
    assert why(copies, here, "sub/backwards") == DERIVED


def test_what_was_there_before_the_command_is_not_its_work(copies, here):
    since = (here.root / "free.md").stat().st_ctime_ns + 1
    while True:
        (here.root / "new").write_text("made by the command\n")
        if (here.root / "new").stat().st_ctime_ns >= since:
            break
    copies.note_changed(since)
    assert why(copies, here, "new") == DERIVED
    assert why(copies, here, "free.md") is None


def test_a_command_that_writes_more_than_can_be_watched_taints_all(copies, monkeypatch):
    monkeypatch.setattr(copies_module, "MAX_CHANGED", 1)
    copies.note_changed(0)
    assert copies.look([("anything", ())]) == [BEYOND]


@pytest.mark.parametrize("left", ["path 0a1b", "line 30 00", "line x", "\xff"])
def test_a_register_that_was_cut_off_taints_all(copies, here, left):
    copies.note_written(here.root / "a.txt", None, b"what was derived from it\n")
    register = next(
        path for path in (here.places.config / "written").iterdir() if len(path.name) > 9
    )
    with register.open("ab") as file:
        file.write(left.encode("latin-1"))
    for _ in range(2):  # and what is noted behind it
        fresh = Copies(here, None)
        assert fresh.look([("anything", ("b.txt",))]) == [BEYOND]
        fresh.note_written(here.root / "c.txt", None, b"more of what was derived\n")


async def test_a_full_disk_leaves_the_register_as_it_was(copies, here, monkeypatch):
    def half(handle, content):
        os.write(handle, content[:9])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("cli.written.write_all", half)
        full.setattr("smista.local.paths.write_all", half)
        with pytest.raises(OSError, match="No space"):
            copies.note_written(here.root / "b.txt", None, b"more of what was derived\n")
    assert copies.look([("x", ("b.txt",))]) == [None]
    copies.note_written(here.root / "a.txt", None, b"what was derived from it\n")
    assert Copies(here, None).look([("x", ("a.txt",)), ("x", ("b.txt",))]) == [DERIVED, None]


async def test_a_result_that_holds_a_copy_is_marked(copies, here):
    (here.root / "copy").write_text(SECRET)
    host = TerminalHost(
        here,
        ToolsConfig(permissions={"file_read": "allow"}),
        terminal=None,
        guard=lists(here),
        copies=copies,
    )
    marked, free, found = await host.run_tools(
        (
            call("read_file", "allow", path="copy"),
            call("read_file", "allow", path="free.md"),
            call("search_files", "allow", pattern="DATABASE"),
        )
    )
    assert (marked.restricted, free.restricted, found.restricted) == (True, None, True)
