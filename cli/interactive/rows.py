"""How text falls into the rows of a terminal, wide characters counted twice. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from prompt_toolkit.utils import get_cwidth

_LEAD: Final = re.compile(r"[ ]*(?:\S+(?: \S+)*[ ]{2,}){0,2}")
"""The blanks at the beginning of a line, and its first columns."""

_TAB: Final = 4


def last_rows(text: str, columns: int, rows: int) -> list[str]:
    """Return the last *rows* rows that *text* takes in a terminal of *columns*. Pure."""
    found: list[str] = []
    for line in text[-4 * columns * rows :].expandtabs(_TAB).split("\n"):
        found += cells(line, columns, by_words=True)
    return found[-rows:]


def cells(line: str, columns: int, *, by_words: bool = False) -> list[str]:
    """Return *line* in pieces that are at most *columns* cells wide, at least one. Pure."""
    if line.isascii():
        return _narrow_cells(line, columns, by_words=by_words)
    pieces: list[str] = []
    piece, width = "", 0
    for char in line:
        wide = get_cwidth(char)
        if width + wide > columns and piece:
            at = piece.rfind(" ") + 1 if by_words and char != " " else 0
            whole, piece = (piece[:at], piece[at:]) if at else (piece, "")
            pieces.append(whole)
            width = get_cwidth(piece)
        piece += char
        width += wide
    return [*pieces, piece]


def _narrow_cells(line: str, columns: int, *, by_words: bool) -> list[str]:
    """Do what `cells` does where each character is one cell, many times faster. Pure."""
    pieces: list[str] = []
    begin = 0
    while len(line) - begin > columns:
        end = begin + columns
        if by_words and line[end] != " ":
            end = line.rfind(" ", begin, end) + 1 or end
        pieces.append(line[begin:end])
        begin = end
    return [*pieces, line[begin:]]


def wrapped(line: str, columns: int, *, least: int = 0) -> list[str]:
    """Return *line* cut between words into rows of *columns* cells. Pure.

    What goes on stands below the last column of the line, or *least* cells in if that is too far
    right. A word that is longer than a row is cut nowhere: the terminal does that, and what is
    copied from it is whole.
    """
    if get_cwidth(line) <= columns:
        return [line]
    lead = get_cwidth(_lead(line[:columns]))
    indent = " " * (lead if least <= lead <= columns // 2 else min(least, columns // 2))
    rows: list[str] = []
    row = ""
    for word in re.findall(r"[ ]*[^ ]+", line):
        if row.strip() and get_cwidth(row + word) > columns:
            rows.append(row)
            row = indent + word.lstrip(" ")
        else:
            row += word
    return [*rows, row]


def cut(line: str, columns: int) -> str:
    """Return as much of *line* as fits into *columns* cells. Pure."""
    first, *more = cells(line, max(columns, 1))
    return f"{first[:-1]}…" if more else first


def first_that_fits(lines: Sequence[str], columns: int) -> str:
    """Return the first of *lines* that fits into *columns* cells, else a part of the last. Pure."""
    for line in lines:
        if get_cwidth(line) <= columns:
            return line
    return cut(lines[-1], columns)


def _lead(line: str) -> str:
    found = _LEAD.match(line)
    return found[0] if found else ""
