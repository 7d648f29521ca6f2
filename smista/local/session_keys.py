"""The keys of encrypted sessions: one private file each, and which session each belongs to.

A key is durable before its session is made, for without it nothing of the session can be read
again. A name from elsewhere becomes a file name only once it has the shape of a fingerprint or
of a session's id.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from pydantic import SecretStr

from smista.core.session_key import BadKey, SessionKey, is_key_id
from smista.local.paths import (
    NotOurs,
    Places,
    open_private,
    private_directory,
    read_private,
    sync_directory,
    write_all,
    write_private,
)

_SESSIONS: Final = "sessions"


class DamagedKey(NotOurs):
    """A key file that does not hold the key it is named after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldKey:
    """A key that is here, and the sessions it opens; *damaged*: the file holds another or none."""

    key_id: str
    path: Path
    sessions: tuple[str, ...]
    damaged: bool


class SessionKeys:
    """The key files of one user. Everything here blocks; what it writes is durable."""

    def __init__(self, places: Places) -> None:
        self._personal = places.personal
        self._folder = places.personal / "e2e"
        self._records = self._folder / _SESSIONS

    def path(self, key_id: str) -> Path:
        """Return the file of the key *key_id*. Raises NotOurs for what is no fingerprint."""
        if not is_key_id(key_id):
            raise NotOurs(f"{key_id[:64]!r} is no key id: kf_ and 43 characters of base64url")
        return self._folder / key_id

    def store(self, key: SessionKey) -> Path:
        """Keep *key* and return its file. One that is there already stays; a damaged one goes."""
        self._open_folder()
        path = self.path(key.key_id)
        content = f"{key.text().get_secret_value()}\n".encode()
        try:
            handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except NotOurs:
            if self._is_sound(path, key.key_id):
                return path
            write_private(path, content)
            return path
        try:
            # Whatever the umask: a key that cannot be read again is lost.
            os.fchmod(handle, 0o600)
            write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_directory(self._folder)
        return path

    def find(self, key_id: str) -> SessionKey | None:
        """Return the key *key_id*, None if it is not here. Raises NotOurs, DamagedKey."""
        path = self.path(key_id)
        content = read_private(path) if self._enter() else None
        if content is None:
            return None
        key = _parse(content)
        if key is None or key.key_id != key_id:
            raise DamagedKey(
                f"{path} does not hold the key it is named after; bring the key from a backup or "
                "another machine with: smista keys import"
            )
        return key

    def remove(self, key_id: str) -> bool:
        """Delete the key *key_id*; return whether it was there."""
        path = self.path(key_id)
        return self._enter() and _unlink(path)

    # --- which session has which key ---------------------------------------------------------

    def record(self, session_id: str, key_id: str) -> None:
        """Note that the session *session_id* is encrypted with *key_id*."""
        self.path(key_id)
        self._open_folder()
        private_directory(self._records, real=True)
        write_private(self._record(session_id), f"{key_id}\n".encode())

    def recorded(self, session_id: str) -> str | None:
        """Return the key id noted for *session_id*; None for a session that is not noted."""
        record = self._record(session_id)
        content = read_private(record) if self._enter() else None
        if content is None:
            return None
        key_id = content.decode("ascii", "replace").strip()
        if not is_key_id(key_id):
            raise DamagedKey(
                f"{record} should name the session's key and does not; remove "
                "it to take the router's word for which key it is"
            )
        return key_id

    def forget(self, session_id: str) -> bool:
        """Delete what is kept for a deleted session, its key too; return if a key was there.

        A key that another session uses as well stays.
        """
        key_id = self.recorded(session_id)
        if key_id is None:
            return False
        gone = self._users().get(key_id, []) == [_name(session_id)] and self.remove(key_id)
        # Last: after a crash in between the key is found again.
        _unlink(self._record(session_id))
        return gone

    def held(self) -> tuple[HeldKey, ...]:
        """Return all keys that are here, by id."""
        users = self._users()
        return tuple(
            HeldKey(
                key_id=path.name,
                path=path,
                sessions=tuple(sorted(users.get(path.name, []))),
                damaged=not self._is_sound(path, path.name),
            )
            for path in self._files(self._folder)
            if is_key_id(path.name)
        )

    def lost(self) -> dict[str, str]:
        """Return the noted sessions whose key is not here: session id → key id."""
        return {
            session: key_id
            for key_id, sessions in self._users().items()
            for session in sessions
            if not self.path(key_id).exists()
        }

    def _users(self) -> dict[str, list[str]]:
        users: dict[str, list[str]] = {}
        for path in self._files(self._records):
            with suppress(ValueError, NotOurs):
                key_id = self.recorded(path.name)
                if key_id is not None:
                    users.setdefault(key_id, []).append(path.name)
        return users

    def _record(self, session_id: str) -> Path:
        return self._records / _name(session_id)

    def _is_sound(self, path: Path, key_id: str) -> bool:
        try:
            content = read_private(path)
        except NotOurs:
            return False
        key = _parse(content) if content is not None else None
        return key is not None and key.key_id == key_id

    def _open_folder(self) -> None:
        private_directory(self._personal)
        private_directory(self._folder, real=True)

    def _enter(self) -> bool:
        """Return whether there is anything; raise NotOurs if somebody else put it there."""
        for folder in (self._folder, self._records):
            if os.path.lexists(folder):
                private_directory(folder, real=True)
        return self._folder.is_dir()

    def _files(self, folder: Path) -> list[Path]:
        if not self._enter() or not folder.is_dir():
            return []
        return sorted(path for path in folder.iterdir() if path.is_symlink() or path.is_file())


def _name(session_id: str) -> str:
    # One spelling, and nothing that could lead elsewhere.
    return str(UUID(session_id))


def _parse(content: bytes) -> SessionKey | None:
    try:
        return SessionKey.parse(SecretStr(content.decode("ascii")))
    except (BadKey, UnicodeDecodeError):
        return None


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    sync_directory(path.parent)
    return True
