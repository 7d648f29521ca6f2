"""At a terminal: how soon a key is seen while an answer streams, and how soon Esc stops it.

The command runs in a pseudo terminal, with a screen that understands what it draws. The answer
comes in 200 deltas a second.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pexpect
import pyte
import trio

from bench.figures import Figure
from bench.house import Told, open_model, open_router, router_environment

KEYS: Final = 100
STOPS: Final = 15
_PATIENCE: Final = 20.0
_ESC: Final = "\x1b"
_POLICY: Final = """\
[providers."openai-compat:bench"]

[routing.default]
model = "openai-compat:bench/demo"
"""


async def measure() -> list[Figure]:
    """Return the waits from a key to what it does on the screen."""
    told = Told()
    with tempfile.TemporaryDirectory(prefix="smista-bench-") as folder:
        place = Path(folder)
        async with open_model(told, "bench.model"), open_router(place, told.port):
            await _log_in(place)
            with _open_terminal(place) as terminal:
                shown = await terminal.wait(lambda: terminal.line == ">") - terminal.begun
                keys = await _keys(terminal)
                rests, stops = await _stops(terminal)
    return [
        Figure(name="smista, until the prompt is there", samples=[shown * 1000]),
        Figure(name="key to echo, 200 events/s", samples=keys, p99_at_most=30),
        Figure(name="Esc to the last output", samples=rests, p99_at_most=50),
        Figure(name="Esc to stopped, as the router says", samples=stops),
    ]


class Terminal:
    """A running `smista` and its screen. *pieces*: what came at once, and when."""

    def __init__(self, child: pexpect.spawn) -> None:
        self.begun = time.monotonic()
        self.pieces: list[tuple[float, bytes]] = []
        self._child = child
        self._screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def line(self) -> str:
        """Return the line that is typed in."""
        return str(self._screen.display[self._screen.cursor.y]).rstrip()

    @property
    def text(self) -> str:
        return "\n".join(self._screen.display)

    def send(self, keys: str) -> float:
        """Type *keys* and return when."""
        os.write(self._child.child_fd, keys.encode())
        return time.monotonic()

    async def wait(self, condition: Callable[[], bool]) -> float:
        """Return when the piece came that made *condition* hold."""
        with trio.fail_after(_PATIENCE):
            while not condition():
                await trio.lowlevel.wait_readable(self._child.child_fd)
                data = os.read(self._child.child_fd, 65_536)
                self.pieces.append((time.monotonic(), data))
                self._stream.feed(data)
        return self.pieces[-1][0] if self.pieces else self.begun


async def _keys(terminal: Terminal) -> list[float]:
    """Type while an answer streams; return the milliseconds from each key to its letter."""
    await _begin_answer(terminal)
    waits: list[float] = []
    typed = "> "
    for number in range(KEYS):
        if number % 50 == 0:
            terminal.send("\x15")
            await terminal.wait(lambda: terminal.line == ">")
            typed = "> "
        typed += chr(ord("a") + number % 26)
        sent = terminal.send(typed[-1])
        seen = await terminal.wait(lambda typed=typed: terminal.line == typed)
        waits.append((seen - sent) * 1000)
    terminal.send("\x15" + _ESC)
    await terminal.wait(lambda: _rests(terminal))
    return waits


async def _stops(terminal: Terminal) -> tuple[list[float], list[float]]:
    """Return milliseconds from Esc to the last word of the answer, and to the end of the run."""
    rests: list[float] = []
    stops: list[float] = []
    for _ in range(STOPS):
        await _begin_answer(terminal)
        pressed = terminal.send(_ESC)
        ended = await terminal.wait(lambda: _rests(terminal))
        said = [at - pressed for at, data in terminal.pieces if at > pressed and b"drop" in data]
        rests.append(max(said, default=0.0) * 1000)
        stops.append((ended - pressed) * 1000)
    return rests, stops


async def _begin_answer(terminal: Terminal) -> None:
    terminal.send("stream")
    await terminal.wait(lambda: terminal.line == "> stream")
    terminal.send("\r")
    before = len(terminal.pieces)
    await terminal.wait(lambda: sum(b"drop" in data for _, data in terminal.pieces[before:]) > 10)


def _rests(terminal: Terminal) -> bool:
    return terminal.line == ">" and "Esc stops" not in terminal.text


@contextmanager
def _open_terminal(place: Path) -> Iterator[Terminal]:
    child = pexpect.spawn(
        sys.executable,
        ["-P", "-m", "smista"],
        cwd=str(place),
        env={**router_environment(place), "TERM": "xterm-256color"},
        dimensions=(30, 100),
    )
    try:
        yield Terminal(child)
    finally:
        child.close(force=True)


async def _log_in(place: Path) -> None:
    (place / "home" / "config.toml").write_text(_POLICY, "utf-8")
    command = [sys.executable, "-P", "-m", "smista", "login", "--global"]
    await trio.run_process(
        command, env=router_environment(place), cwd=place, capture_stdout=True, capture_stderr=True
    )
