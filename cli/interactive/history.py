"""Prompts of earlier sessions, kept in a file of the global directory, one JSON text a line.

Prompts of encrypted sessions are never written here. One that begins with a blank is not either.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cli.surroundings import Surroundings
from smista.local.paths import (
    open_private,
    private_directory,
    read_private,
    write_all,
    write_private,
)

_MOST: Final = 1_000
_LONGEST: Final = 64 * 1024
"""Bytes of a prompt that is worth keeping."""

_TOO_LARGE: Final = 2 * 1024 * 1024


def history_path(here: Surroundings) -> Path:
    return here.places.config / "history"


def load_history(here: Surroundings) -> list[str]:
    """Return earlier prompts, oldest first. Blocks. Raises NotOurs, OSError."""
    content = read_private(history_path(here))
    if content is None:
        return []
    prompts = list(_prompts(content))[-_MOST:]
    if len(content) > _TOO_LARGE:
        write_private(history_path(here), b"".join(map(_line, prompts)))
    return prompts


def keep(here: Surroundings, prompt: str) -> None:
    """Append *prompt* to the file. Blocks. Raises NotOurs, OSError."""
    line = _line(prompt)
    if prompt[:1].isspace() or len(line) > _LONGEST:
        return
    private_directory(here.places.config)
    handle = open_private(history_path(here), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        write_all(handle, line)
    finally:
        os.close(handle)


def _line(prompt: str) -> bytes:
    return json.dumps(prompt).encode() + b"\n"


def _prompts(content: bytes) -> Iterator[str]:
    for line in content.split(b"\n"):
        try:
            prompt: object = json.loads(line)
        except ValueError:
            continue  # the end of a line that was not written whole
        if isinstance(prompt, str):
            yield prompt
