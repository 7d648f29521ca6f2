"""Which repository git would use in a folder, and what it could make git run or show.

git itself is asked: only its own way to find and to read a configuration counts, and whoever
reads one another way can be misled. Neither question runs anything that the folder brought along.
Everything blocks.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

SECONDS: Final = 5.0
_MAX_NAMED: Final = 20
_RUNS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"core\.(fsmonitor|hookspath|sshcommand|gitproxy|alternaterefscommand)",
        # Another folder in the place of this one; objects that are fetched when they are missed.
        r"core\.worktree|extensions\.partialclone|remote\..*\.promisor",
        r"gpg\..*",
        r"filter\..*",
        r"diff\.(.*\.)?(command|textconv|external)",
        r"include(if)?\..*",
        r"alias\..*",
        r"extensions\.worktreeconfig",
    )
)


def common_folder(root: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the folder with the configuration that git obeys in *root*; None without any.

    Raises OSError if git cannot be asked.
    """
    asked = _ask(("rev-parse", "--git-common-dir"), root, environ)
    if asked is None:
        return None
    return root / os.fsdecode(asked.removesuffix(b"\n"))


def risky_keys(config: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the keys of *config* that could make git run or read something else, sorted.

    Raises OSError if it cannot be read.
    """
    if not os.path.lexists(config):
        return []
    listing = ("--no-includes", "--null", "--name-only", "--list")
    # In a folder that is nobody's repository.
    said = _ask(("config", "--file", str(config), *listing), Path("/"), environ)
    if said is None:
        raise OSError(f"{config} cannot be read")
    keys = {key.lower() for key in said.decode(errors="replace").split("\0")}
    return sorted(key for key in keys if any(one.fullmatch(key) for one in _RUNS))


def names_bare_content(words: Sequence[str], root: Path, environ: Mapping[str, str]) -> bool:
    """Return whether one of *words* is a file or a folder by its id, without where it stands.

    Where that cannot be found out, it counts as one. *root* has nothing risky in its configuration.
    """
    revisions = takewhile(lambda word: word != "--", words)
    named = {name for word in revisions for name in _objects(word)}
    if len(named) > _MAX_NAMED:
        return True
    try:
        kinds = [_ask(("cat-file", "-t", f"{name}^{{}}"), root, environ) for name in named]
    except OSError:
        return True
    return any(kind in (b"blob\n", b"tree\n") for kind in kinds)


def _objects(word: str) -> Iterator[str]:
    """Yield what *word* could name to git: the ends of a range, what is before a colon."""
    for end in re.split(r"\.\.\.?", word):
        name = end.partition(":")[0].removeprefix("^")
        if name and not name.startswith("-"):
            yield name


def _ask(words: Sequence[str], folder: Path, environ: Mapping[str, str]) -> bytes | None:
    """Return what git says, None if it fails. Raises OSError."""
    # GIT_DIR and its like would point git at another folder.
    plain = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    try:
        asked = subprocess.run(
            ["git", *words],
            cwd=folder,
            env=plain,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError("git did not answer") from error
    return asked.stdout if asked.returncode == 0 else None
