"""What a model says, on its way to the screen: finished blocks for good, the rest for now."""

from typing import Final

from cli.interactive.blocks import Block, Blocks
from cli.interactive.screen import Screen
from cli.visible import visible

REASONING_KEPT: Final = 256 * 1024
"""Characters of the newest reasoning that can be unfolded."""

_LONG_LINE: Final = 4 * 1024
_LIVE: Final = 4 * 1024


class Telling:
    """One answer after the other; *reasoning* is what the model thought last, its end if long."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._blocks = Blocks()
        self._line = ""
        self._run = 0
        self._thought: list[str] = []
        self._thoughts = 0
        self.reasoning = ""

    def begin(self, run: int) -> None:
        self._run = run

    def text(self, delta: str) -> None:
        self._fold_reasoning()
        if not self._screen.draws:
            self._print_lines(delta)
            return
        done = self._drawn(self._blocks.feed(delta))
        rest = visible(self._blocks.rest[-_LIVE:])
        if done:
            self._put(done, live=rest)
        else:
            self._screen.live(rest, run=self._run)

    def think(self, delta: str) -> None:
        """Take a piece of reasoning; only its length is shown."""
        self._thought.append(delta)
        self._thoughts += len(delta)
        if len(self._thought) > 1_000:
            self._thought = ["".join(self._thought)[-REASONING_KEPT:]]
        self._screen.live(f"thinking, {self._thoughts:,} characters", run=self._run)

    def end(self) -> None:
        """Show for good what has come so far."""
        self._fold_reasoning()
        if self._line:
            self._put(self._screen.pen.plain(self._line))
            self._line = ""
        if done := self._drawn(self._blocks.finish()):
            self._put(done, live="")

    def cut(self) -> None:
        """Keep on the screen what was on it when the person stopped the run."""
        run, self._run = self._run, 0
        self.end()
        self._run = run

    def _fold_reasoning(self) -> None:
        if self._thoughts:
            self.reasoning = "".join(self._thought)[-REASONING_KEPT:]
            words = f"reasoning, {self._thoughts:,} characters; /reasoning shows it"
            self._thought, self._thoughts = [], 0
            self._put(self._screen.pen.dim(words), live="")

    def _print_lines(self, delta: str) -> None:
        *lines, self._line = (self._line + delta).split("\n")
        if len(self._line) > _LONG_LINE:
            lines, self._line = [*lines, self._line], ""
        for line in lines:
            self._put(self._screen.pen.plain(line))

    def _drawn(self, blocks: list[Block]) -> str:
        width = self._screen.width
        return "".join(self._screen.pen.block(block, width) for block in blocks)

    def _put(self, text: str, *, live: str | None = None) -> None:
        self._screen.put(text, run=self._run or None, live=live)
