"""The secret by which a router of this machine proves to be its user's: made by the first router.

All routers of one user share it; it stays when they leave, so that none disowns another.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from smista.local.paths import (
    NotOurs,
    Places,
    open_private,
    private_directory,
    read_private,
    write_all,
)

_NAME: Final = "router.secret"


def secret_file(places: Places) -> Path:
    return places.runtime / _NAME


def make_secret(places: Places) -> SecretStr:
    """Return the user's secret, made if there is none. Raises NotOurs."""
    private_directory(places.runtime, real=True)
    path = secret_file(places)
    known = _secret(path)
    if known is None:
        _create(path)
        known = _secret(path)
    if known is None:
        raise NotOurs(f"{path} is empty; remove it and try again")
    return known


def find_secrets(places: Places) -> tuple[SecretStr, ...]:
    """Return the secrets a router of this user may have. Raises NotOurs.

    There are several where the runtime directory depends on who asks: a desktop has one that a
    job of cron or a service knows nothing of.
    """
    found = (_secret(folder / _NAME) for folder in _folders(places))
    return tuple(each for each in found if each is not None)


def _folders(places: Places) -> dict[Path, None]:
    folders = [places.runtime, places.config / "run"]
    if places.keyring:  # else SMISTA_HOME is set, and has nothing to do with the user's own home
        folders.append(Path(f"/run/user/{os.geteuid()}/smista"))
    return dict.fromkeys(folders)


def _secret(path: Path) -> SecretStr | None:
    text = (read_private(path) or b"").decode("ascii", "replace").strip()
    return SecretStr(text) if text else None


def _create(path: Path) -> None:
    # Written beside it and linked into place: a second router that starts meanwhile either finds
    # all of the first one's secret or none.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(handle, secrets.token_hex(32).encode())
        os.fsync(handle)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(handle)
        draft.unlink()
