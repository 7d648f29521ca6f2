"""Taking back what was changed: the last change first, and only where the file is still as it left.

What is taken back is kept as well, so that it can be had again. Everything blocks.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.change_store import ChangeStore, Kind, Record, digest
from cli.files import Seen, Unusable, lines_of, replace_file, see
from cli.sealed_files import sealer_of
from cli.session_folder import kept_sessions, session_folder
from cli.surroundings import Surroundings
from smista.core.proposals import unified

_COPIES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change and what taking it back would do. *shown* is the whole diff of that.

    *changed*: the file is not any more what the change left.
    """

    record: Record
    seen: Seen
    shown: str
    changed: bool

    @property
    def after(self) -> bytes | None:
        return self.record.before


class ChangedSince(Unusable):
    """Somebody wrote to the file after the change that is to be taken back."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} changed since; --force takes it back and keeps a copy")


class Undo:
    """The changes of one session as a person takes them back and makes them again."""

    def __init__(self, store: ChangeStore, umask: int) -> None:
        self._store = store
        self._umask = umask

    def has_any(self) -> bool:
        """Return whether anything was ever changed here, as far as it can be read."""
        return bool(self._store.records())

    def changes(self) -> tuple[Record, ...]:
        """Return the changes that are made now, the newest first."""
        return tuple(reversed(self._stacks()[0]))

    def undone(self) -> tuple[Record, ...]:
        """Return what was taken back and can be made again, the newest first."""
        return tuple(reversed(self._stacks()[1]))

    def next_step(self, *, redo: bool = False) -> Step | None:
        """Return what would be taken back next, or with *redo* made again. Raises Unusable."""
        for record in self.undone() if redo else self.changes():
            step = _step(record)
            # As it was before: smista was killed before the change, or somebody took it back.
            if digest(step.seen.content) != digest(record.before):
                return step
        return None

    def take(self, step: Step, *, force: bool = False) -> Path | None:
        """Do *step*; return the copy of the file that *force* has made, if it was needed.

        Raises ChangedSince without *force*, Differs if the file changed after *step* was shown.
        """
        record = step.record
        if step.changed and not force:
            raise ChangedSince(record.name)
        copy = self._copy(step.seen) if step.changed else None
        kind: Kind = "redo" if record.kind == "undo" else "undo"
        kept = self._store.keep(
            step.seen, step.after, what=kind, name=record.name, kind=kind, of=record.number
        )
        if kept is None:
            raise Unusable("nothing of this session may be kept here, so it stays as it is")
        try:
            if (step.after, step.seen.content) != (None, None):
                # Whoever changed its mode since meant it; only what comes back gets the old one.
                mode = record.mode if step.seen.file is None else None
                replace_file(step.seen, step.after, self._umask, mode=mode)
        except BaseException:
            self._store.drop(kept)
            raise
        if step.after is None:
            _remove_empty(record.made)
        return copy

    def diff(self) -> str:
        """Return what all changes that are made now come to, as one diff. Raises Unusable."""
        first: dict[Path, Record] = {}
        for record in self._stacks()[0]:
            first.setdefault(record.real, record)
        return "".join(_diff(r.name, r.before, see(r.real).content) for r in first.values())

    def _stacks(self) -> tuple[list[Record], list[Record]]:
        """Return the changes that are made and those that were taken back, the newest last."""
        made: list[Record] = []
        undone: list[Record] = []
        for record in self._store.records():
            match record.kind:
                case "change":
                    made.append(record)
                case "undo":
                    made = [each for each in made if each.number != record.of]
                    undone.append(record)
                case "redo":
                    undone = [each for each in undone if each.number != record.of]
                    made.append(record)
        return made, undone

    def _copy(self, seen: Seen) -> Path | None:
        if seen.content is None:
            return None
        for name in _free_names(seen.real):
            beside = see(name)
            if beside.content is None:
                replace_file(beside, seen.content, self._umask, mode=seen.mode)
                return name
        raise Unusable(f"there are too many copies of {seen.real.name}; remove some")


def _step(record: Record) -> Step:
    seen = see(record.real)
    return Step(
        record=record,
        seen=seen,
        shown=_diff(record.name, seen.content, record.before),
        changed=digest(seen.content) != record.after,
    )


def _diff(name: str, before: bytes | None, after: bytes | None) -> str:
    old, new = (None if each is None else each.decode(errors="replace") for each in (before, after))
    if new is None:
        return _removal(name, old or "")
    return unified(name, old, new)


def _removal(name: str, old: str) -> str:
    """Return the diff that removes a file: the one that makes it, the other way round."""
    _, _, *rest = lines_of(unified(name, None, old)) or ["", ""]
    head = [line.replace("-0,0 +", "-").replace(" @@", " +0,0 @@") for line in rest[:1]]
    gone = [f"-{line[1:]}" if line.startswith("+") else line for line in rest[1:]]
    return "".join([f"--- a/{name}\n+++ /dev/null\n", *head, *gone])


def _free_names(real: Path) -> Iterator[Path]:
    yield from (real.with_name(f"{real.name}.kept-{at}") for at in range(1, _COPIES))


def _remove_empty(folders: tuple[Path, ...]) -> None:
    for folder in folders:
        with suppress(OSError):  # something else lives there by now
            folder.rmdir()


def undo_of(here: Surroundings, session_id: str | None) -> Undo | None:
    """Return what can be taken back of *session_id*, without one of this project's newest session.

    None if nothing is kept of it. Raises ValueError if that is no session's id.
    """
    if session_id is not None:
        found = _kept(here, session_id)
        return found if found is not None and found.has_any() else None
    for folder in kept_sessions(here.places):
        found = _kept(here, folder.name, of_project=True)
        if found is not None and found.has_any():
            return found
    return None


def sessions_named(here: Surroundings, part: str) -> tuple[str, ...]:
    """Return the ids of the sessions of which something is kept and that begin or end so."""
    part = part.lower()
    names = (folder.name for folder in kept_sessions(here.places))
    return tuple(name for name in names if name.startswith(part) or name.endswith(part))


def _kept(here: Surroundings, session_id: str, *, of_project: bool = False) -> Undo | None:
    folder = session_folder(here, session_id, sealer_of(here, session_id))
    if not folder.path.is_dir() or (of_project and not folder.is_of_project()):
        return None
    return Undo(ChangeStore(folder), here.umask)
