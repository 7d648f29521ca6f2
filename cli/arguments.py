"""The order of words on the command line, before click reads them. Pure."""

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Final

PROMPT: Final = "run-prompt"
"""The command that words which are no command belong to."""

YES_TO: Final = "--yes-to"
_YES: Final = "--yes"
_GLOBAL_FLAGS: Final = frozenset({"--enforce-keyring"})
_GLOBAL_VALUES: Final = frozenset({"-L", "--log-file", "-l", "--log-filter"})
_OF_THE_GROUP: Final = frozenset({"--help", "-h", "--version", "-V"})


class NoSuchCommand(Exception):
    """A lone word that looks like a mistyped command."""

    def __init__(self, word: str, meant: str) -> None:
        super().__init__(
            f"there is no command {word!r}; did you mean {meant!r}? "
            f"To send it as a prompt, write: smista -- {word}"
        )


def arrange(argv: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return *argv* with the global flags first and a bare prompt under its command.

    Raises NoSuchCommand for a single word that is close to a command's name.
    """
    ours, rest = _split(argv)
    if rest and (rest[0] in commands or rest[0] in _OF_THE_GROUP):
        return [*ours, *rest]
    if len(rest) == 1 and not rest[0].startswith("-"):
        meant = get_close_matches(rest[0].lower(), commands, n=1, cutoff=0.75)
        if meant:
            raise NoSuchCommand(rest[0], meant[0])
    return [*ours, PROMPT, *rest]


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate the global flags, with their values, from all other words."""
    ours: list[str] = []
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in _GLOBAL_FLAGS or word.partition("=")[0] in _GLOBAL_VALUES - {word}:
            ours.append(word)
        elif word in _GLOBAL_VALUES:
            ours += [word, *islice(words, 1)]
        elif word.startswith(f"{_YES}="):
            # click would take the word after a bare --yes for its value.
            rest += [_YES, f"{YES_TO}={word.removeprefix(f'{_YES}=')}"]
        else:
            rest.append(word)
    return ours, rest
