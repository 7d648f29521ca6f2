"""Prompts of earlier sessions, kept in a file of the global directory, one JSON value a line.

A prompt of an encrypted session is sealed with that session's key, and goes when the key goes.
One that begins with a blank is not kept.
"""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from cli.sealed_files import sealer_of
from cli.session_folder import Clear, Sealer
from cli.surroundings import Surroundings
from smista.local.paths import (
    open_private,
    private_directory,
    read_private,
    write_all,
    write_private,
)
from smista.sdk.errors import is_object

_MOST: Final = 1_000
_LONGEST: Final = 64 * 1024
"""Bytes of a prompt that is worth keeping."""

_BEGINNING: Final = 80
_TOO_LARGE: Final = 4 * 1024 * 1024


def history_path(here: Surroundings) -> Path:
    return here.places.config / "history"


def load_history(here: Surroundings) -> list[str]:
    """Return earlier prompts, oldest first. Blocks. Raises NotOurs, OSError."""
    content = read_private(history_path(here)) or b""
    lines = content.split(b"\n")[-_MOST - 1 :]
    if len(content) > _TOO_LARGE:
        write_private(history_path(here), b"\n".join(lines))
    return list(_prompts(lines, here))


def beginnings(here: Surroundings) -> dict[str, str]:
    """Return the first line of the first prompt of each encrypted session, by its id. Blocks."""
    known: dict[str, Sealer] = {}
    first: dict[str, str] = {}
    for kept in _lines((read_private(history_path(here)) or b"").split(b"\n")):
        session_id = kept.get("session") if is_object(kept) else None
        if isinstance(session_id, str) and session_id not in first:
            prompt = _opened(kept, known, partial(sealer_of, here))
            if prompt is not None:
                first[session_id] = prompt.strip().split("\n", 1)[0][:_BEGINNING]
    return first


def keep(here: Surroundings, prompt: str, *, session_id: str, sealed: bool) -> None:
    """Append *prompt* to the file. Blocks. Raises NotOurs, OSError."""
    if prompt[:1].isspace() or len(prompt) > _LONGEST:
        return
    kept = sealer_of(here, session_id).seal(prompt) if sealed else None
    if sealed and kept is None:
        return
    line: object = {"session": session_id, "sealed": kept} if sealed else prompt
    private_directory(here.places.config)
    handle = open_private(history_path(here), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        write_all(handle, json.dumps(line).encode() + b"\n")
    finally:
        os.close(handle)


def _prompts(lines: list[bytes], here: Surroundings) -> Iterator[str]:
    known: dict[str, Sealer] = {}
    for kept in _lines(lines):
        prompt = kept if isinstance(kept, str) else _opened(kept, known, partial(sealer_of, here))
        if prompt is not None:
            yield prompt


def _lines(lines: list[bytes]) -> Iterator[object]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue  # the end of a line that was not written whole


def _opened(kept: object, known: dict[str, Sealer], find: "partial[Sealer]") -> str | None:
    match cast("Any", kept):
        case {"session": str(session_id), "sealed": str(sealed)}:
            if session_id not in known:
                known[session_id] = find(session_id)
            sealer = known[session_id]
            # The session was deleted, and its key with it.
            return None if isinstance(sealer, Clear) else sealer.unseal(sealed)
        case _:
            return None
