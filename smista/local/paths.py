"""Where smista keeps things on this machine, and how tightly they are kept.

Directories are 0700 and files 0600: made so, tightened when found looser, refused when they
are not ours. Nothing here reads configuration.
"""

import os
import stat
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex


class NotOurs(Exception):
    """A file or directory of smista belongs to someone else or is not what it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The directories of one user. *keyring*: whether the system keyring may be asked."""

    config: Path
    personal: Path
    runtime: Path
    keyring: bool = True

    @property
    def policy_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def router_file(self) -> Path:
        return self.config / "router.toml"

    @property
    def database(self) -> Path:
        return self.config / "db"

    @property
    def log_file(self) -> Path:
        return self.config / "router.log"

    def holds(self, path: Path) -> bool:
        """Return whether the real *path* is one of smista's own files, which no tool may touch."""
        own = (self.config, self.personal, self.runtime)
        return any(path.is_relative_to(place.resolve()) for place in own)


def find_places(environ: Mapping[str, str], home: Path) -> Places:
    """Return the places; `SMISTA_HOME` replaces them all and turns the keyring off."""
    chosen = environ.get("SMISTA_HOME")
    if chosen:
        root = Path(chosen).absolute()
        return Places(config=root, personal=root, runtime=root / "run", keyring=False)
    config = home / ".config" / "smista"
    return Places(config=config, personal=home / ".smista", runtime=_runtime(environ, config))


def _runtime(environ: Mapping[str, str], config: Path) -> Path:
    # After `su` the variable may still name the directory of another user.
    given = environ.get("XDG_RUNTIME_DIR")
    if given and os.path.isdir(given) and os.stat(given).st_uid == os.geteuid():
        return Path(given) / "smista"
    return config / "run"


def find_root(start: Path, home: Path) -> Path:
    """Return the project root of *start*: nearest `.smista/`, else nearest `.git`, else itself.

    Directories above *home* are never taken, nor *home* itself for something below it.
    """
    candidates = [start, *start.parents]
    if start.is_relative_to(home):
        candidates = candidates[: max(1, candidates.index(home))]
    for marker in (".smista", ".git"):
        for candidate in candidates:
            if (candidate / marker).exists():
                return candidate
    return start


def private_directory(path: Path, *, real: bool = False) -> Path:
    """Make *path* a directory that only we can enter, and return it.

    *real* refuses a symbolic link in its place. Raises NotOurs.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDONLY | os.O_DIRECTORY | (os.O_NOFOLLOW if real else 0)
    try:
        handle = os.open(path, flags)
    except NotADirectoryError as error:
        raise NotOurs(f"{path} is not a real directory; remove it and try again") from error
    except OSError as error:
        raise NotOurs(f"{path} cannot be entered: {error.strerror}") from error
    try:
        _tighten(handle, path, 0o700)
    finally:
        os.close(handle)
    return path


def open_private(path: Path, flags: int) -> int:
    """Open *path* without following a link and return its descriptor; the file is 0600.

    Raises NotOurs for a link, a special file or a file of another user, FileNotFoundError when
    it is not there and *flags* does not create it.
    """
    # O_NONBLOCK: a FIFO planted in its place must not hold us.
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotOurs(f"{path} cannot be opened safely: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NotOurs(f"{path} is not a regular file; remove it and try again")
        _tighten(handle, path, 0o600)
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_private(path: Path) -> bytes | None:
    """Return the content of *path*, or None if there is no such file."""
    try:
        handle = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Replace *path* by *content* in one step; durable when it returns."""
    with replacing(path) as handle:
        os.fchmod(handle, 0o600)
        write_all(handle, content)


def create_private(path: Path, content: bytes) -> bool:
    """Put *content* at *path*, whole and durable or not at all; False if something is there."""
    beside = path.with_name(f".{path.name}.{token_hex(8)}")
    write_private(beside, content)
    try:
        return _named_anew(beside, path)
    finally:
        beside.unlink(missing_ok=True)
        sync_directory(path.parent)


def _named_anew(beside: Path, path: Path) -> bool:
    try:
        os.link(beside, path)
    except FileExistsError:
        return False
    except OSError:
        if os.path.lexists(path):
            return False
        os.replace(beside, path)  # not every file system has hard links
    return True


def write_all(handle: int, content: bytes) -> None:
    """Write all of *content*; the system may take it in several bites."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


@contextmanager
def replacing(path: Path) -> Generator[int]:
    """Lend a new file's descriptor; on leaving it takes the place of *path*, or is removed."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        yield handle
        os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        os.close(handle)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make durable which files are in *path*."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _tighten(handle: int, path: Path, mode: int) -> None:
    status = os.fstat(handle)
    if status.st_uid != os.geteuid():
        raise NotOurs(f"{path} belongs to another user; smista does not use it")
    if stat.S_IMODE(status.st_mode) & 0o077:
        os.fchmod(handle, mode)
