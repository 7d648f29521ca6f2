"""What a command says while it runs, for the screen: so much at once, and so often a second.

Whatever comes faster is passed over, and that is said. The model's copy is kept elsewhere.
"""

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import trio

Output = Callable[[str], None]
"""Takes a piece of text, for the screen."""

MAX_SHOWN: Final = 4096
"""Characters of one piece; of more, the newest."""
PAUSE: Final = 0.05
"""Seconds between two pieces."""


@dataclass(slots=True)
class Watching:
    """Collects bytes and gives them to *output* as text, at a pace a person can follow."""

    output: Output
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _waiting: str = ""
    _passed_over: int = 0
    _new: trio.Event = field(default_factory=trio.Event)

    def take(self, piece: bytes) -> None:
        text = self._waiting + self._decoder.decode(piece)
        self._passed_over += max(0, len(text) - MAX_SHOWN)
        self._waiting = text[-MAX_SHOWN:]
        self._new.set()

    async def show(self) -> None:
        """Hand over what came in until cancelled."""
        while True:
            await self._new.wait()
            self._new = trio.Event()
            self.flush()
            await trio.sleep(PAUSE)

    def flush(self) -> None:
        if self._passed_over:
            self.output(f"\n[{self._passed_over} characters not shown]\n")
        if self._waiting:
            self.output(self._waiting)
        self._waiting, self._passed_over = "", 0
