"""Branch and diff, without running what the folder brought along."""

import os
import shutil
import subprocess

import pytest

from cli.git import read_branch, read_diff
from cli.repositories import risky_keys


@pytest.fixture
def repo(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q", "-b", "feature/x")
    (root / "a.txt").write_text("one\n")
    git(root, "add", "a.txt")
    git(root, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m")
    (root / "a.txt").write_text("two\n")
    return root


def git(root, *words):
    subprocess.run(["git", *words], cwd=root, check=True)


async def test_branch_and_diff_of_a_plain_repository(repo):
    notices = []
    diff = await read_diff(repo, notices)
    assert read_branch(repo) == "feature/x"
    assert diff.startswith("diff --git a/a.txt b/a.txt\n")
    assert "-one\n+two\n" in diff
    assert notices == []


async def test_committed_keys_are_no_part_of_the_diff(repo):
    for folder in (".smista", "deep/.Smista"):
        (repo / folder).mkdir(parents=True)
        (repo / folder / "secrets").write_text("old-canary\n")
        git(repo, "add", "-f", f"{folder}/secrets")
    git(repo, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "oops")
    (repo / "a.txt").write_text("three\n")
    for folder in (".smista", "deep/.Smista"):
        (repo / folder / "secrets").write_text("new-canary\n")
    diff = await read_diff(repo, [])
    assert "three" in diff
    assert "canary" not in diff


async def test_an_unchanged_repository_has_no_diff(repo):
    (repo / "a.txt").write_text("one\n")
    assert await read_diff(repo, []) is None


async def test_without_git_there_is_neither(tmp_path):
    assert read_branch(tmp_path) is None
    assert await read_diff(tmp_path, []) is None


def test_a_detached_head_has_no_branch(repo):
    git(repo, "checkout", "-q", "--detach")
    assert read_branch(repo) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.fsmonitor", "{trap}"),
        ("core.hooksPath", "hooks"),
        ("filter.x.clean", "{trap}"),
        ("diff.x.command", "{trap}"),
        ("diff.x.textconv", "{trap}"),
        ("diff.external", "{trap}"),
        ("include.path", "other"),
        ("includeIf.gitdir:/.path", "other"),
        ("alias.diff", "!{trap}"),
    ],
)
async def test_a_configuration_that_could_run_something_means_no_diff(repo, key, value):
    trap = repo / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {repo}/sprung\n")
    trap.chmod(0o755)
    (repo / ".gitattributes").write_text("*.txt filter=x diff=x\n")
    git(repo, "config", key, value.format(trap=trap))
    notices = []
    assert await read_diff(repo, notices) is None
    assert key.lower() in notices[0]
    assert not (repo / "sprung").exists()
    assert read_branch(repo) == "feature/x"


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tFSMonitor = x\n",
        "[core] fsmonitor = x\n",
        "[CORE]\nhooksPath=x",
        '[filter "a b"]\nclean = x\n',
        "[filter.old]\nclean = x\n",
        '[includeIf "gitdir:/"]\npath = x\n',
        "[extensions]\nworktreeConfig = true\n",
        # What is no end of a line, no header or no blank to git.
        "[other][core]fsmonitor = x\n",
        "\ufeff[core]\nfsmonitor = x\n",
        "[core]\n\ta = b\\\n[other]\n\tfsmonitor = x\n",
        "[core]\n\ta = b\u2028[other]\n\tfsmonitor = x\n",
        "[core]\n\t# a\r[other]\n\tfsmonitor = x\n",
    ],
)
def test_risky_keys_are_seen_in_any_spelling(tmp_path, text):
    (tmp_path / "config").write_text(text, "utf-8", newline="")
    assert risky_keys(tmp_path / "config", os.environ)


def test_harmless_keys_are_not_risky(tmp_path):
    text = '[core]\n\tbare = false\n[remote "origin"]\n\turl = x\n[branch "main"]\n\tmerge = y\n'
    (tmp_path / "config").write_text(text)
    assert risky_keys(tmp_path / "config", os.environ) == []


