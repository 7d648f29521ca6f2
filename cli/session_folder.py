"""What the client itself keeps of a session: one private folder, and its text sealed where it must.

A session folder holds the calls of a run that goes on, the before-images of changes, and whether
restricted content was in view. It is found by the session's id and goes when it is old.
"""

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from cli.surroundings import Surroundings
from smista.local.paths import Places, private_directory, read_private, write_private

KEPT_DAYS: Final = 30
"""Days after which a folder that nothing was written to is removed."""
_DAY: Final = 86_400.0
_PROJECT: Final = "project"
_IN_VIEW: Final = "restricted-in-view"


class Sealer(Protocol):
    """Makes text unreadable at rest, and readable again."""

    def seal(self, text: str) -> str | None:
        """Return *text* as it may be kept; None if it may not be kept at all."""
        ...

    def unseal(self, kept: str) -> str | None:
        """Return the text again; None if it cannot be read here."""
        ...


class Clear:
    """Keeps text as it is: for sessions that are not encrypted."""

    def seal(self, text: str) -> str | None:
        return text

    def unseal(self, kept: str) -> str | None:
        return kept


class Withheld:
    """Keeps no text: for encrypted sessions whose key is not here."""

    def seal(self, text: str) -> str | None:
        return None

    def unseal(self, kept: str) -> str | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFolder:
    """Everything in it blocks. Made by `session_folder`."""

    path: Path
    root: Path
    sealer: Sealer

    def part(self, name: str) -> Path:
        """Return the folder *name* in it; it is there afterwards."""
        self._open()
        return private_directory(self.path / name)

    def is_of_project(self) -> bool:
        """Return whether the session was one of the project at *root*."""
        return read_private(self.path / _PROJECT) == self._project()

    def was_restricted_in_view(self) -> bool:
        return read_private(self.path / _IN_VIEW) is not None

    def note_restricted_in_view(self) -> None:
        self._open()
        write_private(self.path / _IN_VIEW, b"")

    def _open(self) -> None:
        if not self.path.is_dir():
            private_directory(self.path)
            write_private(self.path / _PROJECT, self._project())

    def _project(self) -> bytes:
        # A digest: where the project lies may be nobody's business either.
        return sha256(str(self.root).encode("utf-8", "surrogateescape")).hexdigest().encode()


def session_folder(here: Surroundings, session_id: str, sealer: Sealer) -> SessionFolder:
    """Return the folder of a session. Raises ValueError if that is no session's id."""
    path = _top(here.places) / str(UUID(session_id))
    return SessionFolder(path=path, root=here.root, sealer=sealer)


def kept_sessions(places: Places) -> Iterator[Path]:
    """Yield the folders of all sessions, the one written to last first."""
    top = _top(places)
    found = list(top.iterdir()) if top.is_dir() else []
    folders = [path for path in found if path.is_dir() and _is_session(path.name)]
    yield from sorted(folders, key=_written, reverse=True)


def remove_folder(places: Places, session_id: str) -> None:
    """Remove what is kept here of a session that was deleted."""
    shutil.rmtree(_top(places) / str(UUID(session_id)), ignore_errors=True)


def sweep(places: Places, now: float) -> None:
    """Remove the folders that nothing was written to for KEPT_DAYS."""
    for folder in kept_sessions(places):
        if now - _written(folder) >= KEPT_DAYS * _DAY:
            shutil.rmtree(folder, ignore_errors=True)


def _is_session(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False  # somebody else put it there


def _written(folder: Path) -> float:
    try:
        inner = [folder, *(path for path in folder.iterdir() if path.is_dir())]
        return max(path.stat().st_mtime for path in inner)
    except FileNotFoundError:
        return math.inf  # its session was deleted just now


def _top(places: Places) -> Path:
    return places.config / "sessions"
