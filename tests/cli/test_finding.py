"""Looking around: bounded, inside, and never at what is restricted or smista's own."""

import os

import pytest
import trio

from cli import finding
from cli.files import Unusable
from cli.host import TerminalHost
from cli.tools import Outside, perform, prepare
from smista.core.policy import (
    ClassificationConfig,
    Policy,
    PrivacyPolicy,
    RoutingPolicy,
    ToolsConfig,
)
from smista.core.privacy import guard
from tests.cli.ground import call, surroundings


@pytest.fixture
def here(tmp_path):
    here = surroundings(tmp_path)
    (here.root / "src" / "deep").mkdir(parents=True)
    (here.root / "a.py").write_text("one\ntwo three\n")
    (here.root / "src" / "b.py").write_text("two\n")
    (here.root / "src" / "deep" / "c.txt").write_text("three\n")
    return here


def guarded(here, *patterns):
    policy = Policy(
        version=1,
        source="merged",
        classification=ClassificationConfig(),
        routing=RoutingPolicy(),
        tools=ToolsConfig(),
        privacy=PrivacyPolicy(restricted_paths=patterns),
    )
    return guard(policy, str(here.root))


async def do(here, name, *restricted, **arguments):
    request = call(name, **arguments)
    return await perform(prepare(request, here, guard=guarded(here, *restricted)), here)


async def test_files_are_listed_in_order(here):
    outcome = await do(here, "list_files")
    assert outcome.content == "a.py\nsrc/b.py\nsrc/deep/c.txt"
    assert outcome.paths == ()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"path": "src"}, ["src/b.py", "src/deep/c.txt"]),
        ({"glob": "*.py"}, ["a.py", "src/b.py"]),
        ({"glob": "src/**"}, ["src/b.py", "src/deep/c.txt"]),
        ({"path": "src", "glob": "deep/*"}, ["src/deep/c.txt"]),
        ({"limit": 1}, ["a.py", "[more than 1; narrow it with `path` or `glob`]"]),
        ({"glob": "*.rs"}, ["[no files]"]),
    ],
)
async def test_a_listing_is_narrowed(here, arguments, names):
    assert (await do(here, "list_files", **arguments)).content.split("\n") == names


async def test_hits_are_told_with_place_and_the_files_they_came_from(here):
    outcome = await do(here, "search_files", pattern="t[wx]o")
    assert outcome.content == "a.py:2: two three\nsrc/b.py:1: two"
    assert outcome.paths == ("a.py", "src/b.py")
    cut = await do(here, "search_files", pattern="t", limit=1)
    assert cut.content == "a.py:2: two three\n[more than 1; narrow it with `path` or `glob`]"
    assert (await do(here, "search_files", pattern="absent")).content == "[no match]"


@pytest.mark.parametrize("name", ["list_files", "search_files"])
async def test_what_is_restricted_or_smistas_own_is_left_out(here, tmp_path, name):
    (here.root / ".env").write_text("canary\n")
    (here.root / "src" / "Key.PEM").write_text("canary\n")
    (here.root / ".smista").mkdir()
    (here.root / ".smista" / "secrets").write_text("canary\n")
    (here.root / ".git").mkdir()
    (here.root / ".git" / "config").write_text("canary\n")
    (tmp_path / "outside").write_text("canary\n")
    (here.root / "link").symlink_to(tmp_path / "outside")
    (here.root / "folder").symlink_to(tmp_path)
    arguments = {"pattern": "canary|.*"} if name == "search_files" else {}
    outcome = await do(here, name, ".env", "*.pem", **arguments)
    for word in ("canary", ".env", "PEM", "secrets", "config", "link", "folder"):
        assert word not in outcome.content
    assert "[restricted files left out: 2]" in outcome.content
    assert "[not looked into: .git]" in outcome.content


async def test_only_text_of_some_size_is_searched(here):
    os.mkfifo(here.root / "fifo")
    (here.root / "binary").write_bytes(b"two\0two")
    (here.root / "latin").write_bytes(b"two \xe9\n")
    (here.root / "huge").write_bytes(b"two\n" * 600_000)
    (here.root / "wide").write_text("two" + "x" * 5000)
    with trio.fail_after(20):
        content = (await do(here, "search_files", pattern="two", path=".")).content
    names = [line.split(":")[0] for line in content.split("\n")]
    assert names == ["a.py", "latin", "wide", "src/b.py"]
    assert len(content) < 600


async def test_a_pattern_that_never_ends_is_killed(here, monkeypatch):
    monkeypatch.setattr(finding, "SECONDS", 0.5)
    (here.root / "a.py").write_text("a" * 60 + "!\n")
    with trio.fail_after(20):
        outcome = await do(here, "search_files", pattern="(a+)+$")
    assert outcome.is_error
    assert "simplify" in outcome.content


async def test_a_large_tree_is_not_walked_to_its_end(here, monkeypatch):
    monkeypatch.setattr(finding, "MAX_SEEN", 3)
    assert "stopped after 3 entries" in (await do(here, "list_files")).content


async def test_a_name_that_is_no_text_is_passed_by(here):
    for name in (b"bad\xff", b"two\nlines", b"esc\x1b"):
        (here.root / os.fsdecode(name)).write_text("two\n")
    assert "esc" not in (await do(here, "list_files")).content
    assert len((await do(here, "search_files", pattern="two")).content.split("\n")) == 2


@pytest.mark.parametrize(
    "request_",
    [
        call("list_files", pattern="x"),
        call("list_files", limit=0),
        call("list_files", glob="[a"),
        call("list_files", path=7),
        call("search_files"),
        call("search_files", pattern="("),
        call("search_files", pattern="x", limit="many"),
        call("list_files", path=".smista/secrets"),
    ],
)
def test_bad_arguments_are_told(here, request_):
    with pytest.raises(Unusable):
        prepare(request_, here)


@pytest.mark.parametrize("path", ["..", "/etc", "src/../..", "way-out"])
@pytest.mark.parametrize("name", ["list_files", "search_files"])
def test_outside_the_project_somebody_has_to_agree(here, tmp_path, name, path):
    (here.root / "way-out").symlink_to(tmp_path)
    arguments = {"pattern": "x"} if name == "search_files" else {}
    with pytest.raises(Outside):
        prepare(call(name, path=path, **arguments), here)


async def test_a_file_is_no_folder(here):
    outcome = await do(here, "list_files", path="a.py")
    assert (outcome.is_error, outcome.paths) == (True, ())


async def test_the_model_hears_which_files_it_saw(here):
    host = TerminalHost(here, ToolsConfig(permissions={"file_read": "allow"}), terminal=None)
    request = call("search_files", "allow", pattern="two")
    fault = call("search_files", "allow", pattern="(")
    result, failed = await host.run_tools((request, fault))
    assert (result.paths, result.is_error) == (("a.py", "src/b.py"), False)
    assert (failed.paths, failed.is_error) == ((), True)
