"""Branch and diff of the project, without running anything the folder brought along.

git obeys its local configuration, so that is looked at first; what could start a program there
means that no diff is taken. The branch is read from the file that holds it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

import trio

from cli.files import Unusable, read_file
from cli.repositories import SECONDS, common_folder, risky_keys
from cli.untracked import diff_of_new

MAX_DIFF: Final = 1024 * 1024
_GIT: Final = ("git", "--no-optional-locks")
_DIFF: Final = (
    *("diff", "--relative", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"),
    "--ignore-submodules=dirty",  # whether one is would be asked inside it, as it is configured
    *("--src-prefix=a/", "--dst-prefix=b/", "HEAD"),
)
_NEW: Final = ("ls-files", "--others", "--exclude-standard", "-z")
# Keys that were committed by mistake are no part of what a model sees.
_HERE: Final = ("--", ".", ":(exclude,glob,icase)**/.smista/secrets*")


def read_branch(root: Path) -> str | None:
    """Return the branch that `HEAD` of *root*'s repository names; None without one."""
    folder = _folder(root)
    head = None if folder is None else _first_line(folder / "HEAD")
    if head is None or not head.startswith("ref: refs/heads/"):
        return None
    return head.removeprefix("ref: refs/heads/")


def _folder(root: Path) -> Path | None:
    for place in (root, *root.parents):
        git = place / ".git"
        if git.is_dir():
            return git
        if git.is_file():
            # What a work tree or a submodule has in the place of the folder.
            named = _first_line(git) or ""
            return place / named.removeprefix("gitdir: ") if named.startswith("gitdir: ") else None
    return None


def _first_line(path: Path) -> str | None:
    try:
        content = read_file(path.resolve()) or b""
        return content.decode().partition("\n")[0].strip()
    except (OSError, RuntimeError, Unusable, UnicodeDecodeError):
        return None


async def read_diff(root: Path, notices: list[str], *, apart: Sequence[Path] = ()) -> str | None:
    """Return the uncommitted changes of *root*, new files included, or None.

    What keeps them back, or is left out, is a notice. Nothing below *apart* is looked at.
    """
    if not await trio.to_thread.run_sync(_is_safe, root, notices):
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


def _is_safe(root: Path, notices: list[str]) -> bool:
    """Say whether *root* has a repository whose configuration names nothing that git would run."""
    try:
        folder = common_folder(root, os.environ)
        if folder is None:
            return False
        risky = risky_keys(folder / "config", os.environ)
    except FileNotFoundError:
        if _folder(root) is not None:
            notices.append("git diff left out: there is no git on this machine")
        return False
    except OSError as error:
        notices.append(f"git diff left out: {error.strerror or error}")
        return False
    if risky:
        notices.append(f"git diff left out: .git/config sets {', '.join(risky)}")
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
