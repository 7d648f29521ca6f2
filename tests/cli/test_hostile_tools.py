"""Every tool, given what would hold it up, fill memory or lead it astray: bounded and polite."""

import os
import resource
import socket
import stat
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from cli import finding, shell, watching
from cli.files import MAX_FILE, Unusable
from cli.host import TerminalHost
from cli.tools import MAX_RESULT, Outside, leads_to, perform, prepare
from smista.core.policy import ToolsConfig
from tests.cli.ground import call, surroundings

LINUX = sys.platform == "linux"
GIGABYTE = 1024**3
FREE = ToolsConfig(
    permissions=dict.fromkeys(("file_read", "file_write", "shell", "git", "network"), "allow")
)


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


@asynccontextmanager
async def bounded(seconds=5.0, megabytes=64):
    """Fail if the body computes for longer, waits for much longer, or the process grows by more."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    with trio.fail_after(seconds * 10):
        yield
    assert time.process_time() - began < seconds
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < megabytes * 1024


async def ask(here, name, **arguments):
    """Return the result of a call that the policy allows and nobody can be asked about."""
    host = TerminalHost(here, FREE, terminal=None, yes=True)
    (result,) = await host.run_tools((call(name, "allow", **arguments),))
    return result


async def run(here, line, **more):
    return await perform(prepare(call("shell", command=line, **more), here), here)


def file_calls(path):
    yield call("read_file", "allow", path=path)
    yield call("write_file", "allow", path=path, content="x")
    yield call("edit_file", "allow", path=path, old="a", new="b")
    yield call("list_files", "allow", path=path)
    yield call("search_files", "allow", path=path, pattern="x")


# --- where paths lead ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "a/../../x",
        "./././../x",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "out",
        "out/x",
        "out/../x",
        "deep/out/x",
        "/proc/self/root/etc/passwd",
        "/dev/stdin",
        "/dev/zero",
        "/dev/fd/0",
        "to-zero",
        "to-stdin",
    ],
)
def test_nothing_outside_is_looked_at_before_somebody_agreed(here, tmp_path, path):
    (here.root / "out").symlink_to(tmp_path)
    (here.root / "deep").mkdir()
    (here.root / "deep" / "out").symlink_to("../../")
    (here.root / "to-zero").symlink_to("/dev/zero")
    (here.root / "to-stdin").symlink_to("/dev/stdin")
    for request in file_calls(path):
        with pytest.raises(Outside):
            prepare(request, here)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "/dev/random", "/dev/full", "/proc"])
@pytest.mark.skipif(not LINUX, reason="Linux has these devices")
async def test_a_device_is_refused_even_if_somebody_agreed(here, path):
    async with bounded():
        for request in list(file_calls(path))[:3]:
            outcome = await agreed(request, here)
            assert "regular" in outcome or "no such file" in outcome or "does not" in outcome


async def agreed(request, here):
    try:
        prepared = prepare(request, here, agreed=leads_to(request, here))
    except Unusable as fault:
        return str(fault)
    if request.name == "write_file":
        return "there is no such file, so it would be made: does not matter"
    return (await perform(prepared, here)).content


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder"])
async def test_what_is_no_file_holds_nobody_up(here, kind, monkeypatch):
    place = here.root / "thing"
    match kind:
        case "fifo":
            os.mkfifo(place)
        case "socket":
            monkeypatch.chdir(here.root)  # its whole path may be too long for a socket
            with socket.socket(socket.AF_UNIX) as plug:
                plug.bind("thing")
        case "device":
            try:
                os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))
            except PermissionError:
                pytest.skip("only root makes devices")
        case "folder":
            place.mkdir()
    async with bounded():
        for name, more in (
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("edit_file", {"old": "a", "new": "b"}),
        ):
            result = await ask(here, name, path="thing", **more)
            assert result.is_error
            assert "regular file" in result.content
        found = await ask(here, "search_files", pattern=".")
        assert found.content == "[no match]"
    assert [entry.name for entry in os.scandir(here.root)] == ["thing"]


@pytest.mark.parametrize("path", ["a\0b", "\0", "a\0/../../etc/passwd"])
async def test_a_nul_in_a_path_is_refused(here, path):
    for request in file_calls(path):
        with pytest.raises(Unusable, match="NUL"):
            prepare(request, here)
    assert (await ask(here, "git", arguments=["log", "a\0b"])).is_error
    assert (await ask(here, "shell", command="echo a\0b")).is_error


@pytest.mark.parametrize("path", ["x" * 5000, "x/" * 2500, "../" * 1666 + "x", "a" * 256 + "/b"])
async def test_a_path_of_five_thousand_characters_is_an_answer(here, path):
    async with bounded():
        for request in file_calls(path):
            host = TerminalHost(here, FREE, terminal=None, yes=True)
            (result,) = await host.run_tools((request,))
            assert result.is_error


async def test_links_that_lead_in_circles_or_very_far_are_an_answer(here):
    (here.root / "me").symlink_to("me")
    (here.root / "one").symlink_to("two")
    (here.root / "two").symlink_to("one")
    (here.root / "l0").write_text("end of the chain")
    for at in range(1, 200):
        (here.root / f"l{at}").symlink_to(f"l{at - 1}")
    (here.root / "around").symlink_to(".")
    async with bounded():
        for path in ("me", "one", "two/x", "around/" * 300 + "me"):
            for request in file_calls(path):
                host = TerminalHost(here, FREE, terminal=None, yes=True)
                (result,) = await host.run_tools((request,))
                assert result.is_error
        chained = await ask(here, "read_file", path="l199")
        assert chained.content == "end of the chain" or chained.is_error
        listed = await ask(here, "list_files")
        assert listed.content == "l0"


# --- how large things are --------------------------------------------------------------------


async def test_a_file_of_a_gigabyte_is_refused_at_once(here):
    with (here.root / "big").open("wb") as file:
        file.truncate(GIGABYTE)
    async with bounded(seconds=4, megabytes=48):
        for request in list(file_calls("big"))[:3]:
            host = TerminalHost(here, FREE, terminal=None, yes=True)
            (result,) = await host.run_tools((request,))
            assert result.is_error
            assert "larger than" in result.content
        assert (await ask(here, "search_files", pattern="x")).content == "[no match]"
    assert (here.root / "big").stat().st_size == GIGABYTE


async def test_a_file_that_grows_while_it_is_read_is_refused(here, monkeypatch):
    (here.root / "log").write_bytes(b"x" * 100)
    real = os.fstat

    def grown(handle):
        if real(handle).st_size == 100:
            with (here.root / "log").open("ab") as file:
                file.write(b"x" * (MAX_FILE + 1))
            return os.stat_result((*real(handle)[:6], 100, *real(handle)[7:]))
        return real(handle)

    monkeypatch.setattr("cli.files.os.fstat", grown)
    async with bounded():
        assert "larger than" in (await ask(here, "read_file", path="log")).content


async def test_bytes_that_are_no_text_are_refused_and_kept(here):
    for at, content in enumerate((b"\xff\xfe", b"ab\x80", b"\xed\xa0\x80", b"\xc0\xaf", b"a\xf5")):
        (here.root / f"b{at}").write_bytes(content)
        for name, more in (
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("edit_file", {"old": "a", "new": "b"}),
        ):
            result = await ask(here, name, path=f"b{at}", **more)
            assert result.is_error
            assert "UTF-8" in result.content
        assert (here.root / f"b{at}").read_bytes() == content


async def test_a_folder_of_a_hundred_thousand_entries_is_listed_in_part(here):
    folder = os.open(here.root, os.O_RDONLY)
    for at in range(100_000):
        os.mknod(f"{at:06}", 0o600 | stat.S_IFREG, dir_fd=folder)
    os.close(folder)
    async with bounded(seconds=12, megabytes=160):
        listed = await ask(here, "list_files", limit=1000)
        found = await ask(here, "search_files", pattern="x", limit=1000)
    assert listed.content.count("\n") <= 1002
    assert f"stopped after {finding.MAX_SEEN} entries" in found.content
    assert len(listed.content) < MAX_RESULT


@pytest.fixture
def deep(here):
    """A folder in a folder, 1,500 times: too deep for whoever tidies up by recursion."""
    place = os.open(here.root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("dd", dir_fd=place)
        inner = os.open("dd", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    yield here
    subprocess.run(["rm", "-rf", str(here.root / "dd")], check=True)


async def test_a_very_deep_folder_is_an_answer(deep):
    here = deep
    async with bounded():
        assert not (await ask(here, "list_files")).is_error
        assert not (await ask(here, "search_files", pattern="x")).is_error


async def test_names_that_would_forge_lines_are_left_out(here):
    for name in ("a\nb", "a\x1b[2Jb", "a\u202eb", os.fsdecode(b"a\xffb")):
        (here.root / name).write_text("marker")
    (here.root / "good").write_text("marker")
    assert (await ask(here, "list_files")).content == "good"
    assert (await ask(here, "search_files", pattern="marker")).content == "good:1: marker"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*b", "([a-z]+)*1"])
async def test_a_pattern_that_never_ends_is_ended(here, monkeypatch, pattern):
    monkeypatch.setattr(finding, "SECONDS", 0.3)
    (here.root / "a").write_text("a" * 5000 + "!\n")
    async with bounded():
        result = await ask(here, "search_files", pattern=pattern)
    assert result.is_error or "[no match]" in result.content or "a:1" in result.content


# --- commands --------------------------------------------------------------------------------


async def test_a_command_that_prints_without_end_fills_no_memory(here):
    shown = []
    async with bounded(seconds=4, megabytes=48):
        prepared = prepare(call("shell", command="yes 'and so on'", timeout_ms=600), here)
        outcome = await perform(prepared, here, output=shown.append)
    assert "killed" in outcome.content
    assert "bytes left out]" in outcome.content
    assert len(outcome.content) <= shell.MAX_OUTPUT + 200
    # The screen gets what a person can follow.
    assert sum(map(len, shown)) < 60 * (watching.MAX_SHOWN + 100)
    assert any("characters not shown" in piece for piece in shown)


async def test_what_a_command_says_is_shown_while_it_runs(here):
    os.mkfifo(here.root / "go")
    shown, first = [], trio.Event()

    def show(text):
        shown.append(text)
        first.set()

    async def go_on():
        await first.wait()
        await trio.to_thread.run_sync(lambda: (here.root / "go").write_text("on"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on)
        prepared = prepare(call("shell", command="echo begun; cat go; printf '\\303\\244'"), here)
        async with bounded():
            outcome = await perform(prepared, here, output=show)
    assert shown[0] == "begun\n"
    assert "".join(shown) == "begun\nonä"
    assert outcome.content == "begun\nonä\n[exit code 0]"


@pytest.mark.parametrize("ignores", ["TERM", "TERM INT HUP QUIT PIPE TSTP USR1"])
async def test_a_command_that_ignores_signals_is_killed(here, ignores):
    async with bounded(seconds=4):
        outcome = await run(
            here, f"trap '' {ignores}; echo $$ > pid; while :; do sleep 0.1; done", timeout_ms=400
        )
    assert "killed" in outcome.content
    assert gone(here, "pid")


@pytest.mark.parametrize(
    "line",
    [
        "sleep 1000 & echo $! > pid; echo up > said; sleep 1000",
        "(sleep 1000 & echo $! > pid; echo up > said) & sleep 1000",
        "setsid sh -c 'echo $$ > pid; echo up > said; sleep 1000' & sleep 1000",
        "(setsid sh -c 'sh leaf &' &) ; sleep 1000",
        "(setsid nohup sh -c 'trap \"\" TERM HUP; exec sh leaf' &) ; sleep 1000",
        "sh -c 'kill -STOP $$' & echo $! > pid; echo up > said; sleep 1000",
    ],
)
@pytest.mark.skipif(not LINUX, reason="elsewhere only the process group is known")
async def test_forks_and_double_forks_go_with_it(here, line):
    (here.root / "leaf").write_text("echo $$ > pid; echo up > said; sleep 1000")
    assert await time_to_break(here, line) < 0.5
    assert gone(here, "pid")


@pytest.mark.skipif(not LINUX, reason="elsewhere only the process group is known")
async def test_a_command_that_forks_without_end_is_killed(here):
    # Each leaves a successor and goes: nobody is there for long.
    body = "echo x >> count; if [ $(wc -l < count) -lt 4000 ]; then sh next & fi"
    (here.root / "next").write_text(body)
    async with bounded(seconds=10):
        outcome = await run(here, "sh next; sleep 1000", timeout_ms=600)
    assert "killed" in outcome.content
    before = (here.root / "count").stat().st_size
    assert not [name for name in commands() if f"{here.root}" in name]
    assert (here.root / "count").stat().st_size == before


async def test_nobody_answers_what_it_asks(here):
    async with bounded(seconds=4):
        asked = await run(here, 'read -r answer; echo "got:$answer"; cat; cat /dev/stdin | wc -c')
    assert asked.content.startswith("got:\n")
    assert "0\n" in asked.content
    async with bounded(seconds=4):
        terminal = await run(here, "exec < /dev/tty && echo had a terminal")
    assert "had a terminal" not in terminal.content


async def test_a_command_that_closes_its_output_is_waited_for(here):
    async with bounded(seconds=4):
        outcome = await run(here, "echo before; exec >&- 2>&-; sleep 0.3; touch done; exit 3")
    assert outcome.content == "before\n\n[exit code 3]"
    assert (here.root / "done").exists()
    async with bounded(seconds=4):
        endless = await run(here, "exec >&- 2>&-; while :; do sleep 0.1; done", timeout_ms=400)
    assert "killed" in endless.content


async def test_a_break_kills_all_of_it_at_once(here):
    line = "trap '' INT TERM; (setsid sh -c 'echo $$ > child; sleep 1000' &); "
    line += "until [ -s child ]; do sleep 0.01; done; echo $$ > pid; echo up > said; sleep 1000"
    assert await time_to_break(here, line) < 0.5
    assert gone(here, "pid")
    assert not LINUX or gone(here, "child")


async def time_to_break(here, line):
    """Break *line* off once it has written to the FIFO `said`; return how long that took."""
    os.mkfifo(here.root / "said")
    began = []
    async with trio.open_nursery() as nursery:

        async def break_off():
            await trio.to_thread.run_sync((here.root / "said").read_text)
            began.append(time.monotonic())
            nursery.cancel_scope.cancel()

        nursery.start_soon(break_off)
        await run(here, line)
    return time.monotonic() - began[0]


async def test_arguments_of_any_size_are_an_answer(here):
    async with bounded():
        for arguments in (["log", "x" * 3_000_000], ["log", *["x" * 100] * 50_000]):
            result = await ask(here, "git", arguments=arguments)
            assert result.is_error
        assert (await ask(here, "shell", command=": " + "x" * 3_000_000)).is_error
        many = await ask(here, "read_file", path="a", **{f"n{at}": at for at in range(5000)})
        assert many.is_error
    for bad in ({}, "status", [], [1], [["status"]], ["a\ud800"]):
        assert (await ask(here, "git", arguments=bad)).is_error


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org/",
        "data:text/plain,x",
        "javascript:1",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://0/",
        "http://user:pw@example.org/",
        "//example.org",
        "http://" + "a" * 5000,
        "http://[",
        "",
        "\0",
    ],
)
async def test_no_way_into_the_own_network(here, url):
    async with bounded(seconds=8):
        prepared = call("fetch_url", url=url)
        try:
            outcome = await perform(prepare(prepared, here), here)
        except Unusable:
            return
    assert outcome.is_error


def gone(here, name):
    """Return whether the process whose id stands in the file *name* does not run any more."""
    pid = int((here.root / name).read_text())
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Whoever adopted it may not have taken leave of it yet.
    return LINUX and state(pid) in ("Z", "X", "")


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def commands():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and state(entry.name) not in ("Z", "X", ""):
            try:
                yield os.readlink(entry / "cwd")
            except OSError:
                continue