def trapped(folder, at):
    """Let the configuration in *folder* make git leave the file `sprung` in *at*."""
    with (folder / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {at}/sprung; false"\n')


async def test_the_configuration_that_counts_is_the_one_git_finds(repo):
    inner = repo / "inner"
    (inner / ".git").mkdir(parents=True)  # no repository, so git looks further up
    trapped(repo / ".git", repo)
    notices = []
    assert await read_diff(inner, notices) is None
    assert "core.fsmonitor" in notices[0]
    assert not (repo / "sprung").exists()


async def test_a_folder_that_shares_anothers_configuration_is_seen_through(repo):
    shutil.copytree(repo / ".git", repo / "other")
    (repo / ".git/commondir").write_text("../other\n")
    trapped(repo / "other", repo)
    notices = []
    assert await read_diff(repo, notices) is None
    assert "core.fsmonitor" in notices[0]
    assert not (repo / "sprung").exists()


async def test_no_repository_inside_of_it_is_asked_for_its_state(repo):
    git(repo, "clone", "-q", ".", "inner")
    git(repo, "add", "inner")
    trapped(repo / "inner/.git", repo)
    assert "inner" in await read_diff(repo, [])
    assert not (repo / "sprung").exists()


def test_a_head_that_is_no_file_holds_nobody(repo):
    (repo / ".git/HEAD").unlink()
    os.mkfifo(repo / ".git/HEAD")
    assert read_branch(repo) is None


async def test_files_that_git_does_not_know_are_in_the_diff_as_new(repo):
    (repo / "new.txt").write_text("first\nlast")
    (repo / "empty").write_text("")
    (repo / 'odd \u00fc"name').write_text("x\n")
    (repo / "binary").write_bytes(b"a\0b")
    (repo / "latin").write_bytes(b"\xe9")
    (repo / ".gitignore").write_text("ignored\n")
    (repo / "ignored").write_text("canary\n")
    (repo / "link").symlink_to("/etc/hostname")
    (repo / "loop").symlink_to("loop")
    (repo / ".smista").mkdir()
    (repo / ".smista/secrets").write_text("canary\n")
    (repo / "inner").mkdir()
    git(repo / "inner", "init", "-q")
    notices = []
    diff = await read_diff(repo, notices)
    assert (
        "diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n"
        "@@ -0,0 +1,2 @@\n+first\n+last\n\\ No newline at end of file\n"
    ) in diff
    assert "diff --git a/empty b/empty\nnew file mode 100644\ndiff --git" in diff
    assert r'+++ "b/odd \303\274\"name"' in diff
    for absent in ("canary", "binary", "latin", "link", "loop", "inner", "secrets"):
        assert absent not in diff.replace("+ignored", "")
    assert notices == []


async def test_new_files_read_like_those_that_git_knows(repo):
    names = ["n", "a b", "\u00fc", 'q"q', "t\tt", "x\\x"]
    for name in names:
        (repo / name).write_text("1\n2\n")
    ours = await read_diff(repo, [])
    git(repo, "add", "-N", ".")
    theirs = await read_diff(repo, [])

    def without_index(diff):
        return sorted(line for line in diff.split("\n") if not line.startswith("index "))

    # git marks the end of a name with a blank in it by a tab; both are understood.
    assert without_index(ours) == [line.rstrip("\t") for line in without_index(theirs)]


async def test_large_and_many_new_files_are_left_out_and_that_is_said(repo):
    (repo / "large").write_text("x" * 100_000)
    for number in range(210):
        (repo / f"n{number:03}").write_text("x\n")
    notices = []
    diff = await read_diff(repo, notices)
    assert "a/large" not in diff
    assert "a/n100" in diff
    assert notices == ["git diff: 12 new files left out, for they are large or many"]


async def test_a_diff_without_measure_is_left_out_whole(repo):
    (repo / "a.txt").write_text("x\n" * 1_000_000)
    notices = []
    assert await read_diff(repo, notices) is None
    assert notices == ["git diff left out: it is larger than 1048576 bytes"]


async def test_of_a_repository_around_the_project_only_the_project_is_told(repo):
    project = repo / "part"
    project.mkdir()
    (project / "mine.txt").write_text("x\n")
    (repo / "other.txt").write_text("y\n")
    diff = await read_diff(project, [])
    assert read_branch(project) == "feature/x"
    assert "+++ b/mine.txt\n" in diff
    assert "other" not in diff
    assert "a.txt" not in diff


async def test_a_second_work_tree_has_a_branch_and_a_diff_of_its_own(repo, tmp_path):
    git(repo, "worktree", "add", "-q", "-b", "second", "../tree")
    tree = tmp_path / "tree"
    (tree / "a.txt").write_text("three\n")
    assert read_branch(tree) == "second"
    assert "-one\n+three\n" in await read_diff(tree, [])
    git(repo, "config", "core.fsmonitor", "x")
    notices = []
    assert await read_diff(tree, notices) is None
    assert "core.fsmonitor" in notices[0]


async def test_what_is_apart_is_not_looked_at(repo):
    (repo / "home").mkdir()
    (repo / "home/key").write_text("canary\n")
    assert "canary" in await read_diff(repo, [])
    assert "canary" not in await read_diff(repo, [], apart=(repo / "home", repo.parent))


async def test_in_a_hook_the_variables_of_git_confuse_nobody(repo, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    for name, value in (("GIT_DIR", ".git"), ("GIT_WORK_TREE", "."), ("GIT_INDEX_FILE", "index")):
        monkeypatch.setenv(name, str(elsewhere / value))
    assert "-one\n+two\n" in await read_diff(repo, [])
    assert read_branch(repo) == "feature/x"
