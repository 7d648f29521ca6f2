"""The secret by which a router of this machine proves to be its user's: made by the first router.

All routers of one user share it; it stays when they leave, so that none disowns another.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr

from smista.local.paths import (
    NotOurs,
    Places,
    open_private,
    private_directory,
    read_private,
    write_all,
)


def secret_file(places: Places) -> Path:
    return places.runtime / "router.secret"


def make_secret(places: Places) -> SecretStr:
    """Return the user's secret, made if there is none. Raises NotOurs."""
    private_directory(places.runtime, real=True)
    known = find_secret(places)
    if known is None:
        _create(secret_file(places))
        known = find_secret(places)
    if known is None:
        raise NotOurs(f"{secret_file(places)} does not keep what is written to it")
    return known


def find_secret(places: Places) -> SecretStr | None:
    """Return the user's secret, None before the first router ran. Raises NotOurs."""
    text = (read_private(secret_file(places)) or b"").decode("ascii", "replace").strip()
    return SecretStr(text) if text else None


def _create(path: Path) -> None:
    # Written beside it and linked into place: a second router that starts meanwhile either finds
    # all of the first one's secret or none.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(handle, secrets.token_hex(32).encode())
        os.fsync(handle)
        if path.exists() and not path.stat().st_size:
            path.unlink()
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(handle)
        draft.unlink()
