"""What was written while restricted content was in view: it may hold it in other words.

Kept for each project, over all sessions, as digests only. Once it is full or damaged, everything
counts as written so.
"""

import fcntl
import os
import re
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes
from typing import Final

from cli.line_marks import LineMarks, mark, own_lines
from cli.surroundings import Surroundings
from smista.local.paths import (
    create_private,
    open_private,
    private_directory,
    read_private,
    write_all,
)

MAX_MARKS: Final = 200_000
"""Lines and paths of one project."""
_KEY: Final = 32
_FULL: Final = "full"
_ENTRY: Final = re.compile(r"path [0-9a-f]{20}|line \d{1,9} [0-9a-f]{20}|full")


class Written:
    """The register of one project. Blocks. Raises OSError and NotOurs."""

    def __init__(self, here: Surroundings) -> None:
        self._folder = here.places.config / "written"
        self._root = here.root
        self._size = -1
        self._paths: set[str] = set()
        self._key = b""
        self._lines = LineMarks(b"")
        self.full = False

    @property
    def key(self) -> bytes:
        """The key of all marks on this machine; made when it is first asked for."""
        if not self._key:
            private_directory(self._folder.parent)
            private_directory(self._folder)
            self._key = _key_in(self._folder / "key")
            self._lines = LineMarks(self._key)
        return self._key

    def refresh(self) -> None:
        """Read what other runs have noted meanwhile."""
        content = read_private(self._file) if self._folder.is_dir() else None
        if not content or len(content) == self._size:
            return
        self._size, self._paths, self._lines = len(content), set(), LineMarks(self.key)
        # A last one without its end is damaged, and so is what was written behind it.
        entries = content.decode(errors="replace").removesuffix("\n").split("\n")
        damaged = not content.endswith(b"\n") or not all(map(_ENTRY.fullmatch, entries))
        self.full = damaged or len(entries) > MAX_MARKS or _FULL in entries
        for entry in filter(_ENTRY.fullmatch, entries[: MAX_MARKS + 1]):
            kind, _, rest = entry.partition(" ")
            if kind == "path":
                self._paths.add(rest)
            elif kind == "line":
                length, _, digest = rest.partition(" ")
                self._lines.lengths.add(int(length))
                self._lines.marks.add(bytes.fromhex(digest))

    def note(self, real: Path, before: str, after: str) -> None:
        """Note that *real* was written; what stood in it *before* is no news."""
        key, old = self.key, set(own_lines(before))
        fresh = dict.fromkeys(line for line in own_lines(after) if line not in old)
        entries = [f"path {self._name(real)}"]
        entries += [f"line {len(line)} {mark(line, key).hex()}" for line in fresh]
        self._append(entries)

    def note_full(self) -> None:
        """Note that more was written than could be looked at."""
        self._append([_FULL])

    def has(self, real: Path) -> bool:
        return self._name(real) in self._paths

    def holds(self, text: str) -> bool:
        return self._lines.holds(text)

    @property
    def _file(self) -> Path:
        root = os.fsencode(self._root.resolve())
        return self._folder / sha256(root).hexdigest()

    def _name(self, real: Path) -> str:
        return mark(str(real), self.key).hex()

    def _append(self, entries: list[str]) -> None:
        handle = open_private(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            before = os.fstat(handle).st_size
            try:
                write_all(handle, "".join(f"{entry}\n" for entry in entries).encode())
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, before)  # on a full disk half an entry would be left
                raise
        finally:
            os.close(handle)


def _key_in(path: Path) -> bytes:
    if not path.exists():
        create_private(path, token_bytes(_KEY))  # unless another process is faster
    key = read_private(path) or b""
    if len(key) != _KEY:
        raise OSError(f"{path} is damaged; remove the folder {path.parent}")
    return key
