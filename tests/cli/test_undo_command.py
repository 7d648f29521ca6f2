"""`smista undo` as a process: what it shows, asks, refuses and prints."""

import pytest

from cli.host import TerminalHost
from cli.surroundings import Surroundings
from smista.core.policy import ToolsConfig
from smista.local.paths import find_places
from tests.cli.test_command_line import Home
from tests.cli.test_undo import SESSION, do


@pytest.fixture
async def home(tmp_path):
    """A user in whose project one file was made and one edited, by the tools themselves."""
    home = Home(tmp_path, "http://127.0.0.1:9")
    here = Surroundings(
        start=home.project,
        root=home.project,
        places=find_places(home.environ, home.path),
        umask=0o022,
        environ={},
    )
    host = TerminalHost(here, ToolsConfig(), terminal=None, yes=True)
    await host.begin(SESSION)
    (home.project / "a").write_text("one\n")
    await do(host, "edit_file", path="a", old="one", new="two")
    await do(host, "write_file", path="b", content="new\n")
    return home


async def test_one_call_takes_back_one_change(home):
    first = await home.run("undo", "--yes")
    assert (first.returncode, first.stdout) == (0, b"taken back: b\n")
    assert b"remove b, which did not exist before" in first.stderr
    assert not (home.project / "b").exists()
    assert (await home.run("undo", "--yes")).returncode == 0
    assert (home.project / "a").read_text() == "one\n"
    over = await home.run("undo", "--yes")
    assert (over.returncode, over.stderr) == (1, b"error: all is taken back\n")
    again = await home.run("undo", "--redo", "--yes", SESSION[-6:])
    assert again.stdout == b"made again: a\n"
    assert (home.project / "a").read_text() == "two\n"


async def test_the_list_changes_nothing(home):
    listed = (await home.run("undo", "--list")).stdout.decode().splitlines()
    assert [line.split("  ")[1:] for line in listed] == [["write_file", "b"], ["edit_file", "a"]]
    assert (home.project / "b").exists()


async def test_a_person_is_asked_and_sees_the_diff(home):
    code, shown = await home.run_at_a_terminal("undo", answers=[b"n\n"])
    assert code == 4
    assert "-new" in shown
    assert (home.project / "b").exists()
    code, _ = await home.run_at_a_terminal("undo", answers=[b"y\n"])
    assert code == 0
    assert not (home.project / "b").exists()


async def test_a_file_that_changed_since_needs_force(home):
    (home.project / "b").write_text("mine\n")
    refused = await home.run("undo", "--yes")
    assert refused.returncode == 1
    assert b"changed since" in refused.stderr
    assert (home.project / "b").read_text() == "mine\n"
    assert (await home.run("undo", "--yes", "--force")).returncode == 0
    assert (home.project / "b.kept-1").read_text() == "mine\n"


async def test_nothing_to_ask_at_and_nothing_known(home):
    assert (await home.run("undo")).returncode == 2
    unknown = await home.run("undo", "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e60")
    assert (unknown.returncode, unknown.stdout) == (1, b"")
    assert (await home.run("undo", "x")).returncode == 2
    other = home.smista / "sessions" / "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e61"
    other.mkdir()
    several = await home.run("undo", SESSION[:8])
    assert (several.returncode, SESSION.encode() in several.stderr) == (2, True)
