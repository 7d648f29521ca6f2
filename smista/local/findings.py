"""What is wrong with a file of the user, said so that a person finds the line and mends it."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

Place = tuple[str | int, ...]
"""Keys and list indexes from the top of a file."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+\Z")


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Fault(NamedTuple):
    """Something wrong in a file, before anybody looked up in which line it stands.

    *subject* is the text at fault where it tells the file it came from; it is never shown.
    """

    place: Place
    message: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    subject: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """*place* is the path of tables and keys inside *file*. Values are never quoted.

    *line* and *column* count from 1; None where the place is about something that is not there.
    """

    file: str
    place: str
    message: str
    remedy: str = ""
    severity: Severity = Severity.ERROR
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = self.file
        if self.line is not None:
            where += f":{self.line}:{self.column}"
        if self.place:
            where += f": {self.place}"
        tail = f" ({self.remedy})" if self.remedy else ""
        return f"{self.severity}: {where}: {self.message}{tail}"


class InvalidConfig(Exception):
    """A configuration that cannot be used; *findings* holds all there is to mend."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings


def spell(place: Place) -> str:
    """Return *place* as a person writes it: `routing.rules[2].paths[0]`."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
            continue
        # A key that needs quotes in the file gets them here too.
        key = step if _BARE.match(step) else '"' + step.replace('"', '\\"') + '"'
        text += f".{key}" if text else key
    return text


def meant(word: str, names: "list[str] | tuple[str, ...]") -> str | None:
    """Return the one of *names* that *word* was probably meant to be."""
    from rapidfuzz import process  # only whoever made a mistake pays for it
    from rapidfuzz.distance import OSA

    if not names or len(word) > 64:
        return None
    found = process.extractOne(word.lower(), names, scorer=OSA.distance, score_cutoff=3)
    if found is None or found[1] > max(1, len(word) // 3):
        return None
    return str(found[0])


def choose(word: str, names: "list[str] | tuple[str, ...]") -> str:
    """Return the remedy for *word*, which is none of *names*."""
    close = meant(word, names)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"use one of {', '.join(names)}"
