"""A person's place: the real command in a pseudo terminal, and a screen that understands it.

Nothing sleeps: a thread reads all that comes, and whoever waits for something on the screen is
woken by every piece, until a deadline.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

import pexpect
import pyte

from tests.e2e.house import PATIENCE, House, smista

PROMPT = "> "
ESC, CTRL_C, CTRL_D, CTRL_J, CTRL_O = "\x1b", "\x03", "\x04", "\x0a", "\x0f"
UP, DOWN, RIGHT = "\x1b[A", "\x1b[B", "\x1b[C"
AUTO = "the rules decide which model serves"
SETTLED = 0.35
"""Seconds after which a question takes a key."""


@dataclass
class Piece:
    """What came at once, and when."""

    at: float
    data: bytes


@dataclass
class Seat:
    """A running `smista` and its screen. *pieces* is all that it ever wrote."""

    child: pexpect.spawn
    screen: pyte.HistoryScreen
    pieces: list[Piece] = field(default_factory=list)
    over: bool = False
    _above: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stream = pyte.ByteStream(self.screen)
        self.news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.child.child_fd, 65536)
            except OSError:
                data = b""  # the other side has closed
            with self.news:
                if not data:
                    self.over = True
                else:
                    self.pieces.append(Piece(time.monotonic(), data))
                    self._stream.feed(data)
                self.news.notify_all()
            if not data:
                return

    @property
    def raw(self) -> bytes:
        with self.news:
            return b"".join(piece.data for piece in self.pieces)

    @property
    def lines(self) -> list[str]:
        """Return what is on the screen, without the blanks at the ends."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        """Return the scrollback and the screen."""
        # What has scrolled away does not change any more, so each line is read once.
        fresh = islice(self.screen.history.top, len(self._above), None)
        for line in fresh:
            cells = (line[column].data for column in range(self.screen.columns))
            self._above.append("".join(cells).rstrip())
        return "\n".join([*self._above, *self.lines])

    @property
    def typed(self) -> str:
        """Return the line that the cursor is in."""
        return self.lines[self.screen.cursor.y]

    def send(self, keys: str) -> float:
        """Type *keys* and return when."""
        rest = keys.encode()
        at = time.monotonic()
        while rest:
            rest = rest[os.write(self.child.child_fd, rest) :]
        return at

    def enter(self, line: str) -> None:
        """Type *line* and, once it is there, Enter."""
        self.send(line)
        self.until(lambda: self.typed.endswith(line[-10:].rstrip()), f"{line!r} typed")
        self.send("\r")

    def until(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait until *condition* holds of the screen."""
        with self.news:
            held = self.news.wait_for(lambda: condition() or self.over, seconds) and condition()
            shown = self.text if not held else ""
        assert held, f"never: {what}; the screen says:\n{shown}"

    def see(self, words: str, seconds: float = PATIENCE) -> None:
        self.until(lambda: words in self.text, f"{words!r}", seconds)

    def gone(self, words: str) -> None:
        """Wait until *words* are not on the screen any more."""
        self.until(lambda: words not in "\n".join(self.lines), f"no {words!r}")

    def idle(self) -> None:
        """Wait until no run is going and nothing is typed."""
        self.until(
            lambda: self.typed in (">", "plan >") and not self._is_busy(),
            "an idle prompt",
        )

    def settle_question(self, asked: str) -> None:
        """Wait until *asked* was on the screen for long enough to be answered."""
        self.until(lambda: asked in self.text and self._is_asked(), f"{asked!r}")
        seen = time.monotonic()
        with self.news:
            self.news.wait_for(lambda: time.monotonic() - seen >= SETTLED, SETTLED)

    def _is_asked(self) -> bool:
        return any(line.endswith(("n no", "n because … to say why:")) for line in self.lines)

    def begins_anew(self) -> bool:
        """End the session and forget what was seen; return whether that went well."""
        if self.over:
            return False
        self.resize(100, 30)
        self.send(f"{ESC}")
        with self.news:
            rests = self.news.wait_for(lambda: self.over or self._rests(), 5.0) and not self.over
        if not rests:
            return False
        self.send("\x15")
        self.idle()
        said = self.text.count(AUTO)
        self.enter("/model auto")
        self.until(lambda: self.text.count(AUTO) > said, "no model")
        self.idle()
        self.enter("/clear")
        self.until(lambda: AUTO not in "\n".join(self.lines), "cleared")
        self.idle()
        with self.news:
            self.pieces.clear()
            self.screen.history.top.clear()
            self._above.clear()
        return True

    def _rests(self) -> bool:
        at_prompt = self.typed.startswith("> ") or self.typed == ">"
        return at_prompt and not self._is_busy()

    def _is_busy(self) -> bool:
        return "Esc stops" in "\n".join(self.lines) or self._is_asked()

    def say(self, prompt: str, answer: str) -> None:
        """Send *prompt* and wait for *answer*."""
        self.enter(prompt)
        self.see(answer)
        self.idle()

    def resize(self, columns: int, rows: int) -> None:
        with self.news:
            self.screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def wait(self) -> int:
        """Return the exit code."""
        self.until(lambda: self.over, "the end")
        self._reader.join(PATIENCE)
        self.child.wait()
        return self.child.exitstatus if self.child.exitstatus is not None else -1

    def kill(self) -> None:
        self.child.kill(signal.SIGKILL)


@contextmanager
def seat(
    house: House, *words: str, columns: int = 100, rows: int = 30, **variables: str
) -> Iterator[Seat]:
    """Lend a place in *house*; the command is gone afterwards."""
    environment = {**house.environment, "TERM": "xterm-256color", **variables}
    command = smista(*words)
    child = pexpect.spawn(
        command[0],
        command[1:],
        cwd=str(house.project),
        env=environment,
        dimensions=(rows, columns),
        timeout=None,
    )
    child.ptyproc.delayafterterminate = 0.01
    place = Seat(child, pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5))
    try:
        place.see(PROMPT.rstrip())
        yield place
    finally:
        child.kill(signal.SIGKILL)
        place.until(lambda: place.over, "the end")
        child.close(force=True)
