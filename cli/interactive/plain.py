"""A screen of lines: nothing is drawn, moved or coloured. For screen readers and dumb terminals.

The terminal's own line editing is used. Questions and lists are lines, answered by lines.
"""

import os
import select
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from cli.approvals import Answer, understand
from cli.interactive.drawing import Pen
from cli.interactive.screen import Asked, Entered, Input, Leave, Stop
from cli.visible import echo

_MOST: Final = 64 * 1024
_TWICE: Final = 2.0


class PlainPen(Pen):
    """Marks nothing; a no colour of no kind."""

    def __init__(self) -> None:
        super().__init__(colour=False)

    def warm_up(self) -> None:
        """Draw nothing, so import nothing."""

    def prompt(self, text: str, mark: str) -> str:
        """Return nothing: the terminal has shown what was typed."""
        return ""

    def styled(self, harmless: str, code: str) -> str:
        return harmless


class PlainScreen:
    """Made by `open_plain`."""

    draws = False

    def __init__(self) -> None:
        self.pen: Pen = PlainPen()
        self._send, self._receive = trio.open_memory_channel[Input](1_000)
        self._mark = "> "
        self._answer: trio.MemorySendChannel[str] | None = None
        self._running = 0
        self._muted = 0
        self._stopped_at = float("-inf")
        self._kept = ""
        self._stale = False
        self._one_question = trio.Lock()

    @property
    def inputs(self) -> trio.MemoryReceiveChannel[Input]:
        return self._receive

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    def put(self, text: str, *, run: int | None = None, live: str | None = None) -> None:
        if run is None or run != self._muted:
            echo(text, nl=False)
            sys.stdout.flush()

    def live(self, text: str, *, run: int) -> None:
        """Show nothing: what is not finished is read when it is."""

    def status(self, forms: Sequence[str]) -> None:
        """Show nothing: what was decided is said below the answer."""

    def begin(self, run: int) -> None:
        self._running = run

    def end(self, run: int) -> None:
        self._running, self._muted = 0, 0
        self.ready()

    def mode(self, mark: str) -> None:
        self._mark = mark
        self.ready()

    def ready(self) -> None:
        """Say that a line is awaited."""
        if not self._running:
            self.put(self._mark)

    def put_back(self, text: str) -> None:
        self.put(f"not sent, write it again: {self.pen.plain(text)}")

    def clear(self) -> None:
        """Leave what was said: a reader has heard it."""

    def know(self, command: str, words: Sequence[str]) -> None:
        """Offer nothing: lines are not completed."""

    async def wait_room(self) -> None:
        await trio.lowlevel.checkpoint()

    async def ask(self, asked: Asked) -> Answer:
        async with self._one_question:
            return await self._ask(asked)

    def _note_what_is_typed(self) -> None:
        # What was typed before the question does not answer it; it is taken as what it is.
        self._stale = bool(select.select([sys.stdin.fileno()], [], [], 0)[0])

    async def _ask(self, asked: Asked) -> Answer:
        self._note_what_is_typed()
        self.put(asked.title + "".join(row.text for row in asked.rows))
        always = ", a for always in this session" if asked.always else ""
        why = ", n because … to say why" if asked.told else ""
        self.put(f"{asked.asked} y for yes{always}, n for no{why}: ")
        return understand(await self._next_line(), always=asked.always)

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        async with self._one_question:
            return await self._choose(title, options)

    async def _choose(self, title: str, options: Sequence[str]) -> int | None:
        self._note_what_is_typed()
        lines = "".join(f"{number}: {option}\n" for number, option in enumerate(options, 1))
        self.put(f"{title}\n{lines}a number, or Enter for none: ")
        said = (await self._next_line()).strip()
        return int(said) - 1 if said.isdecimal() and 0 < int(said) <= len(options) else None

    async def _next_line(self) -> str:
        send, receive = trio.open_memory_channel[str](1)
        self._answer = send
        try:
            return await receive.receive()
        finally:
            self._answer = None

    async def read(self) -> None:
        """Take lines until the end of the input."""
        while text := await _lines():
            self._take(text.removesuffix("\n"))
        self._send.send_nowait(Leave())

    async def heed(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take Ctrl-C as what it is: stop, and at the second time leave."""
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            task_status.started()
            async for _ in signals:
                self._interrupt()

    def _interrupt(self) -> None:
        now = trio.current_time()
        if now - self._stopped_at < _TWICE:
            self._send.send_nowait(Leave())
            return
        self._stopped_at = now
        self._kept = ""
        self.put("\n")
        if self._running:
            self._muted = self._running
            self._send.send_nowait(Stop())
        self.put("Ctrl-C again leaves, and so does Ctrl-D\n")
        self.ready()

    def _take(self, text: str) -> None:
        self._stopped_at = float("-inf")
        stale, self._stale = self._stale, False
        if self._answer is not None and not stale:
            self._answer.send_nowait(text)
        elif text.endswith("\\"):
            self._kept += text[:-1] + "\n"
        elif (self._kept + text).strip():
            whole, self._kept = self._kept + text, ""
            # Several lines at once were not typed.
            pasted = (text,) if "\n" in text else ()
            self._send.send_nowait(Entered(text=whole, pasted=pasted))
        else:
            self.ready()


async def _lines() -> str:
    """Return the next line, with all that came together with it; "" at the end."""
    descriptor = sys.stdin.fileno()
    pieces = b""
    while not pieces or select.select([descriptor], [], [], 0)[0]:
        await trio.lowlevel.wait_readable(descriptor)
        piece = os.read(descriptor, _MOST)
        pieces += piece
        if not piece:
            break
    return pieces.decode(errors="replace")


@asynccontextmanager
async def open_plain() -> AsyncGenerator[PlainScreen]:
    screen = PlainScreen()
    async with trio.open_nursery() as nursery:
        await nursery.start(screen.heed)
        nursery.start_soon(screen.read)
        screen.ready()
        yield screen
        nursery.cancel_scope.cancel(reason="the session is over")
