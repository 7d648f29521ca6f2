"""A project's `.smista` folder, made so that git leaves the keys in it alone."""

import os
from pathlib import Path
from typing import Final

from smista.local.paths import NotOurs, replacing, write_all

IGNORED: Final = ("secrets", "secrets*")


def keep_out_of_git(folder: Path) -> None:
    """Make *folder* and have git ignore the keys in it. Raises NotOurs.

    Nothing is read or written through a link: the folder may have come from anywhere.
    """
    ignore = folder / ".gitignore"
    for path in (folder, ignore):
        if path.is_symlink():
            raise NotOurs(f"{path} leads elsewhere; remove the link and try again")
    folder.mkdir(mode=0o700, exist_ok=True)
    lines = ignore.read_text("utf-8").splitlines() if ignore.exists() else []
    missing = [line for line in IGNORED if line not in lines]
    if not missing:
        return
    with replacing(ignore) as handle:
        os.fchmod(handle, 0o644)
        write_all(handle, ("\n".join([*lines, *missing]) + "\n").encode())
