"""Branch and diff of the project, without running anything the folder brought along.

git obeys its local configuration, so it is read first; what could start a program there means
that no diff is taken. The branch is read from the file that holds it.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL
from typing import Final

import trio

MAX_DIFF: Final = 1024 * 1024
SECONDS: Final = 5.0
_COMMAND: Final = (
    *("git", "--no-optional-locks", "diff", "--no-renames", "--no-ext-diff", "--no-textconv"),
    *("--no-color", "--src-prefix=a/", "--dst-prefix=b/", "HEAD", "--", "."),
    # Keys that were committed by mistake are no part of what a model sees.
    ":(exclude,glob,icase)**/.smista/secrets*",
)
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


def read_branch(root: Path) -> str | None:
    """Return the branch that `.git/HEAD` of *root* names; None without one."""
    try:
        head = (root / ".git" / "HEAD").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None


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


async def read_diff(root: Path, notices: list[str]) -> str | None:
    """Return the uncommitted changes of *root*, or None; what keeps them back is a notice."""
    if not (root / ".git").is_dir():
        return None
    try:
        config = (root / ".git" / "config").read_text("utf-8", errors="replace")
    except OSError:
        notices.append("git diff left out: .git/config cannot be read")
        return None
    risky = sorted(set(risky_keys(config)))
    if risky:
        notices.append(f"git diff left out: .git/config sets {', '.join(risky)}")
        return None
    return await _run(root, notices)


async def _run(root: Path, notices: list[str]) -> str | None:
    # GIT_DIR and its like would point git at another folder than the one just looked at.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        with trio.fail_after(SECONDS):
            done = await trio.run_process(
                [*_COMMAND],
                cwd=root,
                env=environ,
                stdin=DEVNULL,
                stderr=DEVNULL,
                capture_stdout=True,
                check=False,
            )
    except (OSError, trio.TooSlowError):
        notices.append("git diff left out: git did not answer")
        return None
    if done.returncode != 0 or not done.stdout:
        return None  # no commit yet, or nothing changed
    if len(done.stdout) > MAX_DIFF:
        notices.append(f"git diff left out: it is larger than {MAX_DIFF} bytes")
        return None
    return done.stdout.decode(errors="replace")
