"""The tool `git`: run in the project, without a prompt, an editor or a pager.

What is harmless is also kept from running what the repository's own configuration brings along.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import trio

from cli.files import Unusable
from cli.git_words import EXCLUDABLE, is_harmless, shows_content
from cli.repositories import common_folder, names_bare_content, risky_keys
from cli.shell import DEFAULT_SECONDS, Ran, run_program
from cli.surroundings import Surroundings
from cli.veil import PLAIN, Veil
from cli.watching import Output
from smista.core.privacy import Guard

_QUIET: Final = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "false", "GIT_PAGER": "cat"}
_HARDENED: Final = (
    *("--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "-c", "color.ui=false"),
    *("-c", "log.showSignature=false", "-c", "format.pretty=medium"),
    *("-c", "diff.ignoreSubmodules=all"),
)
_FIXED: Final = dict.fromkeys(
    ("diff", "show", "log"), ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
) | {"status": ("--ignore-submodules=all",), "grep": ("--no-textconv",)}
_PLAIN: Final = re.compile(r"[A-Za-z0-9 ._*?/@+-]+")
_CUT: Final = " bytes left out]"
_NAMING: Final = re.compile(
    r"^(?:diff --\S+ (.*)|(?:---|\+\+\+|Binary files?) (.*)|([^:\n]+):)", re.M
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCall:
    """*harmless*: it only reads, and the repository brings nothing that git would run."""

    arguments: tuple[str, ...]
    harmless: bool
    guard: Guard | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GitRan:
    ran: Ran
    restricted: bool


def prepare_git(arguments: object, here: Surroundings, guard: Guard | None) -> GitCall:
    """Return the call as it will be made. Blocks on a file. Raises Unusable."""
    words = _words(arguments)
    harmless = is_harmless(words) and _brings_nothing(here)
    return GitCall(arguments=words, harmless=harmless, guard=guard)


async def run_git(
    call: GitCall,
    here: Surroundings,
    *,
    veil: Veil = PLAIN,
    output: Output | None = None,
) -> GitRan:
    """Run git and say if its output may hold something restricted. Raises OSError."""
    words = _hardened(call, here) if call.harmless else ["git", *call.arguments]
    inherited = frozenset(name for name in here.environ if name.startswith("GIT_"))
    ran = await run_program(
        words,
        here,
        seconds=DEFAULT_SECONDS,
        veil=veil.without(inherited),
        extra=_QUIET,
        output=output,
    )
    restricted = await trio.to_thread.run_sync(_may_be_restricted, call, ran.text, here)
    return GitRan(ran=ran, restricted=restricted)


def _words(arguments: object) -> tuple[str, ...]:
    if not isinstance(arguments, list) or not arguments:
        raise Unusable('`arguments` should be a list of strings, such as ["status"]')
    words = [word for word in cast("list[object]", arguments) if isinstance(word, str)]
    if len(words) != len(cast("list[object]", arguments)) or "\0" in "".join(words):
        raise Unusable("`arguments` should hold strings without NUL")
    try:
        "".join(words).encode()
    except UnicodeEncodeError as error:
        raise Unusable("`arguments` is not valid text") from error
    return tuple(words)


def _brings_nothing(here: Surroundings) -> bool:
    git = here.root.resolve() / ".git"
    try:
        folder = common_folder(here.root, here.environ)
        own = folder is not None and folder.resolve() == git
        return own and not risky_keys(git / "config", here.environ)
    except (OSError, RuntimeError):
        return False


def _hardened(call: GitCall, here: Surroundings) -> list[str]:
    command, *rest = call.arguments
    fixed = _FIXED.get(command, ())
    head = ["git", *_HARDENED, command, *fixed]
    if command not in EXCLUDABLE or call.guard is None or any(":" in word for word in rest):
        return [*head, *rest]
    options, paths = _parted(rest, here)
    excludes = [f":(exclude,glob,icase){pattern}" for pattern in _excluded(call.guard)]
    # Only files of the project, whatever else the repository holds.
    return [*head, *options, "--", *(paths or ["."]), *excludes]


def _parted(rest: Sequence[str], here: Surroundings) -> tuple[list[str], list[str]]:
    """Separate the paths from all else; without `--`, a word that exists as a file is a path."""
    if "--" in rest:
        at = list(rest).index("--")
        return list(rest[:at]), list(rest[at + 1 :])
    paths = [word for word in rest if not word.startswith("-") and (here.root / word).exists()]
    return [word for word in rest if word not in paths], paths


def _excluded(guard: Guard) -> list[str]:
    patterns: list[str] = []
    for pattern in filter(_PLAIN.fullmatch, guard.patterns):
        inner = pattern.strip("/")
        rooted = "/" in pattern.rstrip("/")
        name = inner if rooted else f"**/{inner}"
        patterns += [f"{name}/**"] if pattern.endswith("/") else [name, f"{name}/**"]
    return patterns


def _may_be_restricted(call: GitCall, output: str, here: Surroundings) -> bool:
    """Say if something restricted may be in *output*: it may, unless all speaks against it."""
    guard = call.guard
    if guard is None or not guard.active:
        return False
    command, *rest = call.arguments
    if (
        call.harmless
        and command in EXCLUDABLE
        and names_bare_content(rest, here.root, here.environ)
    ):
        return True  # what has no name in the output, or none that begins at the root
    if not shows_content(call.arguments):
        return False
    if not call.harmless:
        return True
    if command == "blame" or any(":" in word for word in rest):
        return any(guard.mentions(part) for word in rest for part in (word, *word.split(":")))
    if command not in EXCLUDABLE:
        return True
    # What pathspecs cannot express is seen by the names in the output, if all of it is there.
    if _CUT in output and not all(map(_PLAIN.fullmatch, guard.patterns)):
        return True
    return any(map(guard.mentions, _named(output)))


def _named(output: str) -> list[str]:
    names: list[str] = []
    for match in _NAMING.finditer(output):
        text = next(filter(None, match.groups()), "")
        names += [name.removeprefix("a/").removeprefix("b/") for name in (text, *text.split(" "))]
    return names
