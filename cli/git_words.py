"""What a git command line does: only listed subcommands with listed flags are harmless. Pure."""

import re
from collections.abc import Sequence
from typing import Final

_HISTORY: Final = r"""
    -p -u --patch --stat --shortstat --numstat --summary --name-only --name-status --raw -s
    --no-patch --oneline --graph --decorate --all --branches --tags --merges --no-merges --reverse
    --first-parent --abbrev-commit --no-color -w --ignore-all-space -b --ignore-space-change
    --word-diff -n -n\d+ -\d+ --max-count=\d+ -U\d+ --unified=\d+ --since=[^%]+ --until=[^%]+
    --after=[^%]+ --before=[^%]+ --author=[^%]+ --grep=[^%]+ --date=[\w-]+ --diff-filter=[A-Za-z]+
    --pretty=(?:oneline|short|medium|full|fuller|reference|raw) --follow
    --(?:pretty=t?format:|format=)(?:[^%]|%(?!G)[A-Za-z%])*
"""
_FLAGS: Final = {
    "log": _HISTORY,
    "show": _HISTORY,
    "diff": _HISTORY + " --cached --staged --merge-base --check --exit-code --quiet",
    "status": "-s --short -b --branch --porcelain --long -u -uno -unormal -uall --ignored -v",
    "branch": "-a -r -v -vv --all --remotes --list --show-current --verbose",
    "tag": "-l --list -n",
    "remote": "",  # with -v it shows URLs, and some hold a key
    "stash": "list",
    "rev-parse": "--abbrev-ref --short --show-toplevel --show-prefix --verify",
    "ls-files": "-m -o -d -s -c --modified --others --deleted --stage --cached --exclude-standard",
    "blame": r"-L\d+,\d+ -L \d+,\d+ -w -s -e --date=[\w-]+",
    "shortlog": "-s -n -e --summary --numbered --email --no-merges",
    "describe": "--tags --always --all --long --dirty",
    "grep": "-n -i -l -c -w -F -E -I --line-number --count --ignore-case --cached",
}
_ALLOWED: Final = {name: re.compile("|".join(text.split())) for name, text in _FLAGS.items()}
_WITHOUT_WORDS: Final = frozenset({"branch", "tag", "remote", "stash"})
_SUMMED_UP: Final = re.compile(
    "--stat|--shortstat|--numstat|--summary|--name-only|--name-status|--no-patch|-s|--quiet"
)
_PATCH: Final = re.compile(r"-p|-u|--patch|-U\d+|--unified=\d+|--word-diff|--raw|-w|-b|--ignore.*")
_VERBOSE: Final = re.compile(r"-[a-zA-Z]*[pvi]|--[pvi]")
_VERBOSE_STATUS: Final = re.compile(r"-[a-tw-z]*v|--v")
_NO_CONTENT: Final = frozenset(
    {
        *("add", "branch", "checkout", "clone", "commit", "describe", "fetch", "init", "ls-files"),
        *("ls-remote", "merge", "mv", "pull", "push", "rebase", "remote", "reset", "restore"),
        *("rev-parse", "rm", "shortlog", "status", "switch", "tag", "worktree"),
    }
)
_FORCES: Final = {
    "commit": r"--am[end]*",
    "push": r"-\w*[fd]\w*|--f\S+|--del\S*|--mir\S*|--pru\S*|[+:]\S*",
    "pull": r"-\w*[fr]\w*|--reb\S*|--f\S+",
    "fetch": r"-\w*[fpP]\w*|--for\S*|--pru\S*|\+\S*",
    "branch": r"-\w*[dDfmMcC]\w*|--del\S*|--for\S*|--mov\S*|--cop\S*",
    "tag": r"-\w*[df]\w*|--del\S*|--for\S*",
    "checkout": r"-\w*[fBp]\w*|--for\S*|--pat\S*|--|\.|--ours|--theirs",
    "switch": r"-\w*[fC]\w*|--for\S*|--dis\S*",
    "stash": r"drop|clear|pop|branch",
    "worktree": r"remove|prune|-\w*[fB]\w*|--for\S*",
    "remote": r"remove|rm|rename|prune|set-\S+",
    "notes": r"remove|prune|-\w*f\w*|--for\S*",
    "reflog": r"expire|delete|drop",
    "bisect": r"run|reset",
    "rm": r"-\w*f\w*|--for\S*",
    "mv": r"-\w*f\w*|--for\S*",
}
_FORCED: Final = {name: re.compile(pattern) for name, pattern in _FORCES.items()}
"""Subcommand → the words that make it throw something away."""
_ADDING: Final = frozenset(
    {
        *("add", "am", "annotate", "apply", "archive", "blame", "bundle", "cat-file", "cherry"),
        *("cherry-pick", "clone", "count-objects", "describe", "diff", "for-each-ref"),
        *("format-patch", "grep", "help", "init", "log", "ls-files", "ls-remote", "ls-tree"),
        *("merge", "merge-base", "name-rev", "range-diff", "rev-list", "rev-parse", "revert"),
        *("shortlog", "show", "show-branch", "show-ref", "status", "var", "version", "whatchanged"),
    }
)
_HARMLESS_GLOBALS: Final = frozenset({"-P", "--no-pager", "--no-optional-locks"})
_OF_A_PERSON: Final = re.compile(r"user\.(name|email)=.*", re.DOTALL)
# git takes the beginning of a long option for the whole.
_FURTHER: Final = re.compile(
    r"-O|--(?:op|out|ext(?!end)|textc|exe|upl|rece|te$|tem|no-ind)|--(?:o|ou|u|up|ex|e|x)(?:=|$)"
)
_FURTHER_OF_CLONE: Final = re.compile(rf"{_FURTHER.pattern}|-c|--con|-u|--sep")
_VALUED: Final = frozenset({"-c", "-C", "--git-dir", "--work-tree", "--namespace"})
EXCLUDABLE: Final = frozenset({"diff", "show", "log", "grep"})
"""Subcommands that can be told which files to leave out."""


