"""Where a command was called: directories, environment, global flags. Read once."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from smista.local.paths import Places, find_places, find_root
from smista.local.system_keyring import NoVault, SystemKeyring, Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """*umask* is the user's own, for files and programs that are the user's.

    *vault* is the system's keyring; where it is enforced, no file does in its place.
    """

    start: Path
    root: Path
    places: Places
    umask: int
    environ: Mapping[str, str] = field(repr=False)
    log_file: Path | None = None
    log_filter: str | None = None
    vault: Vault | None = None
    enforce_keyring: bool = False


def look_around(
    *,
    umask: int,
    log_file: str | None = None,
    log_filter: str | None = None,
    enforce_keyring: bool = False,
) -> Surroundings:
    """Return the surroundings of this process."""
    start, home = Path.cwd(), Path.home()
    places = find_places(os.environ, home)
    return Surroundings(
        start=start,
        root=find_root(start, home),
        places=places,
        umask=umask,
        environ=dict(os.environ),
        log_file=Path(log_file).absolute() if log_file else None,
        log_filter=log_filter,
        vault=SystemKeyring() if places.keyring else NoVault("SMISTA_HOME turns the keyring off"),
        enforce_keyring=enforce_keyring,
    )
