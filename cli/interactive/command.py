"""`smista` without words at a terminal: the interactive session."""

import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

import asyncclick as click
import trio

from cli.configuration import configured
from cli.interactive.history import load_history
from cli.interactive.opening import INTERACTIVE
from cli.interactive.screen import Screen
from cli.surroundings import Surroundings

ESCAPE_MS: Final = "SMISTA_ESCAPE_MS"
_ESCAPE_MS: Final = 20
_SLOWEST_MS: Final = 500
_DUMB: Final = frozenset({"", "dumb", "unknown"})


@click.command(INTERACTIVE, hidden=True)
@click.option("--plain", is_flag=True, help="Print lines only; draw and move nothing.")
@click.pass_obj
async def open_session(here: Surroundings, plain: bool) -> None:
    """Open the interactive session."""
    await configured(here)  # a project's own policy is asked about before anything is drawn
    async with _open_screen(here, plain=plain) as screen:
        await _talk(here, screen)


async def _talk(here: Surroundings, screen: Screen) -> None:
    # Imported late, so that the prompt is there before what only the first answer needs.
    from cli.interactive.line import RouterLine
    from cli.interactive.talk import Talk

    line = RouterLine(here)
    try:
        await Talk(here, screen, line).serve()
    finally:
        with trio.move_on_after(1.0, shield=True):
            await line.close()


def _open_screen(here: Surroundings, *, plain: bool) -> AbstractAsyncContextManager[Screen]:
    if plain or here.environ.get("TERM", "") in _DUMB:
        from cli.interactive.plain import open_plain

        return open_plain()
    from cli.interactive.completion import PromptCompleter
    from cli.interactive.drawn import open_drawn
    from cli.interactive.one_write import OneWrite
    from cli.interactive.window import Setup

    output = OneWrite(sys.stdout, term=here.environ.get("TERM"))
    return open_drawn(
        Setup(
            output=output,
            completer=PromptCompleter(here.start),
            prompts=load_history(here),
            colour=not here.environ.get("NO_COLOR"),
            escape=escape_seconds(here.environ),
        )
    )


def escape_seconds(environ: Mapping[str, str]) -> float:
    """Return how long an Esc may turn out to be the beginning of another key."""
    given = environ.get(ESCAPE_MS, "")
    milliseconds = int(given) if given.isascii() and given.isdecimal() else _ESCAPE_MS
    return min(max(milliseconds, 1), _SLOWEST_MS) / 1000
