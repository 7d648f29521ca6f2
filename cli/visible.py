"""Text of others, made harmless for a terminal: what could steer it or hide is shown instead.

Everything that is printed goes through here; a test sees to it.
"""

import re
import sys
from typing import Any, Final, TextIO, cast

import asyncclick as click

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Return *text* with control, bidirectional, zero-width and tag characters made visible.

    Newline and tab stay; a carriage return right before a newline is dropped.
    """
    return _UNSAFE.sub(_picture, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """Return *text* on one line: newlines and tabs are shown as well."""
    return visible(text).replace("\n", "␊").replace("\t", "␉")


def echo(text: str, *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print *text*, whoever wrote it, in the given *style*.

    What a program reads from stdout is given to it as it is.
    """
    stdout = cast("TextIO | None", sys.stdout)
    watched = err or (stdout is not None and stdout.isatty())
    harmless = visible(text) if watched else text
    click.echo(click.style(harmless, **style) if style else harmless, err=err, nl=nl)


def echo_styled(text: str, *, nl: bool = True) -> None:
    """Print *text*, which is harmless already and carries styles of ours, on stderr."""
    click.echo(text, err=True, nl=nl)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
