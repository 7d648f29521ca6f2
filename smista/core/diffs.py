"""A git diff taken apart by file, so that one restricted file neither poisons nor leaks the rest.

Trusts nothing: a section counts as read only if its names are certain and every line of it is
accounted for. Otherwise the whole diff stays in one piece, marked unreadable.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_START: Final = re.compile(r"diff --git |diff --cc |diff --combined |Submodule ")
_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_SUBMODULE: Final = re.compile(
    r"Submodule (.+?) (?:[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,}|contains (?:untracked|modified) content)"
)
_EXTENDED: Final = re.compile(
    r"(?:index|mode|old mode|new mode|deleted file mode|new file mode|similarity index"
    r"|dissimilarity index|rename from|rename to|copy from|copy to|Binary files|---|\+\+\+) "
)
_NAMED: Final = ("--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ")
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_HEADER: Final = re.compile(rf"({_QUOTED}|\S+) ({_QUOTED}|\S+)\Z")
_ESCAPE: Final = re.compile(r'\\([abtnvfr"\\]|[0-7]{3})')
_ESCAPES: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_BINARY: Final = re.compile(r"GIT binary patch|literal \d+|delta \d+|[A-Za-z][!-~]+|\Z")


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The part of a diff that changes one file.

    *names* are the file's names, the newest first, as its repository knows them; *raw* the same
    as they stand in the header, prefixes included. *readable* is False for a diff that could not
    be taken apart: then *names* may be incomplete.
    """

    names: tuple[str, ...]
    raw: tuple[str, ...]
    text: str
    readable: bool = True


def split_diff(text: str) -> tuple[FileDiff, ...]:
    """Return *text* by file, in order; one unreadable piece if any header cannot be trusted."""
    # Not splitlines(): it also cuts at characters that may stand inside a line of a file.
    sections = list(_sections(text.split("\n")))
    files = [_read(section) for section in sections]
    found = [file for file in files if file is not None]
    if len(found) == len(files):
        return tuple(found)
    names = tuple(name for file in found for name in file.names)
    return (FileDiff(names, tuple(r for file in found for r in file.raw), text, readable=False),)


def _sections(lines: Sequence[str]) -> Iterator[list[str]]:
    section: list[str] = []
    for line in lines:
        if _START.match(line) and section:
            yield section
            section = []
        if line or section:
            section.append(line)
    if section:
        yield section


def _read(lines: list[str]) -> FileDiff | None:
    head = lines[0]
    text = "\n".join(lines).rstrip("\n") + "\n"
    if submodule := _SUBMODULE.match(head):
        return _submodule(submodule[1], lines, text)
    if not head.startswith("diff "):
        return None
    body = next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines))
    header = lines[:body]
    combined = not head.startswith("diff --git ")
    if not (_header_is_known(header) and _body_is_whole(lines[body:], combined=combined)):
        return None
    raw = _raw_names(header, combined=combined)
    return None if raw is None else FileDiff(_bare(raw, combined=combined), raw, text)


def _submodule(name: str, lines: list[str], text: str) -> FileDiff | None:
    if any(line and not line.startswith(("  > ", "  < ")) for line in lines[1:]):
        return None
    return FileDiff((name,), (name,), text)


def _header_is_known(header: list[str]) -> bool:
    binary = False
    for line in header[1:]:
        binary = binary or line == "GIT binary patch"
        if not (_BINARY.match(line) if binary else not line or _EXTENDED.match(line)):
            return False
    return True


def _body_is_whole(lines: list[str], *, combined: bool) -> bool:
    """Say if every line belongs to a hunk: what a hunk does not announce could be another file."""
    if combined:
        return all(not line or line[0] in " +-\\@" for line in lines)
    old = new = 0
    for line in lines:
        if old <= 0 and new <= 0:
            if (hunk := _HUNK.match(line)) is not None:
                old, new = int(hunk[1] or 1), int(hunk[2] or 1)
            elif line and not line.startswith("\\ "):
                return False
            continue
        kind = line[:1] or " "
        if kind not in " +-\\":
            return False
        old -= kind in " -"
        new -= kind in " +"
    return True


def _raw_names(header: list[str], *, combined: bool) -> tuple[str, ...] | None:
    named = [
        name
        for line in header[1:]
        for mark in _NAMED
        if line.startswith(mark)
        for name in [_unquote(line.removeprefix(mark).rstrip("\r").removesuffix("\t"))]
        if name != "/dev/null"
    ]
    if None in named:
        return None
    _, _, rest = header[0].partition(" --git ") if not combined else header[0].split(" ", 2)
    heads = _combined_name(rest) if combined else _header_names(rest.rstrip("\r"))
    found = [*reversed([name for name in named if name]), *reversed(heads)]
    return tuple(dict.fromkeys(found)) or None


def _combined_name(rest: str) -> tuple[str, ...]:
    name = _unquote(rest.rstrip("\r"))
    return () if name is None else (name,)


def _header_names(rest: str) -> tuple[str, ...]:
    """Return both names of a `diff --git` line, nothing where spaces make them uncertain."""
    if (match := _HEADER.match(rest)) is not None:
        names = tuple(_unquote(name) for name in match.groups())
        return tuple(name for name in names if name)
    half = len(rest) // 2
    left, right = rest[:half], rest[half + 1 :]
    same = (left.partition("/")[2] == right.partition("/")[2] and "/" in left) or left == right
    return (left, right) if rest[half : half + 1] == " " and same else ()


def _bare(raw: tuple[str, ...], *, combined: bool) -> tuple[str, ...]:
    prefixed = not combined and any(name.startswith("b/") for name in raw)
    prefixed = prefixed or any(name.startswith("a/") for name in raw)
    names = [name[2:] if prefixed and name[:2] in {"a/", "b/"} else name for name in raw]
    return tuple(dict.fromkeys(names))


def _unquote(name: str) -> str | None:
    """Return *name* without git's C quoting; None if the quoting is broken."""
    if not name.startswith('"'):
        return name
    if not re.fullmatch(_QUOTED, name):
        return None
    data = bytearray()
    at = 1
    while at < len(name) - 1:
        if name[at] != "\\":
            data += name[at].encode("utf-8", "surrogatepass")
            at += 1
            continue
        escape = _ESCAPE.match(name, at)
        if escape is None:
            return None
        code = escape[1]
        data.append(_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 0xFF)
        at = escape.end()
    return data.decode("utf-8", "replace")
