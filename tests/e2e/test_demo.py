"""`./dev demo` shows what it says, ends cleanly, and leaves nothing behind."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.e2e.house import inherited

DEMO = Path(__file__).parents[2] / "tools" / "demo.py"
ROUTER = re.compile(r"router started at \S+ \(process (\d+)\)")


def environment(folder: Path) -> dict[str, str]:
    kept = {name: text for name, text in inherited().items() if name == "PYTHONPATH"}
    return {**kept, "TMPDIR": str(folder)}


def gone(said: str) -> bool:
    """Return whether the router that *said* names has ended."""
    found = ROUTER.search(said)
    assert found is not None, said
    try:
        command = Path(f"/proc/{found[1]}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return b"smista" not in command  # one that nobody reaped yet has no command any more


def test_the_demo_runs_without_terminal_or_environment_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO)],
        cwd="/",
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 60
    commands = [line for line in lines if line.startswith("$ ")]
    assert '$ smista "fix the typo in @hello.txt"' in commands
    assert [line for line in lines if line.endswith(" world!")] == [
        "Helo, world!",
        "  -Helo, world!",
        "  +Hello, world!",
        "Hello, world!",
    ]
    answered = [line for line in lines if "[y/N]" in line]
    assert len(answered) == 1
    assert answered[0].endswith(" y")
    assert str(tmp_path) not in done.stdout
    assert "\x1b" not in done.stdout
    assert gone(done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_demo_stops_its_router_and_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, str(DEMO)],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    ) as demo:
        assert demo.stdout is not None
        said = ""
        for line in demo.stdout:
            said += line
            if line.startswith("$ smista login"):
                os.killpg(demo.pid, signal.SIGINT)  # as Ctrl-C does
    assert demo.returncode == 130
    assert said.endswith("interrupted; the router is stopped and the folder is gone\n")
    assert gone(said)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("smista_demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_trace_without_the_approval_fails_the_demo(demo: ModuleType) -> None:
    whole = "\n".join(demo.TRACED)
    demo.check_trace(whole)
    with pytest.raises(demo.DemoFailed, match="approved"):
        demo.check_trace(whole.replace("approved (tool_call)", "rejected (tool_call)"))


def test_a_file_that_was_not_changed_fails_the_demo(demo: ModuleType, tmp_path: Path) -> None:
    stage = demo.Stage(folder=tmp_path)
    stage.project.mkdir()
    (stage.project / "hello.txt").write_text(demo.BEFORE)
    demo.show_file(stage, demo.BEFORE)
    with pytest.raises(demo.DemoFailed, match=r"hello\.txt should say 'Hello"):
        demo.show_file(stage, demo.AFTER)
