"""What a session needs of a terminal, whether lines are drawn on it or only printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

from cli.approvals import Answer
from cli.interactive.drawing import Pen


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A line or more that the person sent. *pasted*: what of it came from a paste."""

    text: str
    pasted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """The person wants the run to end. What it said is not shown any more."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The person wants to go."""


Input = Entered | Stop | Leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A harmless line with styles of ours, and the cells that it takes at most."""

    text: str
    width: int = 0

    def height(self, columns: int) -> int:
        """Return the rows that it takes in a terminal of *columns*."""
        return max(1, -(-self.width // max(columns, 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question: *rows* are all that the answer is about, *asked* ends in a question mark.

    *title* and *asked* are harmless. *always* offers to say yes for the rest of the session.
    *told*: a model waits for the answer and is told why it is no.
    """

    title: str
    rows: tuple[Row, ...]
    asked: str
    always: bool = False
    told: bool = False


class Screen(Protocol):
    """Where a session is shown. All texts given to it are harmless and end in a newline."""

    pen: Pen

    @property
    def inputs(self) -> trio.MemoryReceiveChannel[Input]: ...

    @property
    def width(self) -> int: ...

    @property
    def draws(self) -> bool:
        """Say if Markdown is drawn; where not, an answer is printed as it was written."""
        ...

    def put(self, text: str, *, run: int | None = None, live: str | None = None) -> None:
        """Show *text* for good. What belongs to a *run* that was stopped is dropped.

        *live*: what takes the place of the text that was shown for now, in the same moment.
        """
        ...

    def live(self, text: str, *, run: int) -> None:
        """Show *text*, of any length, until something else takes its place."""
        ...

    def status(self, forms: Sequence[str]) -> None:
        """Show the first of *forms*, which say the same ever shorter, that there is room for."""
        ...

    def begin(self, run: int) -> None:
        """From now on Esc stops *run*."""
        ...

    def end(self, run: int) -> None: ...

    def mode(self, mark: str) -> None:
        """Put *mark* before what is typed."""
        ...

    def ready(self) -> None:
        """Say that a line is awaited, where nothing on the screen does."""
        ...

    async def ask(self, asked: Asked) -> Answer: ...

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        """Return the number of the option that was chosen, None if the list was closed."""
        ...

    def put_back(self, text: str) -> None:
        """Give a text that could not be sent back to the person, before what is typed by now."""
        ...

    def clear(self) -> None: ...

    def know(self, command: str, words: Sequence[str]) -> None:
        """Offer *words* after *command*."""
        ...

    async def wait_room(self) -> None:
        """Return once what was put before is on its way to the terminal, or nearly."""
        ...
