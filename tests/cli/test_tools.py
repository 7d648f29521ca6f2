"""Tools on real files: bounds, links, line ends, modes, and what is shown is what is done."""

import os
import stat
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.files import MAX_FILE, Differs, Unusable, lines_of
from cli.host import TerminalHost
from cli.tools import MAX_RESULT, Outside, leads_to, perform, prepare, touched
from smista.core.policy import ToolsConfig
from smista.core.proposals import unified
from tests.cli.ground import call, surroundings
from tests.cli.test_host import Person


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


async def do(request, here):
    return await perform(prepare(request, here), here)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_file_is_read_whole_or_in_part(here):
    (here.root / "a.txt").write_text("one\ntwo\nthree\n")
    assert (await do(call("read_file", path="a.txt"), here)).content == "one\ntwo\nthree\n"
    part = call("read_file", path="a.txt", start_line=2, line_count=1)
    assert (await do(part, here)).content == "two\n"
    assert (await do(call("read_file", path="a.txt", start_line=9), here)).content == ""


async def test_a_long_file_is_cut_at_a_line_and_says_where_to_go_on(here):
    lines = [f"{number:07}\n" for number in range(1, 20_001)]
    (here.root / "a.txt").write_text("".join(lines))
    first = (await do(call("read_file", path="a.txt"), here)).content
    assert first == "".join(lines[:8192]) + "[lines 1 to 8192 of 20000; go on with start_line=8193]"
    rest = (await do(call("read_file", path="a.txt", start_line=16_385), here)).content
    assert rest == "".join(lines[16_384:])
    (here.root / "wide").write_text("x" * (MAX_RESULT + 5))
    wide = (await do(call("read_file", path="wide"), here)).content
    assert wide.startswith("x" * MAX_RESULT + "\n[the rest of line 1")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux has such files")
@pytest.mark.parametrize("path", ["/proc/self/mem", "/dev/zero", "/proc/self"])
async def test_a_file_that_fails_or_never_ends_is_an_answer(here, path):
    for name, more in (("read_file", {}), ("edit_file", {"old": "a", "new": "b"})):
        host = TerminalHost(here, ToolsConfig(), terminal=Person("y\n", "y\n"))
        (result,) = await host.run_tools((call(name, path=path, **more),))
        assert result.is_error
        assert "cannot be" in result.content or "regular" in result.content


async def test_a_command_that_cannot_be_started_is_an_answer(here):
    host = TerminalHost(here, ToolsConfig(permissions={"shell": "allow"}), terminal=None)
    (result,) = await host.run_tools((call("shell", "allow", command="x" * 3_000_000),))
    assert result.is_error
    assert "failed" in result.content


async def test_what_cannot_be_read_is_a_polite_error(here):
    (here.root / "b.bin").write_bytes(b"\xff\x00")
    (here.root / "big").write_bytes(b"x" * (MAX_FILE + 1))
    os.mkfifo(here.root / "fifo")
    for name, word in (("gone", "no such"), ("b.bin", "UTF-8"), ("big", "larger"), (".", "open")):
        outcome = await do(call("read_file", path=name), here)
        assert outcome.is_error
        assert word in outcome.content or "regular" in outcome.content
    assert "regular" in (await do(call("read_file", path="fifo"), here)).content


@pytest.mark.parametrize(
    ("path", "confined"),
    [
        ("a.txt", True),
        ("./sub/../a.txt", True),
        ("../outside.txt", False),
        ("sub/../../outside.txt", False),
        ("link-out", False),
        ("folder-out/x", False),
        ("link-in", True),
        ("/etc/hostname", False),
    ],
)
def test_the_place_that_counts_is_where_links_lead(here, tmp_path, path, confined):
    (tmp_path / "outside.txt").write_text("o")
    (tmp_path / "outside").mkdir()
    (here.root / "sub").mkdir()
    (here.root / "a.txt").write_text("a")
    (here.root / "link-out").symlink_to(tmp_path / "outside.txt")
    (here.root / "folder-out").symlink_to(tmp_path / "outside")
    (here.root / "link-in").symlink_to("a.txt")
    for request in (call("read_file", path=path), call("write_file", path=path, content="x")):
        assert prepare(request, here, agreed=leads_to(request, here)).confined is confined


def test_given_and_real_paths_are_reported(here):
    (here.root / "a.txt").write_text("a")
    (here.root / "link").symlink_to("a.txt")
    assert prepare(call("read_file", path="./link"), here).paths == ("link", "a.txt")


@pytest.mark.parametrize("tool", ["read_file", "write_file"])
@pytest.mark.parametrize("path", [".smista/secrets", ".SMISTA/secrets.old", "x/../.smista/secrets"])
def test_smistas_own_files_are_closed_to_every_tool(here, tool, path):
    (here.root / ".smista").mkdir()
    (here.root / ".smista" / "secrets").write_text("canary")
    arguments = {"path": path} | ({"content": "x"} if tool == "write_file" else {})
    with pytest.raises(Unusable, match="smista"):
        prepare(call(tool, **arguments), here)


