"""The user's machine in real runs: changes can be had back, what was begun is not redone."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.house import (
    AFTER,
    BEFORE,
    PATIENCE,
    POLICY,
    House,
    Process,
    inherited,
    running,
    smista,
)

COMMAND = "echo begun >> log; echo up > up; cat gate"
SCRIPT = f"""
[[rules]]
name = "run it"
when = {{ user = 'run it', results = false }}
say = [{{ tool = "shell", arguments = {{ command = "{COMMAND}" }} }}]

[[rules]]
name = "it was not run"
when = {{ results = true, failed = true }}
say = [{{ text = "Then not." }}]

[[rules]]
name = "it was run"
when = {{ results = true }}
say = [{{ text = "It ran." }}]
"""


def test_an_edit_of_an_encrypted_session_is_taken_back_and_nothing_of_it_is_kept_in_clear(
    shared: House,
) -> None:
    shared.write_policy(POLICY)
    shared.hello.write_text(BEFORE)
    assert shared.run("--yes", "fix the typo in @hello.txt").returncode == 0
    assert shared.hello.read_text() == AFTER
    kept = [path.read_bytes() for path in (shared.home / "sessions").rglob("*") if path.is_file()]
    assert kept
    assert not any(b"hello" in each or b"Helo" in each or b"SGVsbyw" in each for each in kept)
    undone = shared.run("undo", "--yes")
    assert (undone.returncode, undone.stdout) == (0, "taken back: hello.txt\n"), undone.stderr
    assert shared.hello.read_text() == BEFORE
    assert shared.run("undo", "--redo", "--yes").returncode == 0
    assert shared.hello.read_text() == AFTER
    assert shared.run("undo", "--yes").returncode == 0


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A home whose model asks for a command that waits until somebody opens its gate."""
    tmp_path = tmp_path_factory.mktemp("waiting")
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT)
    model = Process(smista("demo-model", "--script", str(script)), inherited())
    try:
        house = House(folder=tmp_path, model=model.wait_line("answers at").split()[-1])
        with running(house):
            assert house.run("login").returncode == 0
            house.write_policy(POLICY.replace('shell = "deny"', 'shell = "allow"'))
            os.mkfifo(house.project / "up")
            os.mkfifo(house.project / "gate")
            yield house
    finally:
        model.kill()


@pytest.mark.parametrize(("answer", "runs"), [(None, 1), ("y", 2)])
def test_a_command_that_smista_was_killed_in_is_begun_again_only_if_the_user_says_so(
    waiting: House, answer: str | None, runs: int
) -> None:
    project = waiting.project
    (project / "log").unlink(missing_ok=True)
    with subprocess.Popen(
        smista("run it"),
        cwd=project,
        env=waiting.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as killed:
        assert (project / "up").read_text() == "up\n"
        killed.kill()
    (project / "gate").write_text("the first one goes on alone\n")
    code, said = resumed(waiting, answer)
    assert (project / "log").read_text() == "begun\n" * runs
    assert ("It ran." in said, code) == ((True, 0) if runs == 2 else (False, 4))


def resumed(house: House, answer: str | None) -> tuple[int, str]:
    """Go on in the session that was cut off, and return the exit code and what was said."""
    if answer is None:
        done = house.run("--continue")
        return done.returncode, done.stdout + done.stderr
    release = "cat up > /dev/null; echo on > gate"
    with subprocess.Popen(["sh", "-c", release], cwd=house.project) as opener:
        told = house.type("--continue", answer=answer)
        opener.wait(PATIENCE)
    return told
