"""The directory of an embedded store: who holds it, its modes, and how it was left.

    <directory>/lock     held with flock while open; names the process
    <directory>/data/    the engine's files
    <directory>/clean    there after a clean stop only
    <directory>/new/     a copy of the living rows, until it takes the place of data
    <directory>/old/     what had that place before, until it is removed

The engine itself has no lock: two processes on one path read each other's bytes.
"""

import os
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from smista.core.errors import StorageError, StorageUnavailable

_OURS_ONLY: Final = 0o077
_LOCK_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def held(directory: Path) -> Generator[None]:
    """Hold *directory* for this process; raises StorageUnavailable naming who has it.

    The kernel lets go of the lock when the process ends, however it ends.
    """
    import fcntl

    descriptor = _lock_file(directory)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise StorageUnavailable(
                f"{str(directory)!r} is in use by process {holder}; stop it or use another path"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _lock_file(directory: Path) -> int:
    try:
        return os.open(directory / "lock", _LOCK_FLAGS, 0o600)
    except OSError as error:
        what = f"{str(directory)!r} cannot be locked"
        raise StorageUnavailable(f"{what}: {error.strerror}") from error


def prepare(directory: Path) -> None:
    """Make *directory* if need be; raises StorageError if it is not ours alone to use."""
    old = os.umask(_OURS_ONLY)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageUnavailable(f"{str(directory)!r} cannot be made: {error.strerror}") from error
    finally:
        os.umask(old)
    tighten(directory)


def tighten(directory: Path) -> None:
    """Close *directory* and all in it to others; raises StorageError for what is not ours."""
    _tighten_one(directory)
    for parent, folders, files in os.walk(directory):
        for name in (*folders, *files):
            _tighten_one(Path(parent, name))


def _tighten_one(path: Path) -> None:
    found = path.lstat()
    if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        raise StorageError(f"{str(path)!r} is neither a file nor a directory; remove it")
    if found.st_uid != os.geteuid():
        raise StorageError(f"{str(path)!r} belongs to user {found.st_uid}; give it to yourself")
    if found.st_mode & _OURS_ONLY:
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OURS_ONLY)


def size(directory: Path) -> int:
    """Return the bytes of the engine's files."""
    return sum(path.lstat().st_size for path in (directory / "data").rglob("*") if path.is_file())


def fresh(directory: Path) -> Path:
    """Return where a copy of the engine's files is built."""
    return directory / "new"


def exchange(directory: Path) -> None:
    """Put a finished copy in the place of the engine's files; nobody may have them open."""
    new, data, old = fresh(directory), directory / "data", directory / "old"
    for path in (*new.rglob("*"), new):
        _sync(path)
    data.rename(old)
    _sync(directory)
    new.rename(data)
    _sync(directory)
    shutil.rmtree(old)


def settle(directory: Path) -> None:
    """Undo or complete an exchange that was cut short; a copy that was not in place is removed."""
    data, old = directory / "data", directory / "old"
    if old.exists() and not data.exists():
        old.rename(data)
        _sync(directory)
    for left in (fresh(directory), old):
        if left.exists():
            shutil.rmtree(left)


def begin(directory: Path) -> bool:
    """Note that the store is in use; return False if its last stop was not clean."""
    mark = directory / "clean"
    clean = mark.exists() or not (directory / "data").exists()
    mark.unlink(missing_ok=True)
    _sync(directory)
    return clean


def finish(directory: Path) -> None:
    """Note a clean stop; the engine must have let go of its files."""
    descriptor = os.open(directory / "clean", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    os.close(descriptor)
    _sync(directory)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