def test_the_global_directory_is_closed_through_a_link_too(here):
    here.places.config.mkdir()
    (here.root / "way-in").symlink_to(here.places.config)
    request = call("write_file", path="way-in/config.toml", content="x")
    with pytest.raises(Unusable, match="smista"):
        prepare(request, here, agreed=leads_to(request, here))


@pytest.mark.parametrize("path", [".git/config", "sub/.git/hooks/pre-commit", ".GIT/x", "way-in/x"])
def test_nothing_below_git_is_written(here, path):
    (here.root / ".git").mkdir()
    (here.root / "way-in").symlink_to(".git")
    with pytest.raises(Unusable, match=r"\.git"):
        prepare(call("write_file", path=path, content="x"), here)


@pytest.mark.parametrize(
    "path",
    [
        ".smista/config.toml",
        ".agents/x",
        "AGENTS.md",
        ".envrc",
        ".vscode/s",
        ".github/w",
        "a/my-hook.sh",
    ],
)
def test_files_that_steer_other_programs_are_never_confined(here, path):
    assert not prepare(call("write_file", path=path, content="x"), here).confined


async def test_a_new_file_has_the_users_mode_and_so_have_its_folders(here):
    outcome = await do(call("write_file", path="a/b/c.txt", content="hi\n"), here)
    assert not outcome.is_error
    assert (here.root / "a/b/c.txt").read_text() == "hi\n"
    assert mode(here.root / "a/b/c.txt") == 0o644
    assert mode(here.root / "a/b") == 0o755


async def test_an_existing_file_keeps_its_mode_and_its_link(here):
    (here.root / "run.sh").write_text("old\n")
    (here.root / "run.sh").chmod(0o750)
    (here.root / "link").symlink_to("run.sh")
    await do(call("write_file", path="link", content="new\n"), here)
    assert (here.root / "link").is_symlink()
    assert (here.root / "run.sh").read_text() == "new\n"
    assert mode(here.root / "run.sh") == 0o750
    assert sorted(path.name for path in here.root.iterdir()) == ["link", "run.sh"]


async def test_line_ends_are_kept(here):
    file = here.root / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\n")
    await do(call("edit_file", path="a.txt", old="one\ntwo", new="1\n2"), here)
    assert file.read_bytes() == b"1\r\n2\r\n"
    await do(call("write_file", path="a.txt", content="x\ny\n"), here)
    assert file.read_bytes() == b"x\r\ny\r\n"


async def test_a_mixed_file_and_a_byte_order_mark_are_left_as_they_are(here):
    file = here.root / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\x0cthree")
    await do(call("edit_file", path="a.txt", old="two", new="2"), here)
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\n2\n\x0cthree"


@pytest.mark.parametrize(
    ("old", "word"), [("absent", "does not occur"), ("x", "2 times"), ("", "does not occur")]
)
def test_an_edit_needs_exactly_one_place(here, old, word):
    (here.root / "a.txt").write_text("x y x\n")
    with pytest.raises(Unusable, match=word):
        prepare(call("edit_file", path="a.txt", old=old, new="z"), here)


def test_a_refused_edit_says_how_often_and_where(here):
    (here.root / "a.txt").write_text("one\n  two\nx\n\nx x\nthree\n" + "x\n" * 20)
    with pytest.raises(Unusable) as caught:
        prepare(call("edit_file", path="a.txt", old="x", new="z"), here)
    assert "23 times in a.txt, at lines 3, 5, 5, 7, 8, 9, 10, 11, 12, 13, …" in str(caught.value)
    with pytest.raises(Unusable, match="begins at line 1 differs from it in white space only"):
        prepare(call("edit_file", path="a.txt", old="one\n    two", new="z"), here)
    with pytest.raises(Unusable, match="quote it exactly"):
        prepare(call("edit_file", path="a.txt", old="four", new="z"), here)


def test_a_search_for_white_space_takes_no_time(here):
    (here.root / "a.txt").write_text("a\n" * 200_000)
    began = time.process_time()
    for old in ("a \n" * 199 + "b", "a \n" * 100_000):
        with pytest.raises(Unusable):
            prepare(call("edit_file", path="a.txt", old=old, new="z"), here)
    assert time.process_time() - began < 3


def test_nobody_looks_outside_the_root_before_somebody_agreed(here, tmp_path, monkeypatch):
    (tmp_path / "there.txt").write_text("secret secret\n")
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "loop").symlink_to("loop")
    (here.root / "out").symlink_to(tmp_path)
    (here.root / "to-loop").symlink_to(tmp_path / "loop")
    (here.root / "to-there").symlink_to(tmp_path / "there.txt")
    monkeypatch.setattr("cli.tools.writing.see", lambda real: pytest.fail(f"{real} was read"))
    names = ["there.txt", "gone", "binary", "loop", "loop/x", "there.txt/x", ".git/config"]
    paths = [f"{way}/{name}" for way in ("..", "out", str(tmp_path)) for name in names]
    for path in [*paths, "to-loop", "to-there", "/proc/self/environ", "/proc/self/cwd/a", "out/.."]:
        for request in (
            call("read_file", path=path),
            call("write_file", path=path, content="y"),
            call("edit_file", path=path, old="secret", new="y"),
            call("edit_file", path=path, old="guess", new="y"),
        ):
            with pytest.raises(Outside) as caught:
                prepare(request, here)
            assert str(caught.value) == ""


