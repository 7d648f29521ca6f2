"""The change a file tool proposes: a diff that applies, made in linear time."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smista.core.proposals import proposed_change, unified

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d\r\n"]), max_size=30).map("".join)
TEXTS = st.tuples(LINES, st.sampled_from(["", "no end", "x"])).map("".join)
GIT = shutil.which("git")


def applied(folder: Path, before: str | None, diff: str) -> str:
    """What git makes of *before* with *diff*."""
    file = folder / "f.txt"
    if before is not None:
        file.write_bytes(before.encode())
    elif file.exists():
        file.unlink()
    command = [str(GIT), "apply", "--unidiff-zero", "--whitespace=nowarn", "-"]
    subprocess.run(command, input=diff.encode(), cwd=folder, check=True, capture_output=True)
    return file.read_bytes().decode()


@settings(deadline=None)
@given(before=TEXTS, after=TEXTS)
@example(before="", after="x")
@example(before="x", after="")
def test_git_applies_what_is_proposed(tmp_path_factory, before, after):
    diff = unified("f.txt", before, after)
    if before == after:
        assert diff == ""
    elif before and after:
        assert applied(tmp_path_factory.mktemp("repo"), before, diff) == after


def test_many_changed_lines_are_one_block_that_git_applies(tmp_path):
    before = "top\n" + "".join(f"old {n % 7}\n" for n in range(3000)) + "end\n"
    after = "top\n" + "".join(f"new {n % 5}\n" for n in range(3000)) + "end\n"
    diff = unified("f.txt", before, after)
    assert diff.count("@@ -") == 1
    assert applied(tmp_path, before, diff) == after


def test_a_huge_change_is_told_without_comparing_every_line_with_every_other():
    before = "".join(f"line {n % 120}\n" for n in range(200_000))
    after = "".join(f"other {n % 120}\n" for n in range(200_000))
    assert len(unified("f.txt", before, after)) > len(before) + len(after)


def test_a_small_change_shows_its_place_with_three_lines_around():
    before = "".join(f"{n}\n" for n in range(1, 101))
    assert unified("a/b.txt", before, before.replace("50\n", "fifty\n")) == (
        "--- a/a/b.txt\n+++ b/a/b.txt\n"
        "@@ -47,7 +47,7 @@\n 47\n 48\n 49\n-50\n+fifty\n 51\n 52\n 53\n"
    )


def test_a_new_file_comes_from_nowhere_and_a_missing_newline_is_said():
    assert unified("n.txt", None, "one") == (
        "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+one\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "known", "shown"),
    [
        ("write_file", {"path": "a", "content": "x\n"}, {}, "+x"),
        ("edit_file", {"path": "a", "old": "x", "new": "y"}, {"a": "1\nx\n"}, " 1\n-x\n+y"),
        ("edit_file", {"path": "a", "old": "x", "new": "y"}, {}, "-x"),
    ],
)
def test_writing_tools_propose_a_change(tool, arguments, known, shown):
    path, diff = proposed_change(tool, arguments, known)
    assert path == "a"
    assert shown in diff


def test_other_tools_and_calls_without_a_path_propose_nothing():
    assert proposed_change("shell", {"command": "ls"}, {}) is None
    assert proposed_change("write_file", {"content": "x"}, {}) is None
