"""The tools that look around: names of files, and lines that fit a pattern.

Links are not followed, smista's own files and restricted ones are left out, and both are bounded.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import trio

from cli import search_child
from cli.files import Unusable
from cli.surroundings import Surroundings
from cli.workspace import holds_keys, is_ours, relative
from smista.core.globs import Globs
from smista.core.privacy import Guard

MAX_LIMIT: Final = 1000
MAX_SEEN: Final = 50_000
"""Entries of folders that one call looks at."""
SECONDS: Final = 20.0
HEAVY: Final = frozenset({".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The files that a call is about: below *top*, of the names in *glob*."""

    top: Path
    root: Path
    glob: Globs | None
    guard: Guard | None
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """*paths* are the files that *text* holds bytes of."""

    text: str
    paths: tuple[str, ...]


@dataclass(slots=True)
class _Walk:
    """One walk, and what it passed by."""

    scope: Scope
    here: Surroundings
    seen: int = 0
    restricted: int = 0
    skipped: set[str] = field(default_factory=set[str])

    def files(self) -> Iterator[str]:
        """Yield the files as requests name them, those of a folder before what is below it."""
        folders = [self.scope.top]
        if not self.scope.top.is_dir():
            raise Unusable("`path` is not a folder")
        while folders and self.seen < MAX_SEEN:
            entries = sorted(self._entries(folders.pop()), key=lambda entry: entry.name)
            yield from (name for entry in entries for name in self._file(entry))
            folders += [Path(e.path) for e in reversed(entries) if self._enters(e)]

    def notes(self) -> list[str]:
        notes: list[str] = []
        if self.restricted:
            notes.append(f"[restricted files left out: {self.restricted}]")
        if self.skipped:
            notes.append(f"[not looked into: {', '.join(sorted(self.skipped))}]")
        if self.seen >= MAX_SEEN:
            notes.append(f"[stopped after {MAX_SEEN} entries; give a `path`]")
        return notes

    def _entries(self, folder: Path) -> Iterator["os.DirEntry[str]"]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.seen += 1
                    if self.seen >= MAX_SEEN:
                        return
                    yield entry
        except OSError:
            return  # nothing there that we may see

    def _enters(self, entry: "os.DirEntry[str]") -> bool:
        if not entry.is_dir(follow_symlinks=False) or is_ours(Path(entry.path), self.here):
            return False
        if entry.name in HEAVY:
            self.skipped.add(entry.name)
            return False
        return True

    def _file(self, entry: "os.DirEntry[str]") -> Iterator[str]:
        path = Path(entry.path)
        # Folders of ours are not entered, so by its name alone a file can still be one.
        if not entry.is_file(follow_symlinks=False) or holds_keys(path):
            return
        name = relative(path, self.scope.root)
        # A name that is no text, or would look like several lines, cannot be told.
        if not name.isprintable() or not self._fits(path, name):
            return
        if self.scope.guard is not None and self.scope.guard.restricts(name) is not None:
            self.restricted += 1
            return
        yield name

    def _fits(self, path: Path, name: str) -> bool:
        glob = self.scope.glob
        if glob is None:
            return True
        below = path.relative_to(self.scope.top).as_posix()
        return bool(glob.find(name.lstrip("/")) or glob.find(below))


def list_files(scope: Scope, here: Surroundings) -> Found:
    """Return the names of the files. Blocks. Raises Unusable."""
    walk = _Walk(scope, here)
    names: list[str] = []
    for name in walk.files():
        if len(names) == scope.limit:
            names.append(f"[more than {scope.limit}; narrow it with `path` or `glob`]")
            break
        names.append(name)
    return Found(text="\n".join([*names, *walk.notes()]) or "[no files]", paths=())


async def search_files(pattern: str, scope: Scope, here: Surroundings) -> Found:
    """Return `path:line: text` for each hit. Raises Unusable."""
    walk = _Walk(scope, here)
    names = await trio.to_thread.run_sync(lambda: list(walk.files()))
    files = [str(scope.root / name) for name in names]
    said = await _ask_child(json.dumps({"pattern": pattern, "limit": scope.limit, "files": files}))
    *found, end = said.splitlines()
    hits = [cast("tuple[int, int, str]", json.loads(line)) for line in found]
    lines = [f"{names[number]}:{line}: {text}" for number, line, text in hits]
    if json.loads(end)["more"]:
        lines.append(f"[more than {scope.limit}; narrow it with `path` or `glob`]")
    paths = tuple(dict.fromkeys(names[number] for number, _, _ in hits))
    return Found(text="\n".join([*(lines or ["[no match]"]), *walk.notes()]), paths=paths)


def check_pattern(pattern: str) -> None:
    """Raise Unusable if *pattern* is no regular expression."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise Unusable(f"`pattern` is no regular expression: {error}") from error


async def _ask_child(job: str) -> str:
    with trio.move_on_after(SECONDS):
        done = await trio.run_process(
            [sys.executable, "-I", "-S", search_child.__file__],
            stdin=job.encode(),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={},
        )
        if done.returncode != 0:
            raise Unusable("the search failed; try a simpler pattern")
        return done.stdout.decode()
    raise Unusable(f"the search took more than {SECONDS:g} s; simplify the pattern or narrow it")
