"""A home with its project, a real router on it, and a model server: processes, ports and disk.

Everything that is waited for says so itself: a line, a pipe, an exit. Nothing polls or sleeps.
"""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smista.core.messages import ToolResultEntry, ToolResults, ToolResultsData
from smista.core.request import ExecuteRequest
from smista.sdk.client import ClientConfig

PATIENCE = 20.0
"""Seconds for anything that should happen soon."""

BEFORE = "Helo, world!\n"
AFTER = "Hello, world!\n"
COUNTED = "".join(f"{n} " for n in range(40))

SLOWLY = ", ".join(f'{{ text = "{n} " }}, {{ pause_ms = 8 }}' for n in range(40))

KEEP = '{ operation = "record", scope = "user", value = "{fact}" }'

SCRIPT = f"""
[[rules]]
name = "edit, then say so"
when = {{ user = 'fix the typo', results = false }}
say = [
    {{ text = "I will mend it. " }},
    {{ tool = "edit_file", arguments = {{ path = "hello.txt", old = "Helo", new = "Hello" }} }},
]

[[rules]]
name = "run a command"
when = {{ user = 'run the command', results = false }}
say = [{{ tool = "shell", arguments = {{ command = "echo ran" }} }}]

[[rules]]
name = "remember a fact"
when = {{ user = '^remember (?P<fact>.*)', results = false, tools = ["memory"] }}
say = [{{ tool = "memory", arguments = {KEEP} }}]

[[rules]]
name = "say what is remembered"
when = {{ user = 'what do you know', prompt = '# Rememb[^\\n]*\\n\\n(?P<facts>[^#]*)' }}
say = [{{ text = "{{facts}}" }}]

[[rules]]
name = "read a skill"
when = {{ user = 'use skill (?P<skill>[a-z]+)', results = false, tools = ["use_skill"] }}
say = [{{ tool = "use_skill", arguments = {{ name = "{{skill}}" }} }}]

[[rules]]
name = "the call was refused"
when = {{ results = true, failed = true }}
say = [{{ text = "Then not." }}]

[[rules]]
name = "the call was made, and there is much to say"
when = {{ user = 'typo slowly', results = true }}
say = [{SLOWLY}]

[[rules]]
name = "the call was made"
when = {{ results = true }}
say = [{{ text = "Mended." }}]

[[rules]]
name = "begin and never end"
when = {{ user = 'never end' }}
say = [{{ text = "it begins " }}, {{ hold = true }}]

[[rules]]
name = "count at length"
when = {{ user = 'count at length' }}
say = [{", ".join([SLOWLY] * 10)}]

[[rules]]
name = "count slowly"
when = {{ user = 'count' }}
say = [{SLOWLY}]

[[rules]]
name = "echo"
say = [{{ text = "You wrote: {{user}}" }}]
"""

ROUTER = """
[router]
port = {port}

[router.limits]
max_concurrent_requests = 16
max_request_body_bytes = 100000

[router.providers."openai-compat:demo"]
base_url = "{model}"
local = true

[[router.providers."openai-compat:demo".models]]
name = "demo"
max_context_tokens = 32768
input_cost_per_million_tokens = "1"
output_cost_per_million_tokens = "2"

[router.providers."openai-compat:keyed"]
base_url = "{keyed}"
local = true

[[router.providers."openai-compat:keyed".models]]
name = "demo"
auth = "api_key"
max_context_tokens = 32768
"""

