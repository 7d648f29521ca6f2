"""Files that git does not know yet, as a diff that creates them. No link is followed."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from cli.files import Unusable, lines_of, read_file

MAX_NEW: Final = 256 * 1024
"""Bytes of new files that go along."""
MAX_ONE: Final = 64 * 1024
MAX_NAMES: Final = 200
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]+\Z")
_ESCAPES: Final = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def diff_of_new(root: Path, names: Iterable[bytes], notices: list[str]) -> str:
    """Return the diff that creates the text files *names* below *root*, as far as they fit."""
    listed = list(names)
    room, left_out, pieces = MAX_NEW, len(listed[MAX_NAMES:]), list[str]()
    for name in listed[:MAX_NAMES]:
        content = _content(root, name)
        if content is None:
            continue
        piece = "".join(_creation(_quoted(name), content))
        size = len(piece.encode())
        if size > min(room, MAX_ONE):
            left_out += 1
            continue
        room -= size
        pieces.append(piece)
    if left_out:
        count = "1 new file" if left_out == 1 else f"{left_out} new files"
        notices.append(f"git diff: {count} left out, for they are large or many")
    return "".join(pieces)


def _content(root: Path, name: bytes) -> str | None:
    path = root.resolve() / name.decode("utf-8", "surrogateescape")
    try:
        # A folder on the way may be a link by now: what is behind it is not this project's.
        if path.resolve() != path:
            return None
        content = read_file(path)
        return None if content is None or b"\0" in content else content.decode()
    except (OSError, RuntimeError, Unusable, UnicodeDecodeError):
        return None  # a link, a device, no text: git would show nothing of it either


def _creation(name: tuple[str, str], content: str) -> Iterator[str]:
    before, after = name
    yield f"diff --git {before} {after}\nnew file mode 100644\n"
    lines = lines_of(content)
    if not lines:
        return
    yield f"--- /dev/null\n+++ {after}\n@@ -0,0 +1,{len(lines)} @@\n"
    for line in lines:
        yield f"+{line}"
    if not lines[-1].endswith("\n"):
        yield "\n\\ No newline at end of file\n"


def _quoted(name: bytes) -> tuple[str, str]:
    """Return *name* on both sides, as git writes it."""
    if _PLAIN.match(name.decode("latin-1")):
        text = name.decode()
        return f"a/{text}", f"b/{text}"
    text = "".join(map(_escaped, name))
    return f'"a/{text}"', f'"b/{text}"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return f"\\{_ESCAPES[byte]}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
