"""What a git command line may do: change something, or talk to another machine.

Knows what is harmless and suspects the rest, aliases and global options included.
"""

from collections.abc import Sequence
from typing import Final

_READING: Final = frozenset(
    {
        *("annotate", "blame", "cat-file", "check-attr", "check-ignore", "cherry"),
        *("count-objects", "describe", "diff", "diff-files", "diff-index", "diff-tree"),
        *("for-each-ref", "grep", "help", "log", "ls-files", "ls-tree", "merge-base", "name-rev"),
        *("rev-list", "rev-parse", "shortlog", "show", "show-branch", "show-ref", "status"),
        *("var", "version", "whatchanged"),
    }
)
_LOCAL: Final = _READING | {
    *("add", "am", "apply", "bisect", "branch", "checkout", "cherry-pick", "clean", "commit"),
    *("gc", "init", "merge", "mv", "notes", "rebase", "reflog", "reset", "restore", "revert"),
    *("rm", "stash", "switch", "tag", "worktree"),
}
_LISTING: Final = {
    "branch": frozenset({"-a", "-r", "-v", "-vv", "--all", "--remotes", "--list"})
    | {"--show-current", "--verbose"},
    "tag": frozenset({"-l", "--list", "-n"}),
    "stash": frozenset({"list", "show", "-p", "--stat"}),
    "remote": frozenset({"-v", "--verbose"}),
}
_HARMLESS_GLOBALS: Final = frozenset({"--no-pager", "-P"})
_EFFECTS: Final = ("--output", "--ext-diff", "--textconv", "--exec", "--open-files-in-pager")


def git_writes(arguments: Sequence[str]) -> bool:
    """Say if `git` with *arguments* may change something."""
    command, rest = _split(arguments)
    if any(_has_effect(option) for option in rest):
        return True
    if command in _LISTING:
        if command == "stash" and not rest:
            return True
        return not all(option in _LISTING[command] for option in rest)
    return command not in _READING


def git_network(arguments: Sequence[str]) -> bool:
    """Say if `git` with *arguments* may talk to another machine."""
    command, rest = _split(arguments)
    if command == "remote":
        return not all(option in _LISTING["remote"] for option in rest)
    return command not in _LOCAL


def _split(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    at = 0
    while at < len(arguments) and arguments[at] in _HARMLESS_GLOBALS:
        at += 1
    return ("", ()) if at == len(arguments) else (arguments[at], arguments[at + 1 :])


def _has_effect(option: str) -> bool:
    if option.startswith("-O"):
        return True
    name = option.partition("=")[0]
    # git also takes any unambiguous beginning of a long option.
    return len(name) > 2 and any(_same_option(name, effect) for effect in _EFFECTS)


def _same_option(name: str, effect: str) -> bool:
    return name.startswith(effect) or (name.startswith("--") and effect.startswith(name))