POLICY = """
[providers."openai-compat:demo"]

[providers."openai-compat:keyed"]
api_key = "${secret:KEYED_KEY}"

[[classification.rules]]
intent = "edit"
keywords = ["fix"]

[[routing.rules]]
name = "edits stay here"
intent = "edit"
model = "openai-compat:demo/demo"

[[routing.rules]]
name = "reviews need a key"
intent = "review"
model = "openai-compat:keyed/demo"

[routing.default]
model = "openai-compat:demo/demo"

[tools.permissions]
file_write = "ask"
shell = "deny"
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def inherited() -> dict[str, str]:
    """Return what a process of ours has from our environment."""
    names = ("PATH", "TMPDIR", "PYTHONPATH")
    return {name: os.environ[name] for name in names if name in os.environ}


def smista(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "smista", *words]


@dataclass(kw_only=True)
class House:
    """A user's home and project in *folder*; its router is not started yet."""

    folder: Path
    model: str
    port: int = field(default_factory=free_port)
    keyed_port: int = field(default_factory=free_port)
    extra: dict[str, str] = field(default_factory=dict)
    trusted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.home.mkdir(mode=0o700)
        (self.project / ".smista").mkdir(parents=True)
        self.write_policy(POLICY)
        self.hello.write_text(BEFORE)
        keyed = f"http://127.0.0.1:{self.keyed_port}/v1"
        self.router_file.write_text(ROUTER.format(port=self.port, model=self.model, keyed=keyed))

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def hello(self) -> Path:
        return self.project / "hello.txt"

    @property
    def router_file(self) -> Path:
        return self.home / "router.toml"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client_config(self) -> ClientConfig:
        return ClientConfig(url=self.url, request_timeout=PATIENCE, silence=PATIENCE)

    @property
    def environment(self) -> dict[str, str]:
        user = self.folder / "user"
        user.mkdir(exist_ok=True)
        return {**inherited(), "HOME": str(user), "SMISTA_HOME": str(self.home), **self.extra}

    def write_policy(self, text: str) -> None:
        """Write the project's file and let the user trust it, as whoever wrote it would."""
        (self.project / ".smista" / "config.toml").write_text(text)
        if text not in self.trusted:
            self.trusted.add(text)
            self.run("trust", "--yes")

    def run(
        self, *words: str, typed: str = "", umask: int = 0o022
    ) -> "subprocess.CompletedProcess[str]":
        """Run `smista` in the project without a terminal; *typed* is piped in."""
        return subprocess.run(
            smista(*words),
            cwd=self.project,
            env=self.environment,
            input=typed,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            umask=umask,
            check=False,
        )

    @contextmanager
    def begun(self, *words: str, mark: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Lend a `smista` that has written *mark* and goes on; it is dead afterwards."""
        with subprocess.Popen(
            smista(*words),
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as command:
            assert command.stdout is not None
            said = b""
            while mark.encode() not in said:
                piece = os.read(command.stdout.fileno(), 65536)
                assert piece, f"ended after {said!r}"
                said += piece
            try:
                yield command
            finally:
                command.kill()

    def type(self, *words: str, answer: str) -> tuple[int, str]:
        """Run `smista` at a terminal, answer its question; return exit code and screen."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.project)
            os.execve(sys.executable, smista(*words), self.environment)
        try:
            screen = _converse(terminal, answer)
        finally:
            os.close(terminal)
            status = os.waitpid(child, 0)[1]
        return os.waitstatus_to_exitcode(status), screen


def _converse(terminal: int, answer: str) -> str:
    deadline, screen, answered = time.monotonic() + PATIENCE, b"", False
    while select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            piece = b""  # the other side has closed
        if not piece:
            return screen.decode().replace("\r\n", "\n")
        screen += piece
        if not answered and re.search(rb"\[y/N\] (\(.*\) )?\Z", screen):
            os.write(terminal, f"{answer}\n".encode())
            answered = True
    raise AssertionError(f"still waiting; the screen says {screen!r}")


class Process:
    """A process of ours whose output is kept line by line; leaving the body kills it."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        pass_fds: Sequence[int] = (),
        umask: int = 0o022,
    ) -> None:
        self._popen = subprocess.Popen(
            command,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            pass_fds=pass_fds,
            umask=umask,
        )
        self._said: list[str] = []
        self._news = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        with self._popen.stdout as lines:
            for line in lines:
                with self._news:
                    self._said.append(line)
                    self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def output(self) -> str:
        with self._news:
            return "".join(self._said)

    def wait_line(self, words: str) -> str:
        """Return the first line that has *words* in it, as soon as it is said."""

        def found() -> str | None:
            return next((line for line in self._said if words in line), None)

        with self._news:
            self._news.wait_for(lambda: found() or self._over, PATIENCE)
            line = found()
        assert line is not None, f"{words!r} was not said, but: {self.output}"
        return line

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait(self) -> int:
        """Return the exit code, once the process ended and all its output was read."""
        code = self._popen.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def kill(self) -> None:
        """End it without a word, whatever state it is in."""
        self._popen.kill()
        self.wait()


class Router:
    """The router of *house* as a process that can be killed and started again."""

    def __init__(self, house: House, *, umask: int = 0o022) -> None:
        self.house = house
        self._umask = umask
        self.lives: list[Process] = []
        self.start()

    @property
    def process(self) -> Process:
        return self.lives[-1]

    @property
    def output(self) -> str:
        """Return what all its lives said."""
        return "".join(life.output for life in self.lives)

    def start(self) -> None:
        """Return once it answers."""
        ready, announce = os.pipe()
        command = smista("--log-filter", "debug", "start", "--foreground")
        environment = {**self.house.environment, "SMISTA_READY_FD": str(announce)}
        try:
            self.lives.append(
                Process(command, environment, pass_fds=(announce,), umask=self._umask)
            )
            os.close(announce)
            heard = select.select([ready], [], [], PATIENCE)[0]
            entry = os.read(ready, 4096) if heard else b""
        finally:
            os.close(ready)
        assert entry, f"the router does not answer: {self.output}"
        assert json.loads(entry)["url"] == self.house.url

    def kill(self) -> None:
        self.process.kill()

    def leave(self) -> int:
        """End it by SIGTERM and return its exit code."""
        self.process.send(signal.SIGTERM)
        return self.process.wait()


@contextmanager
def running(house: House, *, umask: int = 0o022) -> Iterator[Router]:
    router = Router(house, umask=umask)
    try:
        yield router
    finally:
        router.kill()


@contextmanager
def demo_model(folder: Path, script: str = SCRIPT) -> Iterator[str]:
    """Serve *script* in a process of its own; its address is lent."""
    file = folder / "script.toml"
    file.write_text(script)
    process = Process(smista("demo-model", "--script", str(file)), inherited())
    try:
        yield process.wait_line("answers at").split()[-1]
    finally:
        process.kill()


@contextmanager
def daemon(house: House) -> Iterator[Callable[[], int]]:
    """Make sure that a router started with `smista start` is gone; lent is how to find it."""

    def pid() -> int:
        return int((house.home / "run" / "router.pid").read_text())

    try:
        yield pid
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(pid(), signal.SIGCONT)
        house.run("stop")


def request(text: str) -> ExecuteRequest:
    """Return a prompt without context under the house's policy in short."""
    return ExecuteRequest.model_validate(
        {
            "input": {"text": text},
            "workspace": {"root": "/p", "referenced_paths": []},
            "policy": {
                "version": 1,
                "source": "merged",
                "classification": {},
                "routing": {"default": {"model": "openai-compat:demo/demo"}},
                "tools": {"permissions": {"file_write": "ask"}},
                "privacy": {},
            },
            "local_preferences": {"auto_apply": False, "local_only": False, "no_network": False},
            "attachments": {"files": [], "instructions": []},
        }
    )


def done(requests: Sequence[Mapping[str, Any]], text: str = "written") -> ToolResults:
    """Return the approved results of *requests*."""
    results = tuple(
        ToolResultEntry(call_id=each["call_id"], content=text, decision="approved")
        for each in requests
    )
    return ToolResults(data=ToolResultsData(results=results))
