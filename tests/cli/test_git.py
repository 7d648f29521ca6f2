"""Branch and diff, without running what the folder brought along."""

import subprocess

import pytest

from cli.git import read_branch, read_diff, risky_keys


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
    ],
)
def test_risky_keys_are_seen_in_any_spelling(text):
    assert list(risky_keys(text))


def test_harmless_keys_are_not_risky():
    text = '[core]\n\tbare = false\n[remote "origin"]\n\turl = x\n[branch "main"]\n\tmerge = y\n'
    assert list(risky_keys(text)) == []
