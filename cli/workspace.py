"""Files, instructions and git → what a request carries. Reads only; nothing of the folder runs.

What could not be taken along is said in notices, never an error.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final

from cli.files import Unusable, decode, read_file
from cli.git import read_branch, read_diff
from cli.surroundings import Surroundings
from smista.core.request import Attachments, ContextFile, Instruction, Workspace

_REFERENCE: Final = re.compile(r"(?<![^\s(\[{<\"'])@(\S+)")
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
    seen: set[Path] = set()
    for token in _REFERENCE.findall(prompt):
        for name in (token, token.rstrip(_TRAILING)):
            path = Path(os.path.normpath(start / name))
            if name and path.is_file():
                if path not in seen:
                    seen.add(path)
                    yield path
                break


def relative(path: Path, root: Path) -> str:
    """Return *path* as requests name it: relative to *root* with `/`, absolute if outside."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


async def collect(prompt: str, here: Surroundings) -> Collected:
    """Gather what *prompt* refers to and what always goes along."""
    notices: list[str] = []
    files = list(_attach(prompt, here, notices))
    instructions = list(_instructions(here, notices))
    diff = await read_diff(here.root, notices)
    workspace = Workspace(
        root=str(here.root),
        git_branch=read_branch(here.root),
        git_diff=diff,
        referenced_paths=tuple(file.path for file in files),
    )
    attachments = Attachments(files=tuple(files), instructions=tuple(instructions))
    return Collected(workspace=workspace, attachments=attachments, notices=tuple(notices))


def _attach(prompt: str, here: Surroundings, notices: list[str]) -> Iterator[ContextFile]:
    for path in referenced(prompt, here.start):
        given = relative(path, here.root)
        try:
            content, real = read_text(path, here)
        except Unusable as fault:
            notices.append(f"not attached: {given} ({fault})")
            continue
        yield ContextFile(
            path=given,
            content=content,
            content_hash=f"sha256:{sha256(content.encode()).hexdigest()}",
            required=True,
            paths=tuple(dict.fromkeys((given, relative(real, here.root.resolve())))),
        )


def _instructions(here: Surroundings, notices: list[str]) -> Iterator[Instruction]:
    home = here.places.personal.parent
    for folder, path in ((here.root, here.root / "AGENTS.md"), (home, home / ".agents/AGENTS.md")):
        if not path.is_file():
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


def read_text(path: Path, here: Surroundings) -> tuple[str, Path]:
    """Return the text of *path* and the real path of the file it came from. Raises Unusable."""
    real = path.resolve()
    if is_ours(real, here):
        raise Unusable("smista keeps its own files to itself")
    content = read_file(real)
    if content is None:
        raise Unusable("it is gone")
    return decode(content, real.name), real


def is_ours(real: Path, here: Surroundings) -> bool:
    """Return whether *real* is a file of smista that no prompt and no tool may see."""
    # Names are compared without case: some file systems do not tell them apart.
    parts = [part.casefold() for part in real.parts]
    secrets = any(one == ".smista" and two.startswith("secrets") for one, two in pairwise(parts))
    return secrets or here.places.holds(real)
