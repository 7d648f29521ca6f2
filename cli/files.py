"""Text files of the project: read whole, compared, and replaced in one step."""

import os
import stat
from pathlib import Path
from typing import Final

from smista.local.paths import replacing, write_all

MAX_FILE: Final = 5 * 1024 * 1024
"""Bytes that a tool takes in or writes at once."""


class Unusable(Exception):
    """Something asked for cannot be done; the text tells whoever asked why."""


def read_file(real: Path) -> bytes | None:
    """Return all of *real*, None if nothing is there. Raises Unusable.

    No link is followed, and a FIFO does not hold us.
    """
    try:
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable(f"{real.name} cannot be opened: {error.strerror}") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Unusable(f"{real.name} is not a regular file")
        if status.st_size > MAX_FILE:
            raise Unusable(f"{real.name} is larger than {MAX_FILE} bytes")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise Unusable(f"{real.name} cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)
    # What the system makes up as it is read, and what grows, has no size beforehand.
    if len(content) > MAX_FILE:
        raise Unusable(f"{real.name} is larger than {MAX_FILE} bytes")
    return content


def decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unusable(f"{name} is not UTF-8 text") from error


def replace_file(real: Path, before: bytes | None, after: bytes, umask: int) -> None:
    """Put *after* in the place of *before*, with the file's mode or, if new, *umask*'s.

    Raises Unusable if the file is not what *before* says any more.
    """
    # What was shown is what is written, or nothing is.
    if real.resolve() != real or read_file(real) != before:
        raise Unusable("the file changed since the change was shown; read it again")
    try:
        _make_folders(real.parent, 0o777 & ~umask)
        mode = 0o666 & ~umask if before is None else stat.S_IMODE(real.stat().st_mode)
        with replacing(real) as handle:
            os.fchmod(handle, mode)
            write_all(handle, after)
    except OSError as error:
        raise Unusable(f"not written: {error.strerror}") from error


def _make_folders(folder: Path, mode: int) -> None:
    if folder.is_dir():
        return
    _make_folders(folder.parent, mode)
    folder.mkdir()
    folder.chmod(mode)  # our own umask is stricter than the user's


def lines_of(text: str) -> list[str]:
    """Return the lines of *text* with their ends."""
    # Not splitlines(): it also cuts at form feeds and U+2028, which end no line of a file.
    *whole, rest = text.split("\n")
    lines = [f"{line}\n" for line in whole]
    return [*lines, rest] if rest else lines


def is_crlf(content: bytes) -> bool:
    """Return whether every line of *content* ends in CRLF."""
    ends = content.count(b"\n")
    return ends > 0 and content.count(b"\r\n") == ends
