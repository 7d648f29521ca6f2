"""One TOML file of the user: its tables, its hash, and the line of each key.

Whatever is in the file, reading it ends in tables and findings, never in another error.
"""

import os
import re
import stat
import tomllib
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, cast

from smista.local.findings import Fault, Finding, Place, spell
from smista.local.toml_places import find_places

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 64
"""Parts of a key, or tables in each other. No setting comes near."""
_BOM: Final = b"\xef\xbb\xbf"
_AT: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")
# tomllib takes time with the square of a key's parts. Each try starts where a part starts, and
# nothing is given back: linear, whatever the text.
_ENDLESS_KEY: Final = re.compile(
    r"(?<![A-Za-z0-9_-])"
    r"(?>(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}"
)
_DEEP: Final = ("lists or tables lie too deep in each other", "no setting lies so deep")
_SYNTAX_REMEDIES: Final = (
    ("Cannot overwrite", "it stands here for the second time; keep one"),
    ("Cannot declare", "it stands here for the second time; keep one"),
    ("Expected '='", "write key = value"),
    ("Invalid value", 'text stands in quotes: key = "value"'),
    ("Unclosed", "close it"),
    ("Unterminated", "close it"),
    ("Illegal character", "remove the character"),
    ("Invalid initial character", 'a name with other characters stands in quotes: "name"'),
    ("Expected newline", "put each key on a line of its own"),
)


@dataclass(slots=True)
class Source:
    """A file as it was read: *data* is {} where it could not be, and *faults* say why.

    *digest* is of the very bytes that were read, None without a file.
    """

    file: str
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    faults: tuple[Finding, ...] = ()
    digest: str | None = None
    _places: dict[Place, int] | None = field(default=None, repr=False)
    _lines: list[int] = field(default_factory=list[int], repr=False)

    @property
    def exists(self) -> bool:
        return self.digest is not None

    def findings(self, faults: Iterable[Fault]) -> list[Finding]:
        """Return *faults* with the lines where they stand."""
        return [self.finding(fault) for fault in faults]

    def finding(self, fault: Fault) -> Finding:
        spot = self.spot(fault.place)
        return Finding(
            file=self.file,
            place=spell(fault.place),
            message=fault.message,
            remedy=fault.remedy,
            severity=fault.severity,
            line=None if spot is None else spot[0],
            column=None if spot is None else spot[1],
        )

    def spot(self, place: Place) -> tuple[int, int] | None:
        """Return line and column of *place*, or of what is nearest around it."""
        if self._places is None:
            self._places = find_places(self.text)
            self._lines = [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))]
        for length in range(len(place), 0, -1):
            offset = self._places.get(place[:length])
            if offset is not None:
                line = bisect_right(self._lines, offset)
                return line, offset - self._lines[line - 1] + 1
        return None


def read_source(file: Path, *, shown: str | None = None) -> Source:
    """Read *file*, which need not exist; *shown* is its name in findings."""
    name = shown or str(file)
    try:
        content = _read(file)
    except FileNotFoundError:
        return Source(name)
    except OSError as error:
        message = f"it cannot be read: {error.strerror or error}"
        found = Finding(file=name, place="", message=message, remedy="see to its permissions")
        return Source(name, faults=(found,), digest="")
    return parse_source(content, name)


def parse_source(content: bytes, name: str) -> Source:
    """Return what *content*, the bytes of the file *name*, says."""
    source = Source(name, digest=f"sha256:{sha256(content).hexdigest()}")
    if len(content) > MAX_BYTES:
        return _unread(source, f"larger than {MAX_BYTES} bytes", "write less into it")
    if content.startswith(_BOM):
        content = content.removeprefix(_BOM)
        message, remedy = "it begins with a byte order mark", "save it as UTF-8 without one"
        _unread(source, message, remedy, (1, 1))
    try:
        source.text = content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        spot = before.count("\n") + 1, len(before) - before.rfind("\n")
        return _unread(source, "not UTF-8 text", "save the file as UTF-8", spot)
    _parse(source)
    return source


def _parse(source: Source) -> None:
    endless = _ENDLESS_KEY.search(source.text)
    if endless is not None:
        before = source.text[: endless.start()]
        spot = before.count("\n") + 1, len(before) - before.rfind("\n")
        _unread(source, f"a key of more than {MAX_DEPTH} parts", "no setting lies so deep", spot)
        return
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        _syntax(source, str(error))
    except ValueError:
        _unread(source, "a number has too many digits", "write a smaller number")
    except RecursionError:
        _unread(source, *_DEEP)
    else:
        if _is_deep(data):
            _unread(source, *_DEEP)
        else:
            source.data = data


def _is_deep(data: dict[str, Any]) -> bool:
    level: list[object] = [data]
    for _ in range(MAX_DEPTH):
        level = [item for box in level for item in _inside(box)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []


def _syntax(source: Source, said: str) -> None:
    at = _AT.search(said)
    message = said[: at.start()] if at else said
    spot = (int(at[1]), int(at[2])) if at and at[1] else (source.text.count("\n") + 1, 1)
    remedy = next((cure for sign, cure in _SYNTAX_REMEDIES if message.startswith(sign)), "")
    _unread(source, f"not TOML: {message}", remedy or "correct this line", spot)


def _unread(
    source: Source, message: str, remedy: str, spot: tuple[int, int] | None = None
) -> Source:
    line, column = spot or (None, None)
    found = Finding(
        file=source.file, place="", message=message, remedy=remedy, line=line, column=column
    )
    source.faults = (*source.faults, found)
    return source


def _read(file: Path) -> bytes:
    # O_NONBLOCK: a FIFO in its place must not hold us.
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is not a regular file")
        return opened.read(MAX_BYTES + 1)
