"""The lines of a project's restricted files, so that copies of them are known under any name.

What was read once is kept until the file or its folder changes. There is a bound to it all; what
is beyond it counts as if everything were a copy.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from cli.files import MAX_FILE, Identity, Unusable, read_file
from cli.finding import HEAVY
from cli.line_marks import LineMarks
from cli.surroundings import Surroundings
from smista.core.privacy import Guard

MAX_ENTRIES: Final = 200_000
"""Entries of folders that are looked at."""
MAX_FILES: Final = 1000
"""Restricted files that are read."""
MAX_BYTES: Final = MAX_FILE
"""Bytes of one of them."""
_BEGINNING: Final = 8192
_SETTLED: Final = 100_000_000
"""Nanoseconds after which a folder's time tells its next change from its last."""


@dataclass(frozen=True, slots=True)
class _Folder:
    changed: tuple[int, int]
    settled: bool
    restricted: tuple[str, ...]
    inner: tuple[str, ...]
    entries: int


@dataclass(slots=True)
class RestrictedLines:
    """Blocks. *guard* says what is restricted. Not for two threads at once."""

    here: Surroundings
    guard: Guard
    key: bytes
    beyond: bool = False
    _folders: dict[str, _Folder] = field(default_factory=dict[str, _Folder])
    _files: dict[str, tuple[tuple[int, ...], LineMarks]] = field(
        default_factory=dict[str, tuple[tuple[int, ...], LineMarks]]
    )
    _identities: frozenset[Identity] = frozenset()
    _all: LineMarks = field(default_factory=lambda: LineMarks(b""))
    _own: frozenset[str] = frozenset()

    def refresh(self) -> None:
        """Look at what changed since the last time."""
        self.beyond = False
        places = self.here.places
        own = (places.config, places.personal, places.runtime)
        self._own = frozenset(str(place.resolve()) for place in own)
        found = list(self._walk())
        if len(found) > MAX_FILES:
            self.beyond = True
        files: dict[str, tuple[tuple[int, ...], LineMarks]] = {}
        identities: set[Identity] = set()
        for path in found[:MAX_FILES]:
            try:
                status = os.stat(path)
            except OSError:
                continue  # it went, or leads nowhere
            identities.add((status.st_dev, status.st_ino))
            stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            known = self._files.get(path)
            if known is None or known[0] != stamp:
                known = (stamp, self._read(path, status.st_size))
            files[path] = known
        if files != self._files:
            self._all = LineMarks(self.key)
            for _, marks in files.values():
                self._all.unite(marks)
        self._files, self._identities = files, frozenset(identities)

    def holds(self, text: str) -> bool:
        return self._all.holds(text)

    def is_one(self, path: Path) -> bool:
        """Return whether *path* is one of the files under another name."""
        try:
            status = path.stat()
        except (OSError, ValueError):
            return False
        return (status.st_dev, status.st_ino) in self._identities

    def _read(self, path: str, size: int) -> LineMarks:
        marks = LineMarks(self.key)
        try:
            real = Path(path).resolve()
            if b"\0" in _beginning(real):
                return marks  # nothing of it passes for text, so nothing of it is sent
            if size > MAX_BYTES:
                self.beyond = True
                return marks
            content = read_file(real) or b""
        except (Unusable, OSError, RuntimeError):
            return marks  # no tool of ours can read it either
        marks.add(content.decode("utf-8", "replace"))
        return marks

    def _walk(self) -> Iterator[str]:
        root = str(self.here.root.resolve())
        waiting, seen = [root], 0
        folders: dict[str, _Folder] = {}
        while waiting:
            path = waiting.pop()
            folder = self._folder(path)
            if folder is None:
                continue
            folders[path] = folder
            seen += folder.entries
            if seen > MAX_ENTRIES:
                self.beyond = True
                break
            yield from folder.restricted
            waiting += folder.inner
        self._folders = folders

    def _folder(self, path: str) -> _Folder | None:
        try:
            status = os.stat(path, follow_symlinks=False)
            stamp = (status.st_mtime_ns, status.st_ino)
            known = self._folders.get(path)
            if known is not None and known.settled and known.changed == stamp:
                return known
            return self._scan(path, stamp)
        except OSError:
            return None  # nothing there that we may see

    def _scan(self, path: str, stamp: tuple[int, int]) -> _Folder:
        restricted: list[str] = []
        inner: list[str] = []
        above = len(str(self.here.root.resolve()).rstrip("/")) + 1
        settled = time.time_ns() - stamp[0] > _SETTLED
        count = 0
        with os.scandir(path) as entries:
            for entry in entries:
                count += 1
                if count > MAX_ENTRIES:
                    break
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in HEAVY and entry.path not in self._own:
                        inner.append(entry.path)
                elif self.guard.restricts(entry.path[above:]) is not None:
                    restricted.append(entry.path)
        return _Folder(stamp, settled, tuple(restricted), tuple(inner), count)


def _beginning(real: Path) -> bytes:
    handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(_BEGINNING)


def changed_files(here: Surroundings, since: int) -> Iterator[Path]:
    """Yield the files of the project that were written *since* then, in nanoseconds. Blocks."""
    waiting, seen = [here.root.resolve()], 0
    while waiting and seen < MAX_ENTRIES:
        for entry in _entries(waiting.pop()):
            seen += 1
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in HEAVY:
                    waiting.append(Path(entry.path))
            elif _changed(entry) >= since:
                yield Path(entry.path)


def _changed(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_ctime_ns
    except OSError:
        return 0  # it is gone


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, MAX_ENTRIES))
    except OSError:
        return []  # nothing there that we may see
