"""Where each key and list item of a TOML text stands. Pure; for texts that tomllib has read.

The TOML libraries keep no positions, so this walks over the text once more. It judges nothing:
whatever it does not understand ends the walk, and what was found until then stands.
"""

import re
import tomllib
from typing import Final

from smista.local.findings import Place

# Atomic groups and not groups with a possessive repeat: Python 3.11.2 loses those.
_SKIP: Final = re.compile(r"(?>(?:[ \t\r\n]++|#[^\n]*+)*)")
_KEY: Final = re.compile(r'[A-Za-z0-9_-]++|"(?>(?:[^"\\\n]++|\\.)*)"|\'[^\'\n]*+\'')
_STRING: Final = re.compile(
    r'"""(?>(?:[^"\\]++|\\.|"(?!""))*)"{3,5}'
    r"|'''(?>(?:[^']++|'(?!''))*)'{3,5}"
    r'|"(?>(?:[^"\\\n]++|\\.)*)"'
    r"|'[^'\n]*+'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]++")


class _Lost(Exception):
    """The text is not what was expected."""


def find_places(text: str) -> dict[Place, int]:
    """Return for each table, key and list item of *text* the offset at which it stands."""
    walk = _Walk(text)
    try:
        walk.run()
    except (_Lost, RecursionError):
        return walk.found
    return walk.found


class _Walk:
    """One pass over a text; *found* grows on the way."""

    def __init__(self, text: str) -> None:
        self.found: dict[Place, int] = {}
        self._text = text
        self._at = 0
        self._lengths: dict[Place, int] = {}

    def run(self) -> None:
        table: Place = ()
        while self._peek():
            if self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Place:
        start, array = self._at, self._text.startswith("[[", self._at)
        self._at += 2 if array else 1
        keys = self._keys()
        self._take("]")
        if array:
            self._take("]")
        return self._enter(keys, array=array, start=start)

    def _enter(self, keys: list[str], *, array: bool, start: int) -> Place:
        place: Place = ()
        for number, key in enumerate(keys):
            place += (key,)
            self.found.setdefault(place, start)
            if array and number == len(keys) - 1:
                self._lengths[place] = self._lengths.get(place, 0) + 1
            if place in self._lengths:
                place += (self._lengths[place] - 1,)
                self.found.setdefault(place, start)
        return place

    def _pair(self, table: Place) -> None:
        start = self._at
        keys = self._keys()
        self._take("=")
        place = table
        for key in keys:
            place += (key,)
            self.found.setdefault(place, start)
        self._value(place)

    def _value(self, place: Place) -> None:
        match self._peek():
            case "[":
                self._array(place)
            case "{":
                self._inline(place)
            case '"' | "'":
                self._pass(_STRING)
            case _:
                self._pass(_SCALAR)

    def _array(self, place: Place) -> None:
        self._take("[")
        index = 0
        while self._peek() != "]":
            self.found[(*place, index)] = self._at
            self._value((*place, index))
            index += 1
            if self._peek() == ",":
                self._at += 1
        self._at += 1

    def _inline(self, place: Place) -> None:
        self._take("{")
        while self._peek() != "}":
            self._pair(place)
            if self._peek() == ",":
                self._at += 1
        self._at += 1

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._peek()
            keys.append(_unquoted(self._pass(_KEY)))
            if self._peek() != ".":
                return keys
            self._at += 1

    def _peek(self) -> str:
        """Step over blanks and comments; return the next character, "" at the end."""
        blank = _SKIP.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, char: str) -> None:
        if self._peek() != char:
            raise _Lost
        self._at += 1

    def _pass(self, shape: re.Pattern[str]) -> str:
        hit = shape.match(self._text, self._at)
        if hit is None:
            raise _Lost
        self._at = hit.end()
        return hit[0]


def _unquoted(key: str) -> str:
    if key[0] not in "\"'":
        return key
    if "\\" not in key or key[0] == "'":
        return key[1:-1]
    try:
        return str(tomllib.loads(f"key = {key}")["key"])
    except tomllib.TOMLDecodeError:
        raise _Lost from None
