"""Runs smista once from end to end, as a user would, and checks that it all really happened.

Every line that starts with `$` is a command in a process of its own. Home and project are
temporary: whatever happens, the router is stopped and nothing stays.
"""

import codecs
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

PATIENCE: Final = 60.0
"""Seconds that one command may take."""

INTRODUCTION: Final = """\
smista runs once from end to end. Its home and a small project are in a temporary folder, written
as ~demo below and deleted at the end; the model is a scripted server on this machine.
"""
ROUTER: Final = """\
[router]
port = {port}

[router.providers."openai-compat:demo"]
base_url = "{url}"
local = true

[[router.providers."openai-compat:demo".models]]
name = "demo"
max_context_tokens = 32768
"""
RULE: Final = """\
[[routing.rules]]
name = "edits stay on this machine"
intent = "edit"
model = "openai-compat:demo/demo"
"""
REST: Final = """\
[[classification.rules]]
intent = "edit"
keywords = ["fix"]
[routing.default]
model = "openai-compat:demo/demo"
[providers."openai-compat:demo"]
[tools.permissions]
file_write = "ask"
"""
BEFORE: Final = "Helo, world!\n"
AFTER: Final = "Hello, world!\n"
QUESTION: Final = "[y/N] "
WAITS: Final = re.compile(r"\[y/N\] (\(.*\) )?\Z")
"""A question that has been put whole; what else can be answered stands in brackets after it."""
CHANGE: Final = ("-Helo, world!", "+Hello, world!")
TRACED: Final = (
    "edit: keyword 'fix'",
    "rule edits stay on this machine",
    "in  hello.txt: attached",
    "edit_file pending",
    "approved (tool_call)",
    "edit_file completed",
)
NEXT: Final = """
All of it happened as shown. Next: use it with a model of your own (docs/get-started.md), see how a
prompt travels through the code (docs/architecture.md), run the tests (./dev test).
"""
COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


class DemoFailed(Exception):
    """Something did not happen as it should; the text says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The temporary folder and what is in it."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of all commands: the caller's without its own smista settings."""
        passed = {key: value for key, value in os.environ.items() if not key.startswith("SMISTA_")}
        return {**passed, "SMISTA_HOME": str(self.home), "PYTHONUTF8": "1"}

    def shown(self, text: str) -> str:
        """Return *text* as a newcomer should see it."""
        return text.replace(str(self.folder), "~demo")


def main() -> int:
    sys.stdout.reconfigure(errors="replace", line_buffering=True)  # type: ignore[union-attr]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        with tempfile.TemporaryDirectory(prefix="smista-demo-") as folder:
            stage = Stage(folder=Path(folder).resolve())
            stage.home.mkdir(mode=0o700)
            stage.project.mkdir()
            play(stage)
    except DemoFailed as failure:
        print(f"\ndemo failed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the router is stopped and the folder is gone", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    print(NEXT, end="")
    return 0


def _leave(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def play(stage: Stage) -> None:
    """Run every command in order, checking each. Raises DemoFailed."""
    print(INTRODUCTION)
    with demo_model(stage) as url:
        prepare(stage, url)
        with router(stage):
            command(stage, "trust", "--yes")
            command(stage, "login")
            show_file(stage, BEFORE)
            ask(stage)
            show_file(stage, AFTER)
            print()
            check_trace(command(stage, "trace"))


def prepare(stage: Stage, url: str) -> None:
    """Write both configuration files and the file to mend; show the rule."""
    (stage.home / "router.toml").write_text(ROUTER.format(port=_free_port(), url=url))
    (stage.project / ".smista").mkdir()
    (stage.project / ".smista" / "config.toml").write_text(RULE + REST)
    (stage.project / "hello.txt").write_text(BEFORE)
    lines = len(RULE.splitlines())
    print(f"$ head -n {lines} .smista/config.toml    # a rule that chooses a model\n{RULE}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def demo_model(stage: Stage) -> Generator[str]:
    """Run the scripted model server; its address is lent."""
    print("$ smista demo-model &")
    process = subprocess.Popen(
        _smista("demo-model"),
        env=stage.environment,
        cwd=stage.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for us, who then end it
    )
    assert process.stdout is not None
    try:
        heard = select.select([process.stdout], [], [], PATIENCE)[0]
        line = process.stdout.readline() if heard else ""
        address = re.search(r"http://\S+", line)
        if address is None:
            raise DemoFailed("the demo model did not say where it answers")
        print(line, end="")
        yield address[0]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@contextmanager
def router(stage: Stage) -> Generator[None]:
    """Start the router, and stop it whatever happens in between."""
    try:
        command(stage, "start")
        yield
    except BaseException:
        # A second Ctrl-C must not leave a router behind; without a router there is none to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _run(stage, "stop")
        raise
    command(stage, "stop")


def command(stage: Stage, *words: str) -> str:
    """Run `smista` with *words*, show it, and return what it printed. Raises DemoFailed."""
    print(f"$ smista {' '.join(words)}")
    done = _run(stage, *words)
    print(stage.shown(done.stdout), end="")
    if done.returncode != 0:
        raise DemoFailed(f"smista {words[0]} ended with exit code {done.returncode}")
    return done.stdout


def _run(stage: Stage, *words: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            _smista(*words),
            env=stage.environment,
            cwd=stage.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DemoFailed(f"smista {words[0]} did not end in {PATIENCE:.0f} seconds") from error


def _smista(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "smista", *words]


def show_file(stage: Stage, expected: str) -> None:
    """Show the project's file. Raises DemoFailed if it does not say what is *expected*."""
    content = (stage.project / "hello.txt").read_text()
    print(f"$ cat hello.txt\n{content}", end="")
    if content != expected:
        raise DemoFailed(f"hello.txt should say {expected!r}")


def ask(stage: Stage) -> None:
    """Type a prompt at a terminal and approve the change once it is on screen."""
    prompt = "fix the typo in @hello.txt"
    print(f'$ smista "{prompt}"')
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(stage.project)
        os.execve(sys.executable, _smista(prompt), stage.environment)
    try:
        screen = _converse(terminal)
    finally:
        os.close(terminal)  # hangs up, so a command that still runs ends
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        raise DemoFailed(f"the prompt ended with exit code {code}")
    if screen.count(QUESTION) != 1:
        raise DemoFailed("the change was not put before us exactly once")


def _converse(terminal: int) -> str:
    """Show what appears on *terminal* and answer the question; return all that appeared."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    deadline = time.monotonic() + PATIENCE
    raw, answered = "", False
    while piece := _read(terminal, deadline):
        new = decode(piece).replace("\r\n", "\n")
        raw += new
        print(new if sys.stdout.isatty() else COLOUR.sub("", new), end="", flush=True)
        if not answered and WAITS.search(raw):
            if not all(line in raw for line in CHANGE):
                raise DemoFailed("we were asked before the change was shown")
            os.write(terminal, b"y\n")
            answered = True
    return raw


def _read(terminal: int, deadline: float) -> bytes:
    if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
        raise DemoFailed(f"the prompt did not end in {PATIENCE:.0f} seconds")
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""  # how Linux says that the other side has closed


def check_trace(trace: str) -> None:
    """Raise DemoFailed unless *trace* tells of the whole way of the prompt."""
    missing = [words for words in TRACED if words not in trace]
    if missing:
        raise DemoFailed(f"the trace does not say: {', '.join(missing)}")


if __name__ == "__main__":
    sys.exit(main())