def is_harmless(arguments: Sequence[str]) -> bool:
    """Say if `git` with *arguments* only reads, only inside its folder, and starts no program."""
    if not arguments or arguments[0] not in _ALLOWED:
        return False
    command, rest = arguments[0], arguments[1:]
    words: list[str] = []
    for at, word in enumerate(rest):
        if word == "--":
            words += rest[at + 1 :]
            break
        if word.startswith("-") or command == "stash":
            if not _ALLOWED[command].fullmatch(word):
                return False
        else:
            words.append(word)
    if command == "stash":
        return list(rest) == ["list"]
    return not (words and command in _WITHOUT_WORDS) and all(map(_stays_inside, words))


def _stays_inside(word: str) -> bool:
    # `rev:path` and plain paths alike; `:(magic)` and `:/` are no plain words.
    if not word or word.startswith((":", "/", "~", "-", "\\")) or "@{u" in word:
        return False
    return all(not part.startswith("/") and ".." not in part.split("/") for part in word.split(":"))


def shows_content(arguments: Sequence[str]) -> bool:
    """Say if the output may hold what stands in files."""
    if not arguments:
        return False
    command, rest = arguments[0], arguments[1:]
    patched = any(_PATCH.fullmatch(word) for word in rest)
    if command in ("diff", "show"):
        return patched or ":" in " ".join(rest) or not any(map(_SUMMED_UP.fullmatch, rest))
    if command == "log":
        return patched or not all(_is_quiet(word) for word in rest)
    if command == "status":
        return any(_VERBOSE_STATUS.match(word) for word in rest)
    if command in ("add", "checkout", "reset", "restore", "commit"):
        return any(_VERBOSE.match(word) for word in rest)
    return command not in _NO_CONTENT


def _is_quiet(word: str) -> bool:
    return not word.startswith("-") or bool(_ALLOWED["log"].fullmatch(word))


def reaches_further(arguments: Sequence[str]) -> bool:
    """Say if other programs may be started, or files elsewhere be written, as the words tell."""
    words = iter(arguments)
    for word in words:
        if word == "-c" and _OF_A_PERSON.fullmatch(next(words, "")):
            continue
        if word.startswith("-"):
            if word not in _HARMLESS_GLOBALS:
                return True
            continue
        wide = _FURTHER_OF_CLONE if word == "clone" else _FURTHER
        return any(map(wide.match, words))
    return False


def rewrites_history(arguments: Sequence[str]) -> bool:
    """Say if commits, branches or work of the user may be lost; what is not known may, too."""
    words = iter(arguments)
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif not word.startswith("-"):
            forced = _FORCED.get(word)
            if forced is not None:
                return any(map(forced.fullmatch, words))
            return word not in _ADDING
    return False
