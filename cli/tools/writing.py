"""The tools `write_file` and `edit_file`: the whole file before and after, and its diff."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from cli.files import MAX_FILE, Seen, Unusable, decode, is_crlf, replace_file, see
from cli.surroundings import Surroundings
from cli.tools.arguments import string
from cli.tools.calls import Change, Prepared
from cli.tools.places import Place, both, is_inside, needs_care
from smista.core.proposals import unified

_NAMED: Final = 10
"""Places that a refused edit names."""
_COMPARED: Final = 200
"""Lines of an `old` that is looked for without its white space."""


def prepare_write(arguments: Mapping[str, Any], place: Place, here: Surroundings) -> Prepared:
    """Return the change. Blocks. Raises Unusable."""
    given, real = place
    text = string(arguments, "content")
    seen = see(real)
    if seen.content is not None and is_crlf(seen.content):
        text = _with_crlf(text)
    return _change("write_file", given, seen, text.encode(), here)


def prepare_edit(arguments: Mapping[str, Any], place: Place, here: Surroundings) -> Prepared:
    """Return the change. Blocks. Raises Unusable, saying how often and where `old` stands."""
    given, real = place
    old, new = string(arguments, "old"), string(arguments, "new")
    seen = see(real)
    if seen.content is None:
        raise Unusable(f"{given} does not exist; use write_file to create it")
    text = decode(seen.content, given)
    if old not in text and is_crlf(seen.content):
        old, new = _with_crlf(old), _with_crlf(new)
    found = text.count(old) if old else 0
    if found == 0:
        raise Unusable(_absent(old, text, given))
    if found > 1 and arguments.get("replace_all") is not True:
        lines = ", ".join(map(str, islice(_lines_of_hits(old, text), _NAMED)))
        more = ", …" if found > _NAMED else ""
        raise Unusable(
            f"`old` occurs {found} times in {given}, at lines {lines}{more}; "
            "quote more, or set replace_all"
        )
    return _change("edit_file", given, seen, text.replace(old, new).encode(), here)


def write(change: Change, here: Surroundings) -> str:
    """Write what was shown. Blocks. Raises Differs if the file is another by now, or Unusable."""
    replace_file(change.seen, change.after, here.umask)
    return f"written, {len(change.after)} bytes"


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _absent(old: str, text: str, given: str) -> str:
    """Say that *old* is not there, and where something stands that differs in white space only."""
    said = f"`old` does not occur in {given}"
    line = _alike(old, text)
    if line is not None:
        return f"{said}; what begins at line {line} differs from it in white space only"
    return f"{said}; read the file and quote it exactly"


def _alike(old: str, text: str) -> int | None:
    wanted = [line.split() for line in old.split("\n") if line.strip()]
    if not 0 < len(wanted) <= _COMPARED:
        return None
    there = [(at, line.split()) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    words = [each for _, each in there]
    for start, (at, first) in enumerate(there):
        if first == wanted[0] and words[start : start + len(wanted)] == wanted:
            return at
    return None


def _lines_of_hits(old: str, text: str) -> Iterator[int]:
    at, line = text.find(old), 1
    passed = 0
    while at >= 0:
        line += text.count("\n", passed, at)
        yield line
        passed, at = at, text.find(old, at + len(old))


def _change(tool: str, given: str, seen: Seen, after: bytes, here: Surroundings) -> Prepared:
    if len(after) > MAX_FILE:
        raise Unusable(f"more than {MAX_FILE} bytes are not written at once")
    if any(part.casefold() == ".git" for part in seen.real.parts):
        raise Unusable(f"{given}: nothing below .git is ever written")
    old = None if seen.content is None else decode(seen.content, given)
    return Prepared(
        title=f"{tool} {given}",
        shown=unified(given, old, after.decode()),
        action=Change(seen=seen, after=after),
        paths=both(given, seen.real, here),
        confined=is_inside(seen.real, here) and not needs_care(seen.real, here),
    )
