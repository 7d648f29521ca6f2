"""Which project files the user has looked at and trusts: by path, and by the hash of their bytes.

Kept in the global directory, where no project can write. A changed file is a new question.
"""

import json
from pathlib import Path
from typing import Any, Final, cast

from smista.local.paths import Places, private_directory, read_private, write_private

_KEPT: Final = 32
"""Versions of one file that are remembered: branches of a project differ in their policy."""


def is_trusted(places: Places, file: Path, digest: str) -> bool | None:
    """Return the user's word on these bytes of *file*; None if nobody has asked yet."""
    said: object = _read(places).get(_name(file), {}).get(digest)
    return said if isinstance(said, bool) else None


def remember(places: Places, file: Path, digest: str, *, trusted: bool) -> None:
    """Keep the user's word on these bytes of *file*; durable when it returns. Raises NotOurs."""
    entries = _read(places)
    versions = {d: said for d, said in entries.get(_name(file), {}).items() if d != digest}
    newest = [*versions.items(), (digest, trusted)][-_KEPT:]
    entries[_name(file)] = dict(newest)
    private_directory(places.config)
    write_private(_file(places), json.dumps(entries, indent=1).encode())


def _read(places: Places) -> dict[str, dict[str, Any]]:
    content = read_private(_file(places))
    try:
        entries: object = json.loads(content or b"{}")
    except ValueError:
        return {}  # what cannot be read trusts nothing
    if not isinstance(entries, dict):
        return {}
    kept = cast("dict[str, object]", entries).items()
    return {file: cast("dict[str, Any]", word) for file, word in kept if isinstance(word, dict)}


def _name(file: Path) -> str:
    return str(file.resolve())


def _file(places: Places) -> Path:
    return places.config / "trusted.json"
