"""The words of a prompt, from the command line and from a pipe."""

import os
import sys
from functools import partial
from typing import Final, NamedTuple, TextIO, cast

import trio

from cli.failures import BadUsage
from cli.visible import echo

PATIENCE: Final = 3.0
"""Seconds after which a pipe that does not end is worth a word."""


class Said(NamedTuple):
    """A prompt, and the part of it that came out of a pipe: whoever filled that wrote it."""

    text: str
    piped: str


async def whole_prompt(words: tuple[str, ...], *, needed: bool = True) -> Said:
    """Return the words, what is piped in after them, and that part alone. Raises BadUsage.

    Where a prompt is not *needed*, it may be empty.
    """
    piped = await _piped()
    prompt = "\n\n".join(part for part in (" ".join(words).strip(), piped.strip()) if part)
    if needed and not prompt:
        raise BadUsage('there is no prompt; write: smista "your task", or see smista --help')
    if any("\ud800" <= char <= "\udfff" for char in prompt):
        raise BadUsage("the prompt is not valid text in the encoding of this terminal")
    return Said(prompt, piped)


async def _piped() -> str:
    stdin = cast("TextIO | None", sys.stdin)  # None where a service was given none
    if stdin is None or stdin.isatty():
        return ""
    # A pipe that never ends must not keep us from leaving.
    read = partial(_read_all, stdin.fileno())
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_hint)
            content = await trio.to_thread.run_sync(read, abandon_on_cancel=True)
            nursery.cancel_scope.cancel()
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadUsage("what was piped in is not UTF-8 text") from error


async def _hint() -> None:
    await trio.sleep(PATIENCE)
    echo("waiting for the end of stdin; to send no more: smista … </dev/null", err=True, dim=True)


def _read_all(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    while piece := os.read(descriptor, 65_536):
        pieces.append(piece)
    return b"".join(pieces)
