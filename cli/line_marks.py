"""Short keyed digests of lines: what tells a copy of a line without holding the line. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

LEAST: Final = 12
"""Characters of a line that is compared; shorter ones stand in too many files."""
_STARTS: Final = 16
"""Places in a line at which what was copied may begin."""
_AROUND: Final = " \t\r\n\x0c\x0b\"'`,;"
"""What may stand around a line without making it another one."""
_SEPARATOR: Final = re.compile(r"[\s:|<>+\-=\"'`]+")


@dataclass(slots=True)
class LineMarks:
    """The marks of many lines, and the lengths they have, under one *key*."""

    key: bytes
    marks: set[bytes] = field(default_factory=set[bytes])
    lengths: set[int] = field(default_factory=set[int])

    def add(self, text: str) -> None:
        """Take in the lines of *text*, and the whole of a text that is shorter than one."""
        for line in own_lines(text):
            self.marks.add(mark(line, self.key))
            self.lengths.add(len(line))

    def unite(self, other: "LineMarks") -> None:
        self.marks |= other.marks
        self.lengths |= other.lengths

    def holds(self, text: str) -> bool:
        """Return whether *text* has one of the lines in it, whatever stands before it."""
        if not self.marks:
            return False
        return any(
            len(part) in self.lengths and mark(part, self.key) in self.marks
            for part in _parts(text)
        )


def own_lines(text: str) -> Iterator[str]:
    """Yield the lines of *text* that are compared, without what is around them."""
    lines = [line.strip(_AROUND) for line in text.splitlines()]
    long = [line for line in lines if len(line) >= LEAST]
    yield from long or filter(None, [text.strip(_AROUND)])


def mark(line: str, key: bytes) -> bytes:
    return blake2b(line.encode("utf-8", "replace"), key=key, digest_size=10).digest()


def _parts(text: str) -> Iterator[str]:
    """Yield each line, and what is left of it behind the first few words and signs."""
    yield text.strip(_AROUND)
    for line in text.splitlines():
        whole = line.strip(_AROUND)
        yield whole
        if len(whole) < LEAST:
            continue
        for count, found in enumerate(_SEPARATOR.finditer(whole), 1):
            if count > _STARTS or len(whole) - found.end() < LEAST:
                break
            yield whole[found.end() :]
