"""Questions to the person at the terminal. Enter alone is no; without a terminal all is no."""

import os
import re
import sys
import termios
from dataclasses import dataclass
from typing import Final, TextIO, cast

import asyncclick as click
import trio

from cli.visible import echo, visible, visible_line

_YES: Final = frozenset({"y", "yes"})
_ALWAYS: Final = frozenset({"a", "always"})
_NO_BECAUSE: Final = re.compile(r"no?[\s,:;.-]+(because\b[\s,:]*)?(?P<why>\S.*)", re.I | re.S)
_MOST: Final = 4096
"""Bytes that a terminal hands over at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """*reason* is why not, in the person's words; *always*: do not ask again for such a thing."""

    approved: bool
    always: bool = False
    reason: str | None = None


def understand(typed: str, *, always: bool = False) -> Answer:
    """Return what *typed* means. Pure. Only a clear yes is one; "n" may be followed by why."""
    word = typed.strip().lower()
    if word in _YES:
        return Answer(approved=True)
    if always and word in _ALWAYS:
        return Answer(approved=True, always=True)
    said = _NO_BECAUSE.fullmatch(typed.strip())
    return Answer(approved=False, reason=said["why"].strip() if said else None)


class Terminal:
    """Where a question can be put and answered. Made by `open_terminal`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def ask(self, question: str) -> bool:
        """Return whether the person said yes."""
        return (await self.answer(question)).approved

    async def answer(self, question: str, *, always: bool = False) -> Answer:
        """Return what the person said; *always* offers to say yes for the rest of this run."""
        # Keys typed before the question was on screen must not answer it; forgotten afterwards,
        # the answer of a quick reader would be lost.
        termios.tcflush(self._descriptor, termios.TCIFLUSH)
        choices = "[y/N] (a = always in this run; n because … = no, and why) "
        line = f"{visible_line(question)} {choices if always else '[y/N] '}"
        echo(line, nl=False, err=True)
        await trio.lowlevel.wait_readable(self._descriptor)
        typed = os.read(self._descriptor, _MOST).decode(errors="replace")
        if not typed.endswith("\n"):
            echo("", err=True)
        return understand(typed, always=always)


def open_terminal() -> Terminal | None:
    """Return the terminal of this process, or None if nobody can see and answer."""
    stdin, stderr = cast("TextIO | None", sys.stdin), cast("TextIO | None", sys.stderr)
    if stderr is None or not stderr.isatty():
        return None
    if stdin is not None and stdin.isatty():
        return Terminal(stdin.fileno())
    try:
        return Terminal(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return None


def present(title: str, shown: str) -> str:
    """Return all of a change or command as it is put before the person. Pure."""
    body = "".join(f"  {_colour(line)}\n" for line in visible(shown).splitlines())
    return f"{click.style(visible_line(title), bold=True)}\n{body}"


def _colour(line: str) -> str:
    match line[:1]:
        case "+":
            return click.style(line, fg="green")
        case "-":
            return click.style(line, fg="red")
        case "@":
            return click.style(line, fg="cyan")
        case _:
            return line
