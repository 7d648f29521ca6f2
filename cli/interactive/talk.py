"""One person, one terminal, one session after the other: what is typed becomes runs and commands.

One task reads what the person does and never waits; whatever takes time is a task beside it. At
most one run goes on; what is typed during it is told to the model.
"""

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from cli.failures import exit_code, explanation, leaves
from cli.interactive.gauge import Gauge
from cli.interactive.line import RouterLine
from cli.interactive.runs import Conversation, Runs, Setting, shortened
from cli.interactive.screen import Entered, Leave, Screen, Stop
from cli.interactive.slash import Desk
from cli.interactive.telling import Telling
from cli.interactive.words import Slash, Unknown, understand_line
from cli.surroundings import Surroundings
from cli.visible import visible_line


class Talk:
    """What goes on at one terminal. *serve* reads until the person leaves."""

    def __init__(self, here: Surroundings, screen: Screen, line: RouterLine) -> None:
        gauge = Gauge(screen)
        telling = Telling(screen)
        setting = Setting()
        self._screen = screen
        self._telling = telling
        self._conversation = Conversation(here, screen, line, gauge, telling, setting)
        self._runs = Runs(self._conversation)
        self._desk = Desk(self._conversation, self._runs)
        self._waiting: deque[Entered] = deque()
        self._told: deque[Entered] = deque()
        self._tells = False
        self._stops = 0
        self._busy = False
        self._number = 0
        self._command = trio.CancelScope()

    async def serve(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, self._screen.pen.warm_up)
            async for said in self._screen.inputs:
                match said:
                    case Leave():
                        break
                    case Stop():
                        self._stop(nursery)
                    case Entered():
                        self._hear(said, nursery)
            nursery.cancel_scope.cancel(reason="the person left")

    def _hear(self, said: Entered, nursery: trio.Nursery) -> None:
        match understand_line(said.text):
            case Unknown(word=word, meant=meant):
                hint = f"; did you mean /{meant}?" if meant else "; /help lists them"
                self._say_fault(visible_line(f"there is no command /{word}{hint}"))
                self._screen.put_back(said.text)
                self._screen.ready()
            case Slash() as slash if slash.command.name == "quit":
                nursery.cancel_scope.cancel(reason="the person left")
            case Slash() as slash if slash.command.anytime:
                self._record(said)
                nursery.start_soon(self._do_beside, slash)
            case Slash() as slash if self._runs.going:
                self._say_fault(f"/{slash.command.name} has to wait for the end of the run")
                self._screen.put_back(said.text)
            case None if self._runs.begun:
                self._told.append(said)
                if not self._tells:
                    self._tells = True
                    nursery.start_soon(self._tell, nursery)
            case _ if self._busy:
                self._waiting.append(said)
            case Slash() as slash:
                self._record(said)
                self._begin(nursery, slash)
            case None:
                self._runs.begun = True
                self._begin(nursery, said)

    def _record(self, said: Entered) -> None:
        """Put the command above its answer, so that it is known what that answers."""
        self._screen.put(self._screen.pen.prompt(shortened(said.text), "> "))

    def _next(self, nursery: trio.Nursery) -> None:
        if self._waiting and not self._busy:
            self._hear(self._waiting.popleft(), nursery)

    def _begin(self, nursery: trio.Nursery, what: Slash | Entered) -> None:
        self._busy = True
        nursery.start_soon(self._occupied, what, nursery)

    async def _occupied(self, what: Slash | Entered, nursery: trio.Nursery) -> None:
        """Do what nothing else may go on beside of; Esc stops it."""
        self._number += 1
        number = self._number
        self._telling.begin(number)
        self._screen.begin(number)
        try:
            with trio.CancelScope() as self._command:
                if isinstance(what, Slash):
                    await self._do(what)
                else:
                    await self._prompt(what)
            if self._command.cancelled_caught:
                self._screen.put(self._screen.pen.dim("stopped"))
                if isinstance(what, Entered):
                    self._screen.put_back(what.text)
        finally:
            self._telling.end()
            self._screen.end(number)
            self._busy = self._runs.begun = False
            self._runs.settle()
        self._next(nursery)

    async def _do_beside(self, slash: Slash) -> None:
        await self._do(slash)
        self._screen.ready()

    async def _do(self, slash: Slash) -> None:
        async with self._told_of_faults():
            await self._desk.do(slash)

    async def _prompt(self, said: Entered) -> None:
        sent = False
        async with self._told_of_faults():
            await self._runs.prompt(said)
            sent = True
        if not sent and not self._runs.heard:
            self._screen.put_back(said.text)

    async def _tell(self, nursery: trio.Nursery) -> None:
        """Tell the run what was entered during it, one after the other as it was entered."""
        try:
            while self._told:
                await self._inject(self._told.popleft(), nursery)
        finally:
            self._tells = False

    async def _inject(self, said: Entered, nursery: trio.Nursery) -> None:
        stops, taken, over = self._stops, False, False
        async with self._told_of_faults():
            taken = await self._runs.inject(said.text)
            over = not taken
        if over and stops == self._stops:
            # The run had just ended: what was meant for it are the next prompts.
            self._waiting.extend((said, *self._told))
            self._told.clear()
            self._next(nursery)
        elif not taken:
            self._screen.put_back(said.text)

    def _stop(self, nursery: trio.Nursery) -> None:
        self._stops += 1
        self._give_back()
        if self._runs.going:
            self._telling.cut()
            nursery.start_soon(self._stop_run)
        elif self._busy:
            self._command.cancel(reason="the person stopped it")

    def _give_back(self) -> None:
        """Put what was entered but not begun into the prompt again: a stop is for all of it."""
        texts = [said.text for said in (*self._waiting, *self._told)]
        self._waiting.clear()
        self._told.clear()
        if texts:
            self._screen.put_back("\n".join(texts))

    async def _stop_run(self) -> None:
        async with self._told_of_faults():
            await self._runs.stop()

    @asynccontextmanager
    async def _told_of_faults(self) -> AsyncGenerator[None]:
        """Show a foreseen fault of the body and go on; the session outlives it."""
        try:
            yield
        except Exception as error:
            parts = leaves(error)
            if any(exit_code(part) is None for part in parts):
                raise
            for part in parts:
                self._say_fault(explanation(part))

    def _say_fault(self, text: str) -> None:
        self._screen.put(self._screen.pen.fault(text))
