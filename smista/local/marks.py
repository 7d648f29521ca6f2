"""Which files in a project smista itself wrote: a keyed digest of each, in the global directory.

A folder from elsewhere may bring a file of keys. Taken for the user's own it would send their
prompts to somebody else's account.
"""

import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from smista.local.paths import (
    Places,
    open_private,
    private_directory,
    read_private,
    write_all,
    write_private,
)

_KEPT: Final = 2
"""The digest before a change and that after it: a crash in between leaves a file that counts."""


def mark(places: Places, file: Path, content: bytes) -> None:
    """Note that smista is about to write *content* into *file*; durable when it returns."""
    private_directory(places.config)
    entries = _read(places)
    digests = [*entries.get(_name(file), []), _digest(_key(places), file, content)]
    entries[_name(file)] = list(dict.fromkeys(reversed(digests)))[:_KEPT][::-1]
    write_private(_file(places), json.dumps(entries, indent=1).encode())


def is_marked(places: Places, file: Path, content: bytes) -> bool:
    """Say if smista wrote *content* into *file*, for this user on this machine."""
    key = read_private(_key_file(places))
    known = _read(places).get(_name(file), [])
    if not key:
        return False
    digest = _digest(key, file, content)
    return any(hmac.compare_digest(digest, each) for each in known)


def _digest(key: bytes, file: Path, content: bytes) -> str:
    return hmac.new(key, _name(file).encode() + b"\0" + content, "sha256").hexdigest()


def _key(places: Places) -> bytes:
    # Whoever comes second takes the first one's key.
    with suppress(FileExistsError):
        _make_key(_key_file(places))
    return read_private(_key_file(places)) or b""


def _make_key(path: Path) -> None:
    if path.exists():
        return
    handle = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        write_all(handle, secrets.token_hex(32).encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(places: Places) -> dict[str, list[str]]:
    try:
        entries: object = json.loads(read_private(_file(places)) or b"{}")
    except ValueError:
        return {}  # what cannot be read marks nothing
    if not isinstance(entries, dict):
        return {}
    kept = cast("dict[str, object]", entries).items()
    return {name: _texts(digests) for name, digests in kept}


def _texts(values: object) -> list[str]:
    listed = cast("list[object]", values) if isinstance(values, list) else []
    return [each for each in listed if isinstance(each, str)]


def _name(file: Path) -> str:
    return str(file.resolve())


def _file(places: Places) -> Path:
    return places.config / "marks.json"


def _key_file(places: Places) -> Path:
    return places.config / "mark.key"
