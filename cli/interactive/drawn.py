"""A screen whose prompt is drawn by a thread of its own, beside the session's.

Two doors, both one way and never waiting: what the person did enters the session's loop by its
token, what is to be shown enters the drawing loop by its own. Neither side touches the other's.
"""

import signal
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

from cli.approvals import Answer
from cli.interactive.drawing import Pen
from cli.interactive.keys import bindings
from cli.interactive.screen import Asked, Input
from cli.interactive.window import LIVE_ROWS, Face, Setup

BACKLOG: Final = 128 * 1024
"""Characters that may wait for the terminal before whoever brings more has to wait."""

INPUTS: Final = 1_000
_LEAVING: Final = 2.0
_SWITCH: Final = 0.001
_LIVE_MOST: Final = LIVE_ROWS * 1_000


class DrawnScreen:
    """The session's side of the two doors. Made by `open_drawn`."""

    draws = True

    def __init__(self, pen: Pen) -> None:
        self.pen = pen
        self._token = trio.lowlevel.current_trio_token()
        self._send, self._receive = trio.open_memory_channel[Input](INPUTS)
        self._answers: dict[int, trio.Event] = {}
        self._said: dict[int, Answer | int | None] = {}
        self._tickets = 0
        self._one_question = trio.Lock()
        self._lock = threading.Lock()
        self._backlog: deque[tuple[int | None, str, str | None]] = deque()
        self._waiting = 0
        self._room = trio.Event()
        self._live: tuple[str, int] | None = None
        self._face: Face | None = None

    @property
    def inputs(self) -> trio.MemoryReceiveChannel[Input]:
        return self._receive

    @property
    def width(self) -> int:
        return self._drawn.app.output.get_size().columns

    @property
    def _drawn(self) -> Face:
        if self._face is None:
            raise RuntimeError("the terminal is not open")
        return self._face

    def open_face(self, setup: Setup) -> Face:
        self._face = Face(setup, keys=bindings, post=self._post, answered=self._answered)
        self._completer = setup.completer
        return self._face

    # From the session to the terminal.

    def put(self, text: str, *, run: int | None = None, live: str | None = None) -> None:
        with self._lock:
            first = not self._backlog
            self._backlog.append((run, text, live))
            self._waiting += len(text)
        if first:
            self.call(self._flush)

    def live(self, text: str, *, run: int) -> None:
        with self._lock:
            first, self._live = self._live is None, (text[-_LIVE_MOST:], run)
        if first:
            self.call(self._flush_live)

    def status(self, forms: Sequence[str]) -> None:
        self.call(partial(self._drawn.show_status, tuple(forms)))

    def begin(self, run: int) -> None:
        self.call(partial(self._drawn.begin, run))

    def end(self, run: int) -> None:
        self.call(partial(self._drawn.end, run))

    def mode(self, mark: str) -> None:
        self.call(partial(self._drawn.set_mark, mark))

    def ready(self) -> None:
        """Nothing is to be said: the prompt is on the screen."""

    def put_back(self, text: str) -> None:
        self.call(partial(self._drawn.put_back, text))

    def clear(self) -> None:
        self.call(self._drawn.clear)

    def resize(self) -> None:
        self.call(self._drawn.resize)

    def know(self, command: str, words: Sequence[str]) -> None:
        self._completer.arguments[command] = tuple(words)

    def leave(self) -> None:
        self.call(self._drawn.leave)

    async def ask(self, asked: Asked) -> Answer:
        async with self._one_question:
            said = await self._wait_answer(lambda ticket: self._drawn.ask(ticket, asked))
        answer = said if isinstance(said, Answer) else Answer(approved=False)
        # The question goes from the screen; what was said to it stays in the record.
        self.put(self.pen.dim(_recorded(asked.asked, answer)))
        return answer

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        async with self._one_question:
            said = await self._wait_answer(
                lambda ticket: self._drawn.choose(ticket, title, options)
            )
        return said if isinstance(said, int) else None

    async def wait_room(self) -> None:
        while self._waiting > BACKLOG:
            self._room = trio.Event()
            await self._room.wait()

    def call(self, function: Callable[[], None]) -> None:
        """Let the drawing thread call *function*; nothing happens once it has ended."""
        app = self._drawn.app
        loop, context = app.loop, app.context
        if loop is None or context is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(function, context=context.copy())

    async def _wait_answer(self, show: Callable[[int], None]) -> Answer | int | None:
        self._tickets += 1
        ticket = self._tickets
        self._answers[ticket] = trio.Event()
        self.call(self._flush)
        self.call(partial(show, ticket))
        try:
            await self._answers[ticket].wait()
        finally:
            del self._answers[ticket]
            self.call(partial(self._drawn.withdraw, ticket))
        return self._said.pop(ticket, None)

    # From the terminal to the session; called in the drawing thread.

    def _post(self, what: Input) -> None:
        self._enter(partial(self._send.send_nowait, what))

    def _answered(self, ticket: int, said: Answer | int | None) -> None:
        self._enter(partial(self._take, ticket, said))

    def _take(self, ticket: int, said: Answer | int | None) -> None:
        if ticket in self._answers:
            self._said[ticket] = said
            self._answers[ticket].set()

    def _enter(self, function: Callable[[], None]) -> None:
        self._token.run_sync_soon(function)

    def _flush(self) -> None:
        with self._lock:
            pieces, self._backlog = self._backlog, deque()
            waited, self._waiting = self._waiting, 0
        muted = self._drawn.muted
        wanted = [piece for piece in pieces if piece[0] is None or piece[0] != muted]
        lives = [live for _, _, live in wanted if live is not None]
        text = "".join(text for _, text, _ in wanted)
        if text:
            self._drawn.print(text, live=lives[-1] if lives else None)
        if waited > BACKLOG:
            self._enter(lambda: self._room.set())

    def _flush_live(self) -> None:
        with self._lock:
            live, self._live = self._live, None
        if live is not None:
            self._drawn.show_live(*live)


def _recorded(asked: str, answer: Answer) -> str:
    if answer.always:
        return f"{asked} yes, always in this session"
    question = f"{asked.partition('?')[0]}?"
    if answer.approved:
        return f"{question} yes"
    return f"{question} no: {answer.reason}" if answer.reason else f"{question} no"


@asynccontextmanager
async def open_drawn(setup: Setup) -> AsyncGenerator[DrawnScreen]:
    """Lend a screen that is drawn; the terminal is as it was before when this is left."""
    # Whoever draws should not wait for whoever reads: hand over sooner than Python does by itself.
    sys.setswitchinterval(_SWITCH)
    pen = Pen(colour=setup.colour, columns=lambda: setup.output.get_size().columns)
    screen = DrawnScreen(pen)
    face = screen.open_face(setup)
    ready, over = trio.Event(), trio.Event()
    token = trio.lowlevel.current_trio_token()

    async def draw() -> None:
        run = partial(face.run, lambda: token.run_sync_soon(ready.set))
        try:
            await trio.to_thread.run_sync(
                run, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
            )
        finally:
            over.set()
            ready.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(draw)
        nursery.start_soon(_follow_size, screen)
        await ready.wait()
        try:
            yield screen
        finally:
            screen.leave()
            # A terminal that takes nothing any more does not keep us here.
            with trio.move_on_after(_LEAVING, shield=True):
                await over.wait()
            nursery.cancel_scope.cancel(reason="the session is over")


async def _follow_size(screen: DrawnScreen) -> None:
    # prompt_toolkit hears of a new size at once only in the main thread.
    with trio.open_signal_receiver(signal.SIGWINCH) as signals:
        async for _ in signals:
            screen.resize()
