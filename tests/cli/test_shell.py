"""The shell tool: bounded, alone, and gone when it is over."""

import os
import signal

import pytest
import trio

from cli import shell
from cli.tools import perform, prepare
from cli.veil import Veil
from tests.cli.ground import call, surroundings


@pytest.fixture
def here(tmp_path):
    return surroundings(tmp_path)


async def run(here, line, **more):
    return await perform(prepare(call("shell", command=line, **more), here), here)


async def test_output_errors_and_exit_code_come_back(here):
    outcome = await run(here, "echo out; echo err >&2; exit 3")
    assert outcome.is_error
    assert outcome.content == "out\nerr\n\n[exit code 3]"


async def test_it_runs_in_the_project_with_the_users_umask(here):
    outcome = await run(here, "pwd; umask")
    assert outcome.content.split("\n")[:2] == [str(here.root), "0022"]


async def test_nobody_answers_its_questions(here):
    assert "[exit code 1]" in (await run(here, "read line")).content


async def test_keys_are_not_in_its_environment(tmp_path):
    environ = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "canary", "Gh_Token": "canary"}
    here = surroundings(tmp_path, environ={**environ, "NAMED": "canary", "PLAIN": "kept"})
    prepared = prepare(call("shell", command="env"), here)
    content = (await perform(prepared, here, veil=Veil(names=frozenset({"NAMED"})))).content
    assert "canary" not in content
    assert "PLAIN=kept" in content


async def test_a_long_output_loses_its_middle(here, monkeypatch):
    monkeypatch.setattr(shell, "MAX_OUTPUT", 1000)
    content = (await run(here, "echo begin; yes | head -c 100000; echo end")).content
    assert len(content) < 1200
    assert content.startswith("begin\n")
    assert "bytes left out]" in content
    assert content.endswith("end\n\n[exit code 0]")


async def test_after_its_time_the_whole_group_is_killed(here):
    line = "sleep 1000 & echo $! > child; echo $$ > parent; echo started; wait"
    outcome = await run(here, line, timeout_ms=500)
    assert outcome.is_error
    assert "started" in outcome.content
    assert "killed" in outcome.content
    await gone(int((here.root / "child").read_text()))
    await gone(int((here.root / "parent").read_text()))


async def test_what_it_leaves_in_the_background_is_killed_too(here):
    with trio.fail_after(20):
        outcome = await run(here, "sleep 1000 & echo $! > child; echo done")
    assert outcome.content.startswith("done")
    await gone(int((here.root / "child").read_text()))


async def test_a_cancelled_command_is_killed(here, nursery):
    os.mkfifo(here.root / "said")
    with trio.CancelScope() as scope:

        async def cancel():
            said = await trio.to_thread.run_sync(lambda: (here.root / "said").read_text())
            (here.root / "pid").write_text(said)
            scope.cancel()

        nursery.start_soon(cancel)
        await run(here, "echo $$ > said; exec sleep 1000")
    assert scope.cancelled_caught
    await gone(int((here.root / "pid").read_text()))


async def test_a_child_with_a_session_of_its_own_holds_nobody_up(here):
    with trio.fail_after(20):
        outcome = await run(
            here,
            "setsid sh -c 'echo $$ > child; exec sleep 1000' & "
            "until [ -s child ]; do sleep 0.01; done; echo started; exit 3",
        )
    child = int((here.root / "child").read_text())
    try:
        assert outcome.content.startswith("started\n\n[exit code 3]\n[something it started")
        assert str(child) in outcome.content
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize(
    "escape", ["setsid {} &", "(setsid {} &) &", "setsid sh -c 'setsid {} & sleep 1000' &"]
)
async def test_what_left_the_group_is_killed_at_timeout_too(here, escape):
    child = 'sh -c "echo \\$\\$ > child; exec sleep 1000"'
    outcome = await run(here, escape.format(child) + " sleep 1000", timeout_ms=700)
    assert "killed" in outcome.content
    await gone(int((here.root / "child").read_text()))


async def test_a_command_that_ignores_what_it_is_told_is_killed(here):
    line = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 0.2; done"
    outcome = await run(here, line, timeout_ms=500)
    assert "killed" in outcome.content
    await gone(int((here.root / "pid").read_text()))


async def test_children_of_others_are_left_alone(here, nursery):
    other = await trio.lowlevel.open_process(["sleep", "1000"])
    try:
        await run(here, "sleep 1000", timeout_ms=200)
        assert other.poll() is None
    finally:
        other.kill()
        await other.wait()


async def gone(pid):
    """Return once *pid* has ended; a child of a killed shell is reaped by someone else."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with trio.fail_after(5):
        await trio.lowlevel.wait_readable(handle)
    os.close(handle)
