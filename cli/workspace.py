"""Files, instructions and git → what a request carries. Reads only; nothing of the folder runs.

What could not be taken along is said in notices, never an error.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final

import trio

from cli.failures import BadUsage
from cli.files import Unusable, decode, read_file
from cli.git import read_branch, read_diff
from cli.surroundings import Surroundings
from smista.core.request import Attachments, ContextFile, Instruction, Workspace

_REFERENCE: Final = re.compile(r"(?<![^\s(\[{<\"'])@(\S+)")
_PATHLIKE: Final = re.compile(r"(?=.*[./])[\w./~-][^@]*")
"""Decorators, mentions and the marks of a diff have no dot and no slash."""
_MISSED: Final = 5
"""Names that one notice lists."""
_TRAILING: Final = ".,;:!?)]}>\"'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What goes along with a prompt, and what the user should know about it."""

    workspace: Workspace
    attachments: Attachments
    notices: tuple[str, ...] = ()


def referenced(prompt: str, start: Path) -> Iterator[Path]:
    """Yield the existing regular files that `@path` tokens of *prompt* name, each once.

    Punctuation that ends a sentence is no part of a path unless such a file exists.
    """
    found = (_file_of(token, start) for token in _REFERENCE.findall(prompt))
    yield from dict.fromkeys(path for path in found if path is not None)


def unmatched(prompt: str, start: Path) -> tuple[str, ...]:
    """Return the `@path` tokens of *prompt* that look like a file and name none."""
    names = (
        token.rstrip(_TRAILING)
        for token in _REFERENCE.findall(prompt)
        if _file_of(token, start) is None
    )
    return tuple(dict.fromkeys(name for name in names if _PATHLIKE.fullmatch(name)))


def _file_of(token: str, start: Path) -> Path | None:
    for name in (token, token.rstrip(_TRAILING)):
        path = Path(os.path.normpath(start / name))
        if name and _is_file(path):
            return path
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # a name that no file can have


def relative(path: Path, root: Path) -> str:
    """Return *path* as requests name it: relative to *root* with `/`, absolute if outside."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def doubtful(prompt: str, foreign: Iterable[str], here: Surroundings) -> tuple[Path, ...]:
    """Return the files that *prompt* names and that nobody may have meant to send.

    They lie outside the project, or are named in one of the *foreign* texts in it.
    """
    named = {path for text in foreign for path in referenced(text, here.start)}
    root = here.root.resolve()
    return tuple(
        path
        for path in referenced(prompt, here.start)
        if path in named or not path.resolve().is_relative_to(root)
    )


async def collect(
    prompt: str,
    here: Surroundings,
    *,
    files: tuple[Path, ...] = (),
    leave: Collection[Path] = (),
) -> Collected:
    """Gather what *prompt* refers to, the *files* named beside it, and what always goes along.

    What is in *leave* is not sent, though the prompt names it. Raises BadUsage for one of *files*
    that cannot be sent.
    """
    # Reading may take a while, and the terminal must stay alive meanwhile.
    look = partial(_read, prompt, here, files, leave)
    attached, instructions, branch, notices = await trio.to_thread.run_sync(look)
    places = here.places
    apart = (places.config, places.personal, places.runtime)
    diff = await read_diff(here.root, notices, apart=apart)
    workspace = Workspace(
        root=str(here.root),
        git_branch=branch,
        git_diff=diff,
        referenced_paths=tuple(file.path for file in attached),
    )
    attachments = Attachments(files=tuple(attached), instructions=tuple(instructions))
    return Collected(workspace=workspace, attachments=attachments, notices=tuple(notices))


def _read(
    prompt: str, here: Surroundings, files: tuple[Path, ...], leave: Collection[Path]
) -> tuple[list[ContextFile], list[Instruction], str | None, list[str]]:
    notices: list[str] = []
    attached = list(_attach(prompt, files, leave, here, notices))
    if missed := unmatched(prompt, here.start):
        more = f" and {len(missed) - _MISSED} more" if len(missed) > _MISSED else ""
        names = ", ".join(f"@{name}" for name in missed[:_MISSED])
        notices.append(f"no such file, left as it stands: {names}{more}")
    instructions = list(_instructions(here, notices))
    return attached, instructions, read_branch(here.root), notices


def _attach(
    prompt: str,
    files: tuple[Path, ...],
    leave: Collection[Path],
    here: Surroundings,
    notices: list[str],
) -> Iterator[ContextFile]:
    named = dict.fromkeys(Path(os.path.normpath(here.start / file)) for file in files)
    for path in named:
        try:
            yield _file(path, here)
        except Unusable as fault:
            raise BadUsage(f"--file {path}: {fault}") from fault
    for path in referenced(prompt, here.start):
        try:
            if path not in named and path not in leave:
                yield _file(path, here)
        except Unusable as fault:
            notices.append(f"not attached: {relative(path, here.root)} ({fault})")


def _file(path: Path, here: Surroundings) -> ContextFile:
    given = relative(path, here.root)
    content, real = read_text(path, here)
    return ContextFile(
        path=given,
        content=content,
        content_hash=f"sha256:{sha256(content.encode()).hexdigest()}",
        required=True,
        paths=tuple(dict.fromkeys((given, relative(real, here.root.resolve())))),
    )


def _instructions(here: Surroundings, notices: list[str]) -> Iterator[Instruction]:
    home = here.places.personal.parent
    for folder, path in (*_of_the_project(here), (home, home / ".agents/AGENTS.md")):
        if not _is_there(path):
            continue
        try:
            content, real = read_text(path, here)
        except Unusable as fault:
            notices.append(f"instructions left out: {path} ({fault})")
            continue
        if not real.is_relative_to(folder.resolve()):
            notices.append(f"instructions left out: {path} (it leads to {real})")
            continue
        yield Instruction(source=relative(path, here.root), content=content)


def _is_there(path: Path) -> bool:
    # Whatever it is: something in the place of instructions that cannot be read is worth a word.
    return os.path.lexists(path) and not path.is_dir()


def _of_the_project(here: Surroundings) -> Iterator[tuple[Path, Path]]:
    """Yield the places of instructions from the root down to where smista was started."""
    between = here.start.relative_to(here.root).parts if here.start != here.root else ()
    folder = here.root
    yield here.root, folder / "AGENTS.md"
    for part in between:
        folder /= part
        yield here.root, folder / "AGENTS.md"


def read_text(path: Path, here: Surroundings) -> tuple[str, Path]:
    """Return the text of *path* and the real path of the file it came from. Raises Unusable."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError) as error:
        raise Unusable("it does not lead anywhere") from error
    if is_ours(real, here):
        raise Unusable("smista keeps its own files to itself")
    content = read_file(real)
    if content is None:
        raise Unusable("it is gone")
    return decode(content, real.name), real


def is_ours(real: Path, here: Surroundings) -> bool:
    """Return whether *real* is a file of smista that no prompt and no tool may see."""
    return holds_keys(real) or here.places.holds(real)


def holds_keys(real: Path) -> bool:
    """Return whether *real* is, by its name, where smista keeps the keys of a project."""
    # Names are compared without case: some file systems do not tell them apart.
    parts = [part.casefold() for part in real.parts]
    return any(one == ".smista" and two.startswith("secrets") for one, two in pairwise(parts))