def test_an_agreement_is_to_one_place(here, tmp_path):
    (tmp_path / "shown").write_text("x")
    (tmp_path / "other").write_text("canary")
    (here.root / "link").symlink_to(tmp_path / "shown")
    request = call("read_file", path="link")
    agreed = leads_to(request, here)
    assert agreed == tmp_path / "shown"
    (here.root / "link").unlink()
    (here.root / "link").symlink_to(tmp_path / "other")
    with pytest.raises(Unusable, match="somewhere else"):
        prepare(request, here, agreed=agreed)


@pytest.mark.parametrize("name", ["there.txt", "gone", "binary", "loop"])
def test_whoever_agreed_is_told_what_is_wrong(here, tmp_path, name):
    (tmp_path / "there.txt").write_text("secret\n")
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "loop").symlink_to("loop")
    request = call("edit_file", path=f"../{name}", old="guess", new="y")
    with pytest.raises(Unusable):
        prepare(request, here, agreed=leads_to(request, here))


def test_a_call_that_cannot_be_done_still_says_where_it_leads(here):
    (here.root / ".env").write_text("KEY=1\n")
    (here.root / "link").symlink_to(".env")
    request = call("edit_file", path="link", old="guess", new="x")
    assert touched(request, here) == ("link", ".env")
    assert touched(call("shell", command="ls"), here) is None
    assert touched(call("edit_file", path="/etc/localtime"), here) is None


async def test_all_places_are_edited_when_asked(here):
    (here.root / "a.txt").write_text("x y x\n")
    request = call("edit_file", path="a.txt", old="x", new="z", replace_all=True)
    prepared = prepare(request, here)
    assert prepared.shown == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x y x\n+z y z\n"
    await perform(prepared, here)
    assert (here.root / "a.txt").read_text() == "z y z\n"


def test_an_edit_of_nothing_is_an_error(here):
    with pytest.raises(Unusable, match="does not exist"):
        prepare(call("edit_file", path="gone.txt", old="a", new="b"), here)


def test_a_diff_says_when_the_last_line_has_no_end(here):
    shown = prepare(call("write_file", path="n.txt", content="a"), here).shown
    assert shown == "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"


async def test_what_changed_since_it_was_shown_is_not_written(here, tmp_path):
    file = here.root / "a.txt"
    file.write_text("shown\n")
    prepared = prepare(call("write_file", path="a.txt", content="new\n"), here)
    file.write_text("changed\n")
    with pytest.raises(Differs):
        await perform(prepared, here)
    assert file.read_text() == "changed\n"


async def test_a_link_put_in_the_place_afterwards_is_not_followed(here, tmp_path):
    (tmp_path / "victim").write_text("v")
    prepared = prepare(call("write_file", path="a.txt", content="evil"), here)
    (here.root / "a.txt").symlink_to(tmp_path / "victim")
    with pytest.raises(Differs):
        await perform(prepared, here)
    assert (tmp_path / "victim").read_text() == "v"


@pytest.mark.parametrize(
    "request_",
    [
        call("read_file"),
        call("read_file", path=1),
        call("read_file", path=""),
        call("read_file", path="a\0b"),
        call("read_file", path="a", start_line=0),
        call("read_file", path="a", line_count="3"),
        call("read_file", path="a", start_line=True),
        call("read_file", path="a", surprise=1),
        call("write_file", path="a"),
        call("write_file", path="a", content="\ud800"),
        call("write_file", path="a", content="x" * (MAX_FILE + 1)),
        call("shell", command=""),
        call("shell", command="a\0b"),
        call("shell", command="ls", timeout_ms=-1),
        call("format_disk"),
    ],
)
def test_bad_arguments_are_told_to_the_model(here, request_):
    (here.root / "a").write_text("x")
    with pytest.raises(Unusable):
        prepare(request_, here)


def test_no_file_is_so_long_that_its_diff_holds_anybody_up(here):
    (here.root / "a.txt").write_text("".join(f"{n * 7919 % 120}\n" for n in range(60_000)))
    content = "".join(f"{n * 104_729 % 113}\n" for n in range(60_000))
    began = time.process_time()
    shown = prepare(call("write_file", path="a.txt", content=content), here).shown
    assert time.process_time() - began < 5
    assert shown.count("\n") > 60_000


LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "c\r\n", "d\x0c\n", "e\u2028f\n", "---\n"]), max_size=6
)


@given(before=LINES, after=LINES)
def test_the_diff_shows_every_changed_line(before, after):
    shown = lines_of(unified("f", "".join(before), "".join(after)))[2:]
    minus = Counter(line[1:] for line in shown if line.startswith("-"))
    plus = Counter(line[1:] for line in shown if line.startswith("+"))
    assert (shown == []) == (before == after)
    assert Counter(before) - minus == Counter(after) - plus
    assert minus <= Counter(before)
