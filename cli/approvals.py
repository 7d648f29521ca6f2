"""Questions to the person at the terminal. Enter alone is no; without a terminal all is no."""

import os
import sys
import termios
from typing import Final, TextIO, cast

import asyncclick as click
import trio

from cli.visible import echo, visible, visible_line

_YES: Final = frozenset({"y", "yes"})


class Terminal:
    """Where a question can be put and answered. Made by `open_terminal`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def ask(self, question: str) -> bool:
        """Return whether the person said yes."""
        # Keys typed before the question was on screen must not answer it; forgotten afterwards,
        # the answer of a quick reader would be lost.
        termios.tcflush(self._descriptor, termios.TCIFLUSH)
        echo(f"{question} [y/N] ", nl=False, err=True)
        await trio.lowlevel.wait_readable(self._descriptor)
        answer = os.read(self._descriptor, 1024).decode(errors="replace")
        if not answer.endswith("\n"):
            echo("", err=True)
        return answer.strip().lower() in _YES


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
