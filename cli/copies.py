"""Whether something about to be sent is a copy of restricted content under a free name.

Compared by lines, so a copy, a link, a renamed file and an excerpt are known, and what a model
wrote that had restricted content before it. What was encoded or put in other words by a command
is not.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import trio

from cli.files import Unusable, read_file
from cli.restricted_lines import RestrictedLines, changed_files
from cli.surroundings import Surroundings
from cli.workspace import Collected
from cli.written import Written
from smista.core.privacy import Guard
from smista.core.request import ContextFile, Instruction, Skill

_T = TypeVar("_T", Instruction, Skill)

COPY: Final = "it holds lines of a restricted file"
ALIAS: Final = "it is a restricted file under another name"
DERIVED: Final = "it was written while restricted content was in view"
BEYOND: Final = "there are more restricted files and lines here than can be compared"

MAX_CHANGED: Final = 5000
"""Files that one command may change before everything counts as written by it."""
MAX_COMPARED: Final = 200
"""Of these, the files whose lines are known under another name as well."""


class Copies:
    """Knows the restricted content of one project. *guard* says what is restricted."""

    def __init__(self, here: Surroundings, guard: Guard | None) -> None:
        self._here = here
        self._guard = guard
        self._lock = Lock()
        self._written = Written(here)
        self._lines: RestrictedLines | None = None
        self.sent = False
        """Whether a copy goes along with a prompt."""

    def look(self, items: Sequence[tuple[str, Sequence[str]]]) -> list[str | None]:
        """Return for each text, with the paths it comes from, why it is restricted. Blocks."""
        with self._lock:
            self._refresh()
            return [self._why(text, paths) for text, paths in items]

    async def restricted(self, text: str, paths: Sequence[str]) -> bool:
        """Return whether *text*, which comes from *paths*, counts as restricted."""
        return (await trio.to_thread.run_sync(self.look, [(text, paths)]))[0] is not None

    async def mark(self, collected: Collected) -> Collected:
        """Return what goes along with a prompt, with each copy marked, and notices of them."""
        return await trio.to_thread.run_sync(self._mark, collected)

    def note_written(self, real: Path, before: bytes | None, after: bytes) -> None:
        """Remember a file that is written while restricted content is in view. Blocks."""
        texts = (each.decode("utf-8", "replace") for each in (before or b"", after))
        with self._lock:
            self._written.note(real, *texts)

    def note_changed(self, since: int) -> None:
        """Remember all files of the project that changed *since* then, in nanoseconds. Blocks."""
        with self._lock:
            for count, real in enumerate(changed_files(self._here, since)):
                if count >= MAX_CHANGED:
                    self._written.note_full()
                    return
                self._written.note(real, "", _text(real) if count < MAX_COMPARED else "")

    def _refresh(self) -> None:
        self._written.refresh()
        if self._guard is not None and self._guard.active:
            if self._lines is None:
                self._lines = RestrictedLines(self._here, self._guard, self._written.key)
            self._lines.refresh()

    def _why(self, text: str, paths: Sequence[str]) -> str | None:
        if self._guard is not None and any(map(self._guard.restricts, paths)):
            return None  # the router knows from the path
        real = [self._here.root.resolve() / path for path in paths]
        lines = self._lines
        if lines is not None and any(map(lines.is_one, real)):
            return ALIAS
        if lines is not None and lines.holds(text):
            return COPY
        if any(map(self._written.has, real)) or self._written.holds(text):
            return DERIVED
        if text and (self._written.full or (lines is not None and lines.beyond)):
            return BEYOND
        return None

    def _mark(self, collected: Collected) -> Collected:
        sent = collected.attachments
        notices = list(collected.notices)
        files = self.look([(file.content, file.paths or (file.path,)) for file in sent.files])
        notices += [f"restricted: {file.path} ({why})" for file, why in _hits(sent.files, files)]
        (diff,) = self.look([(collected.workspace.git_diff or "", ())])
        if diff is not None:
            notices.append(f"restricted: the diff ({diff})")
        marked = sent.model_copy(
            update={
                "files": tuple(map(_marked, sent.files, files)),
                "instructions": self._free(sent.instructions, notices),
                "invoked_skills": self._free(sent.invoked_skills, notices),
                "available_skills": self._free(sent.available_skills, notices),
            }
        )
        workspace = collected.workspace
        self.sent = self.sent or diff is not None or any(files)
        if diff is not None:
            workspace = workspace.model_copy(update={"git_diff_restricted": True})
        return replace(collected, workspace=workspace, attachments=marked, notices=tuple(notices))

    def _free(self, texts: Sequence[_T], notices: list[str]) -> tuple[_T, ...]:
        """Return those of *texts* that may be sent: they have no mark of their own."""
        whys = self.look([(text.content, (_source(text),)) for text in texts])
        kept: list[_T] = []
        for text, looked in zip(texts, whys, strict=True):
            why = self._restricted(_source(text)) or looked
            if why is None:
                kept.append(text)
            else:
                kind = "instructions" if isinstance(text, Instruction) else "skill"
                notices.append(f"{kind} left out: {_source(text)} ({why})")
        return tuple(kept)

    def _restricted(self, path: str) -> str | None:
        return None if self._guard is None else self._guard.restricts(path)


def _source(text: Instruction | Skill) -> str:
    if isinstance(text, Instruction):
        return text.source
    return text.name if text.path is None else text.path


def _marked(file: ContextFile, why: str | None) -> ContextFile:
    return file.model_copy(update={"restricted": True}) if why else file


def _hits(
    items: Sequence[ContextFile], whys: Sequence[str | None]
) -> list[tuple[ContextFile, str]]:
    return [(item, why) for item, why in zip(items, whys, strict=True) if why is not None]


def _text(real: Path) -> str:
    try:
        return (read_file(real) or b"").decode("utf-8", "replace")
    except Unusable:
        return ""
