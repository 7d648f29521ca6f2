"""Text files of the project: seen whole, and replaced only where they are still what was seen.

A real path is opened folder by folder without following a link, so that what was checked is what
is opened, whoever moves things about meanwhile.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

from smista.local.paths import write_all

MAX_FILE: Final = 5 * 1024 * 1024
"""Bytes that a tool takes in or writes at once."""

# Where a folder may be passed through but not listed, only O_PATH opens it.
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Identity = tuple[int, int]
"""Device and inode."""


class Unusable(Exception):
    """Something asked for cannot be done; the text tells whoever asked why."""


class Differs(Unusable):
    """A file is not any more what was shown of it."""

    def __init__(self) -> None:
        super().__init__("the file changed since the change was shown; read it again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file as it was looked at. *content* and *file* are None where there was none.

    *folder* is the nearest folder that there was, *missing* the names below it that were not.
    """

    real: Path
    content: bytes | None
    file: Identity | None
    mode: int | None
    folder: Identity
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    """An opened folder, and the names of those that are missing below it."""

    handle: int
    missing: tuple[str, ...]

    @property
    def identity(self) -> Identity:
        return _identity(os.fstat(self.handle))


def read_file(real: Path) -> bytes | None:
    """Return all of *real*, None if nothing is there. Raises Unusable.

    No link is followed, and a FIFO does not hold us.
    """
    return see(real).content


def see(real: Path) -> Seen:
    """Return what is at *real*. Raises Unusable for what is no file or too large to be taken in."""
    try:
        with _nearest(real.parent) as folder:
            status, content = _content(real.name, folder)
            return Seen(
                real=real,
                content=content,
                file=None if status is None else _identity(status),
                mode=None if status is None else stat.S_IMODE(status.st_mode),
                folder=folder.identity,
                missing=folder.missing,
            )
    except OSError as error:
        raise Unusable(f"{real.name} cannot be opened: {error.strerror}") from error


def _content(name: str, folder: _Folder) -> tuple[os.stat_result | None, bytes | None]:
    if folder.missing:
        return None, None
    try:
        # A device may do something when it is opened.
        _regular(os.stat(name or ".", dir_fd=folder.handle, follow_symlinks=False), name)
        handle = os.open(name or ".", _READ, dir_fd=folder.handle)
    except FileNotFoundError:
        return None, None
    try:
        status = _regular(os.fstat(handle), name)
        return status, _whole(handle, name)
    finally:
        os.close(handle)


def _regular(status: os.stat_result, name: str) -> os.stat_result:
    if stat.S_ISLNK(status.st_mode):
        raise Differs  # real paths hold no links, so it was put there just now
    if not stat.S_ISREG(status.st_mode):
        raise Unusable(f"{name} is not a regular file")
    if status.st_size > MAX_FILE:
        raise Unusable(f"{name} is larger than {MAX_FILE} bytes")
    return status


def _whole(handle: int, name: str) -> bytes:
    try:
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(MAX_FILE + 1)
    except OSError as error:
        raise Unusable(f"{name} cannot be read: {error.strerror}") from error
    # What the system makes up as it is read, and what grows, has no size beforehand.
    if len(content) > MAX_FILE:
        raise Unusable(f"{name} is larger than {MAX_FILE} bytes")
    return content


def decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unusable(f"{name} is not UTF-8 text") from error


def replace_file(seen: Seen, after: bytes | None, umask: int, *, mode: int | None = None) -> None:
    """Put *after* in the place of what was *seen*; None removes the file.

    It gets *mode*, else the one it had, else *umask*'s. Raises Differs, and has written nothing,
    if there is anything else by now than what was seen; Unusable if it cannot be written.
    """
    try:
        with _nearest(seen.real.parent) as nearest:
            _compare(seen, nearest)
            with _made(nearest, 0o777 & ~umask) as folder:
                if after is None:
                    os.unlink(seen.real.name, dir_fd=folder)
                else:
                    _put(seen, after, mode, folder, umask)
                _sync(folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Differs from error
        raise Unusable(f"not written: {error.strerror}") from error


def _compare(seen: Seen, folder: _Folder) -> None:
    if (folder.identity, folder.missing) != (seen.folder, seen.missing):
        raise Differs
    status, content = _content(seen.real.name, folder)
    if content != seen.content or (status and _identity(status)) != seen.file:
        raise Differs


def _put(seen: Seen, after: bytes, mode: int | None, folder: int, umask: int) -> None:
    name, temporary = seen.real.name, f".smista-{token_hex(8)}"
    handle = os.open(temporary, _NEW, 0o600, dir_fd=folder)
    try:
        if seen.file is not None:
            _keep_owner(handle, name, folder)
        kept = seen.mode if mode is None else mode
        # New content never runs as somebody else: any other write takes these bits away as well.
        os.fchmod(handle, 0o666 & ~umask if kept is None else kept & ~(stat.S_ISUID | stat.S_ISGID))
        write_all(handle, after)
        os.fsync(handle)
        if seen.file is None:
            _place_new(temporary, name, folder)
        else:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(handle)
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)


def _keep_owner(handle: int, name: str, folder: int) -> None:
    old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    with suppress(PermissionError):
        os.fchown(handle, old.st_uid, old.st_gid)


def _place_new(temporary: str, name: str, folder: int) -> None:
    """Give the file its *name*, unless somebody has just put something there."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError as error:
        raise Differs from error
    except OSError:
        # Not every file system has hard links.
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def _nearest(real: Path) -> Generator[_Folder]:
    """Lend the nearest folder there is on the way to *real*, opened without following a link."""
    handle = os.open("/", _FOLDER)
    missing: tuple[str, ...] = ()
    try:
        for at, part in enumerate(real.parts[1:], 1):
            try:
                inner = os.open(part, _FOLDER, dir_fd=handle)
            except FileNotFoundError:
                missing = real.parts[at:]
                break
            os.close(handle)
            handle = inner
        yield _Folder(handle=handle, missing=missing)
    finally:
        os.close(handle)


@contextmanager
def _made(folder: _Folder, mode: int) -> Generator[int]:
    """Make what is missing below *folder*, and lend the innermost. If the body fails, it goes."""
    handles = [os.dup(folder.handle)]
    try:
        for name in folder.missing:
            try:
                os.mkdir(name, mode, dir_fd=handles[-1])
            except FileExistsError as error:
                raise Differs from error
            handles.append(os.open(name, _FOLDER, dir_fd=handles[-1]))
            # Our own umask is stricter than the user's.
            os.chmod(".", mode, dir_fd=handles[-1])
        yield handles[-1]
    except BaseException:
        _unmake(folder.missing, handles)
        raise
    finally:
        for handle in handles:
            os.close(handle)


def _unmake(names: tuple[str, ...], handles: list[int]) -> None:
    for name, above in reversed(list(zip(names, handles[:-1], strict=False))):
        with suppress(OSError):  # somebody uses it by now
            os.rmdir(name, dir_fd=above)


def _sync(folder: int) -> None:
    with suppress(PermissionError):  # a folder that may be written to but not read
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def lines_of(text: str) -> list[str]:
    """Return the lines of *text* with their ends."""
    # Not splitlines(): it also cuts at form feeds and U+2028, which end no line of a file.
    *whole, rest = text.split("\n")
    lines = [f"{line}\n" for line in whole]
    return [*lines, rest] if rest else lines


def is_crlf(content: bytes) -> bool:
    """Return whether every line of *content* ends in CRLF."""
    ends = content.count(b"\n")
    return ends > 0 and content.count(b"\r\n") == ends
