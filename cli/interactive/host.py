"""The person at the prompt and their machine, as a run sees them."""

from collections.abc import Iterator, Mapping
from typing import Final

import trio
from prompt_toolkit.utils import get_cwidth

from cli.approvals import Answer
from cli.copies import Copies
from cli.interactive.gauge import Gauge
from cli.interactive.rows import cells
from cli.interactive.screen import Asked, Row, Screen
from cli.interactive.telling import Telling
from cli.machine import Machine
from cli.questions import Question, question_of
from cli.render import render
from cli.surroundings import Surroundings
from cli.veil import Veil
from cli.visible import visible, visible_line
from smista.core.events import (
    Event,
    ReasoningDeltaEvent,
    Status,
    TextDeltaEvent,
    ToolCallStarted,
    ToolRequest,
    TurnEnd,
    UsageEvent,
)
from smista.core.messages import ApprovalDecision, ToolResultEntry
from smista.core.policy import ToolsConfig
from smista.core.privacy import Guard
from smista.sdk.pauses import Approval

_MARGIN: Final = 4
"""Columns left of the rows of a question, and of the mark of those that go on."""

_TAB: Final = 4

_OVER: Final = frozenset({Status.COMPLETED, Status.IDLE, Status.ERROR})


class PromptHost:
    """Shows what a run says above the prompt, and asks at it. Lives as long as its session."""

    def __init__(
        self,
        here: Surroundings,
        tools: ToolsConfig,
        screen: Screen,
        telling: Telling,
        gauge: Gauge,
        *,
        yes: bool,
        hidden: Veil,
        guard: Guard | None,
        copies: Copies | None,
    ) -> None:
        self._screen = screen
        self._telling = telling
        self._gauge = gauge
        self._output = ""
        self._machine = Machine(
            here, tools, self, yes=yes, hidden=hidden, guard=guard, copies=copies
        )
        self._first_word = trio.Event()

    @property
    def heard(self) -> bool:
        """Whether the router said something in the newest run."""
        return self._first_word.is_set()

    def begin_run(self, first_word: trio.Event) -> None:
        """Begin anew; *first_word* is set as soon as the router says something."""
        self._first_word = first_word

    async def begin(self, session_id: str) -> None:
        """Keep from here on what the machine keeps of a session."""
        await self._machine.begin(session_id)

    def carries(self, sizes: Mapping[str, int]) -> None:
        """Know the bytes of what the next request carries, by path."""
        self._machine.sizes.update(sizes)

    async def show(self, event: Event) -> None:
        self._first_word.set()
        match event:
            case TextDeltaEvent(delta):
                self._telling.text(delta)
            case ReasoningDeltaEvent(delta):
                self._telling.think(delta)
            case ToolCallStarted(name=name):
                self._gauge.calls(name)
            case UsageEvent(usage):
                self._gauge.used(usage)
            case TurnEnd():
                await self._turned(event)
            case _:
                pass
        await self._screen.wait_room()

    async def run_tools(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolResultEntry, ...]:
        try:
            return await self._machine.run(requests)
        finally:
            self._end_output()

    async def decide(self, approval: Approval) -> ApprovalDecision:
        question = question_of(approval, self._machine.sizes)
        answer = await self._answer(question, as_markdown=approval.kind == "plan", always=False)
        self._machine.refused_last = not answer.approved
        return ApprovalDecision(
            approval_id=approval.approval_id,
            decision="approved" if answer.approved else "rejected",
            reason=answer.reason,
        )

    def say(self, line: str) -> None:
        self._end_output()
        self._telling.end()
        self._screen.put(self._screen.pen.dim(line))

    def put(self, title: str, shown: str) -> None:
        self._end_output()
        self._telling.end()
        rows = "".join(row.text for row in rows_of(shown, self._screen))
        self._screen.put(self._screen.pen.title(title) + rows)

    def output(self, text: str) -> None:
        """Show the whole lines of what a command says; of a line that is written over, the end."""
        *lines, self._output = (self._output + text.replace("\r\n", "\n")).split("\n")
        shown = "".join(self._screen.pen.output(line.rpartition("\r")[2]) for line in lines)
        if shown:
            self._screen.put(shown)

    async def ask(self, question: Question, *, always: bool = False) -> Answer:
        return await self._answer(question, as_markdown=False, always=always)

    async def _answer(self, question: Question, *, as_markdown: bool, always: bool) -> Answer:
        self._end_output()
        self._telling.end()
        return await self._screen.ask(
            Asked(
                title=self._screen.pen.title(question.title),
                rows=rows_of(question.shown, self._screen, as_markdown=as_markdown),
                asked=visible_line(question.asked),
                always=always,
                told=True,
            )
        )

    async def _turned(self, turn: TurnEnd) -> None:
        self._telling.end()
        self._gauge.turned(turn.data)
        # That a run was stopped is said once it is over, whatever it was doing.
        if (aside := render(turn).aside) and turn.status is not Status.IDLE:
            self.say(aside)
        if turn.status in _OVER:
            await self._machine.end_run()

    def _end_output(self) -> None:
        if self._output:
            self.output("\n")


def rows_of(shown: str, screen: Screen, *, as_markdown: bool = False) -> tuple[Row, ...]:
    """Return all of *shown*, harmless, with the room that each line takes."""
    if not shown:
        return ()
    if as_markdown and screen.draws:
        drawn = screen.pen.markdown(shown, screen.width).rstrip("\n")
        return tuple(Row(text=f"{line}\n", width=screen.width) for line in drawn.split("\n"))
    lines = visible(shown).removesuffix("\n").split("\n")
    if not screen.draws:
        return tuple(Row(text=screen.pen.diff(line)) for line in lines)
    return tuple(row for line in lines for row in _rows(line, screen))


def _rows(line: str, screen: Screen) -> Iterator[Row]:
    """Yield the rows of one line. What goes on is marked: it must not look like a line itself."""
    room = max(screen.width - _MARGIN, 1)
    for number, piece in enumerate(cells(line.expandtabs(_TAB), room, by_words=True)):
        shown = screen.pen.diff_row(piece, of=line, goes_on=number > 0)
        yield Row(text=shown, width=get_cwidth(piece) + _MARGIN)
