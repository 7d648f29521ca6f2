"""Before-images: what each changed file was, byte for byte, before smista wrote to it.

A record is durable before the file is touched. Whether the change was made is not written down:
the file itself says it. Diffs that a router stores are masked and never used to go back.
"""

import json
from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from cli.files import Seen, Unusable, see
from cli.session_folder import SessionFolder
from smista.local.paths import create_private, read_private

MAX_CHANGES: Final = 1000
"""Changes of one session that can be undone; of more, the newest."""
MAX_BYTES: Final = 256 * 1024 * 1024
"""Bytes that one session's records take."""

Kind = Literal["change", "undo", "redo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One file before and after one change. *before* None: there was none; *after* alike.

    *after* is a digest. *made* are folders that the change made. *of*: the record that an `undo`
    or `redo` takes back.
    """

    number: int
    kind: Kind
    what: str
    name: str
    real: Path
    before: bytes | None
    mode: int | None
    after: str | None
    made: tuple[Path, ...]
    at: datetime
    of: int | None = None


def digest(content: bytes | None) -> str | None:
    return None if content is None else sha256(content).hexdigest()


class ChangeStore:
    """The records of one session, in the order of their numbers. Everything blocks."""

    def __init__(self, folder: SessionFolder) -> None:
        self._folder = folder

    def keep(
        self,
        seen: Seen,
        after: bytes | None,
        *,
        what: str,
        name: str,
        kind: Kind = "change",
        of: int | None = None,
    ) -> Record | None:
        """Keep what was *seen* before it is replaced by *after*; None if it may not be kept.

        Raises OSError if it cannot be: then the file has to stay as it is.
        """
        record = Record(
            number=self._next(),
            kind=kind,
            what=what,
            name=name,
            real=seen.real,
            before=seen.content,
            mode=seen.mode,
            after=digest(after),
            made=_made(seen) if after is not None else (),
            at=datetime.now(UTC),
            of=of,
        )
        while (text := self._text(record)) is not None:
            if create_private(self._path(record.number), text.encode()):
                self._trim()
                return record
            # Another process keeps changes of this session as well.
            record = replace(record, number=self._next())
        return None

    def _text(self, record: Record) -> str | None:
        return self._folder.sealer.seal(json.dumps(_members(record)))

    def drop(self, record: Record) -> None:
        """Forget a change that was not made."""
        self._path(record.number).unlink(missing_ok=True)

    def drop_if_unmade(self, record: Record) -> None:
        """Forget a change that failed, unless the file is not as it was all the same."""
        with suppress(Unusable):
            if digest(see(record.real).content) == digest(record.before):
                self.drop(record)

    def records(self) -> tuple[Record, ...]:
        """Return all that can be read, oldest first."""
        found = (self._read(path) for path in self._paths())
        return tuple(record for record in found if record is not None)

    def _read(self, path: Path) -> Record | None:
        content = read_private(path)
        try:
            text = None if content is None else self._folder.sealer.unseal(content.decode())
            return None if text is None else _record(json.loads(text))
        except (ValueError, KeyError, TypeError):
            return None  # a disk that failed has damaged it; the others are still good

    def _next(self) -> int:
        paths = self._paths()
        return int(paths[-1].name) + 1 if paths else 1

    def _path(self, number: int) -> Path:
        return self._folder.part("changes") / f"{number:08}"

    def _paths(self) -> list[Path]:
        # Beside the records there may be what a killed process was still writing.
        folder = self._folder.part("changes")
        return sorted(path for path in folder.iterdir() if path.name.isdigit())

    def _trim(self) -> None:
        total, kept = 0, 0
        for path in reversed(self._paths()):
            total, kept = total + path.stat().st_size, kept + 1
            if kept > 1 and (kept > MAX_CHANGES or total > MAX_BYTES):
                path.unlink(missing_ok=True)


def _made(seen: Seen) -> tuple[Path, ...]:
    """Return the folders that are missing on the way to the file, the innermost first."""
    return tuple(seen.real.parents[at] for at in range(len(seen.missing)))


def _members(record: Record) -> dict[str, Any]:
    before = None if record.before is None else b64encode(record.before).decode()
    return {
        "number": record.number,
        "kind": record.kind,
        "what": record.what,
        "name": record.name,
        "real": str(record.real),
        "before": before,
        "mode": record.mode,
        "after": record.after,
        "made": [str(path) for path in record.made],
        "at": record.at.isoformat(),
        "of": record.of,
    }


def _record(members: dict[str, Any]) -> Record:
    before = members["before"]
    return Record(
        number=members["number"],
        kind=members["kind"],
        what=members["what"],
        name=members["name"],
        real=Path(members["real"]),
        before=None if before is None else b64decode(before),
        mode=members["mode"],
        after=members["after"],
        made=tuple(map(Path, members["made"])),
        at=datetime.fromisoformat(members["at"]),
        of=members["of"],
    )
