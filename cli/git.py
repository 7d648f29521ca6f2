"""Branch and diff of the project, without running anything the folder brought along.

git obeys its local configuration, so it is read first; what could start a program there means
that no diff is taken. The branch is read from the file that holds it.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

import trio

from cli.untracked import diff_of_new

MAX_DIFF: Final = 1024 * 1024
SECONDS: Final = 5.0
_GIT: Final = ("git", "--no-optional-locks")
_DIFF: Final = (
    *("diff", "--relative", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "HEAD"),
)
_NEW: Final = ("ls-files", "--others", "--exclude-standard", "-z")
# Keys that were committed by mistake are no part of what a model sees.
_HERE: Final = ("--", ".", ":(exclude,glob,icase)**/.smista/secrets*")
_SMALL: Final = 64 * 1024
"""Bytes that a file of git's own holds at most, of those that are read here."""
_SECTION: Final = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]?')
_RUNS: Final = (
    re.compile(r"core\.(fsmonitor|hookspath|sshcommand|gitproxy|alternaterefscommand)"),
    # Another folder in the place of this one; objects that are fetched when they are missed.
    re.compile(r"core\.worktree|extensions\.partialclone|remote\..*\.promisor"),
    re.compile(r"gpg\..*"),
    re.compile(r"filter\..*"),
    re.compile(r"diff\.(.*\.)?(command|textconv|external)"),
    re.compile(r"include(if)?\..*"),
    re.compile(r"alias\..*"),
    re.compile(r"extensions\.worktreeconfig"),
)


@dataclass(frozen=True, slots=True)
class Repository:
    """*folder* is the work tree's own (`.git`), *common* what all its work trees share."""

    folder: Path
    common: Path


def find_repository(root: Path) -> Repository | None:
    """Return the repository that *root* is in. Reads two small files at most."""
    for place in (root, *root.parents):
        git = place / ".git"
        if git.is_dir():
            return Repository(git, git)
        if git.is_file():
            return _linked(git)
    return None


def _linked(git: Path) -> Repository | None:
    # What a work tree or a submodule has in the place of the folder.
    named = _first_line(git)
    if named is None or not named.startswith("gitdir: "):
        return None
    folder = git.parent / named.removeprefix("gitdir: ")
    shared = _first_line(folder / "commondir")
    return Repository(folder, folder if shared is None else folder / shared)


def read_branch(root: Path) -> str | None:
    """Return the branch that `HEAD` of *root*'s repository names; None without one."""
    repository = find_repository(root)
    head = None if repository is None else _first_line(repository.folder / "HEAD")
    if head is None or not head.startswith("ref: refs/heads/"):
        return None
    return head.removeprefix("ref: refs/heads/")


def _first_line(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_SMALL).decode().partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        return None


def risky_keys(config: str) -> Iterator[str]:
    """Yield the keys of a git configuration that could make git run or read something else."""
    section = ""
    for line in config.splitlines():
        header = _SECTION.match(line)
        if header:
            section = ".".join(part for part in header.groups() if part)
            line = line[header.end() :]
        name = re.match(r"\s*([A-Za-z][A-Za-z0-9-]*)", line)
        if name:
            key = f"{section}.{name[1]}".lower()
            if any(pattern.fullmatch(key) for pattern in _RUNS):
                yield key


async def read_diff(root: Path, notices: list[str], *, apart: Sequence[Path] = ()) -> str | None:
    """Return the uncommitted changes of *root*, new files included, or None.

    What keeps them back, or is left out, is a notice. Nothing below *apart* is looked at.
    """
    repository = await trio.to_thread.run_sync(find_repository, root)
    if repository is None or not await trio.to_thread.run_sync(_is_safe, repository, notices):
        return None
    where = [*_HERE, *_excluding(root, apart)]
    changed = await _run([*_GIT, *_DIFF, *where], root, notices)
    names = await _run([*_GIT, *_NEW, *where], root, notices)
    if changed is None or names is None:
        return None
    listed = filter(None, names.split(b"\0"))
    new = await trio.to_thread.run_sync(partial(diff_of_new, root, listed, notices))
    return changed.decode(errors="replace") + new or None


def _excluding(root: Path, apart: Sequence[Path]) -> Iterator[str]:
    for place in apart:
        if place != root and place.is_relative_to(root):
            yield f":(exclude,literal){place.relative_to(root)}"


def _is_safe(repository: Repository, notices: list[str]) -> bool:
    """Say whether git may be run there: nothing that its configuration names would be."""
    risky: set[str] = set()
    for folder in {repository.folder, repository.common}:
        try:
            config = (folder / "config").read_text("utf-8", errors="replace")
        except FileNotFoundError:
            continue
        except OSError:
            notices.append("git diff left out: .git/config cannot be read")
            return False
        risky.update(risky_keys(config))
    if risky:
        notices.append(f"git diff left out: .git/config sets {', '.join(sorted(risky))}")
    return not risky


async def _run(command: list[str], root: Path, notices: list[str]) -> bytes | None:
    """Return what git says; None, with a notice, if that takes too long or is too much."""
    # GIT_DIR and its like would point git at another folder than the one just looked at.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        with trio.fail_after(SECONDS):
            said = await _said(command, root, environ)
    except (OSError, trio.TooSlowError):
        notices.append("git diff left out: git did not answer")
        return None
    if len(said) > MAX_DIFF:
        notices.append(f"git diff left out: it is larger than {MAX_DIFF} bytes")
        return None
    return said  # nothing where there is no commit yet, to compare with


async def _said(command: list[str], root: Path, environ: Mapping[str, str]) -> bytes:
    """Return what *command* says, or, if it is too much, a little more than that."""
    process = await trio.lowlevel.open_process(
        command, cwd=root, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    assert process.stdout is not None  # it is a pipe
    said = bytearray()
    try:
        async with process.stdout as output:
            while len(said) <= MAX_DIFF and (piece := await output.receive_some()):
                said += piece
        return bytes(said)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
