"""When a command line without words opens the interactive session. Imports next to nothing."""

import sys
from collections.abc import Sequence
from typing import Final, TextIO, cast

from cli.arguments import PROMPT

INTERACTIVE: Final = "open-session"
"""The command that a person at a terminal means who gives none. Nobody types its name."""

_FLAGS: Final = frozenset({"--plain"})


def opening(words: Sequence[str]) -> list[str]:
    """Return *words* with the session in the place of a prompt that has none, at a terminal."""
    if PROMPT not in words:
        return list(words)
    at = words.index(PROMPT)
    if not set(words[at + 1 :]) <= _FLAGS or not _at_terminal():
        return list(words)
    return [*words[:at], INTERACTIVE, *words[at + 1 :]]


def _at_terminal() -> bool:
    streams = (cast("TextIO | None", sys.stdin), cast("TextIO | None", sys.stdout))
    return all(stream is not None and stream.isatty() for stream in streams)
