"""Which calls were begun and which are done, written down before anything is done.

So no call is done twice, whatever was killed meanwhile: a call that is done answers what it
answered, and one that was begun is begun again only if the user says so.
"""

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from cli.session_folder import SessionFolder
from smista.core.events import ToolRequest
from smista.core.messages import ToolResultEntry
from smista.local.paths import read_private, write_all, write_private

MAX_CALLS: Final = 2000
"""Calls of one run that are remembered."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STARTED: Final = "started"
_DONE: Final = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """It may have been done, in part or in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """It was done; *entry* is None where what came of it may not be kept."""

    entry: ToolResultEntry | None


class OtherCall(Exception):
    """A call's id stands for another call already."""


class CallJournal:
    """The calls of one session's run. Everything blocks. Raises OSError where it cannot write."""

    def __init__(self, folder: SessionFolder) -> None:
        self._folder = folder

    def recall(self, request: ToolRequest) -> Begun | Done | None:
        """Return what is known of *request*, None if it was never begun. Raises OtherCall."""
        content = read_private(self._path(request))
        if content is None:
            return None
        state, _, kept = content.decode().partition("\n")
        text = self._folder.sealer.unseal(kept) if kept else None
        entry = None if text is None else _read(text, request)
        return Done(entry=entry) if state == _DONE else Begun()

    def start(self, request: ToolRequest, *, again: bool = False) -> bool:
        """Note that *request* is begun, durably; return whether nobody else has begun it.

        *again*: the user agreed to begin anew what was begun before.
        """
        text = self._folder.sealer.seal(json.dumps({"call": _digest(request)})) or ""
        content = f"{_STARTED}\n{text}".encode()
        if again:
            write_private(self._path(request), content)
            return True
        self._trim()
        try:
            handle = os.open(self._path(request), _NEW, 0o600)
        except FileExistsError:
            return False
        try:
            write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        return True

    def finish(self, request: ToolRequest, entry: ToolResultEntry, *, bodies: bool = True) -> None:
        """Keep what came of *request*; without *bodies*, that it is done."""
        kept = {"call": _digest(request), "entry": entry.model_dump(mode="json")}
        text = self._folder.sealer.seal(json.dumps(kept)) if bodies else None
        write_private(self._path(request), f"{_DONE}\n{text or ''}".encode())

    def forget(self, request: ToolRequest) -> None:
        """Forget a call that was begun and touched nothing."""
        self._path(request).unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget all: the run is over and none of its calls can come again."""
        for path in self._calls().iterdir():
            path.unlink(missing_ok=True)

    def _trim(self) -> None:
        paths = list(self._calls().iterdir())
        for path in sorted(paths, key=_written)[: max(0, len(paths) - MAX_CALLS)]:
            path.unlink(missing_ok=True)

    def _calls(self) -> Path:
        return self._folder.part("calls")

    def _path(self, request: ToolRequest) -> Path:
        # The id was chosen by others, so it is no file name.
        return self._calls() / sha256(request.call_id.encode("utf-8", "replace")).hexdigest()


def _written(path: Path) -> float:
    return path.stat().st_mtime


def _digest(request: ToolRequest) -> str:
    call = json.dumps([request.name, dict(request.arguments)], sort_keys=True)
    return sha256(call.encode("utf-8", "replace")).hexdigest()


def _read(text: str, request: ToolRequest) -> ToolResultEntry | None:
    """Return the entry in *text*. Raises OtherCall if it is one of another call.

    One that lost its arguments has nothing but its id to be known by.
    """
    try:
        kept = json.loads(text)
        if kept["call"] != _digest(request) and not request.masked:
            raise OtherCall
        return ToolResultEntry.model_validate(kept["entry"]) if "entry" in kept else None
    except (ValueError, KeyError, TypeError, ValidationError):
        return None
