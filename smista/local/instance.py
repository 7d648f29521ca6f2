"""What this router is called among those that share a store: a name made once, kept in a file.

Leases are taken under it, and a router that starts clears those of its own name. So no two that
run may have the same one: whoever has it holds the file.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

from smista.core.errors import StorageUnavailable
from smista.local.paths import Places, open_private, private_directory, write_all

_LONGEST = 64


def instance_path(places: Places) -> Path:
    return places.config / "instance"


@contextmanager
def held_instance(file: Path) -> Generator[str]:
    """Hold *file* for this process and yield the name in it; makes both if need be.

    Raises NotOurs if the file is not ours to use, StorageUnavailable if a router that runs has it.
    """
    private_directory(file.parent)
    handle = open_private(file, os.O_RDWR | os.O_CREAT)
    try:
        _hold(handle, file)
        yield _known(handle) or _made(handle)
    finally:
        os.close(handle)


def _hold(handle: int, file: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StorageUnavailable(
            f"another router of this user is running under the name in {str(file)!r}; "
            "stop it, or give this one a home of its own with SMISTA_HOME"
        ) from None


def _known(handle: int) -> str | None:
    """Return the name that was kept; None if there is none, or only half of one."""
    text = os.pread(handle, _LONGEST, 0).decode(errors="replace").strip()
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _made(handle: int) -> str:
    name = str(uuid4())
    os.ftruncate(handle, 0)
    write_all(handle, f"{name}\n".encode())
    os.fsync(handle)
    return name
