"""The order of words on the command line, before click reads them. Pure."""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

PROMPT: Final = "run-prompt"
"""The command that words which are no command belong to."""

YES_TO: Final = "--yes-to"
_YES: Final = "--yes"
_GLOBAL_FLAGS: Final = frozenset({"--enforce-keyring"})
_FILES: Final = frozenset({"-L", "--log-file"})
_GLOBAL_VALUES: Final = _FILES | {"-l", "--log-filter"}
_KEY_WORDS: Final = ("set", "add", "check", "get", "remove", "delete", "rm", "new", "generate")
_SUBCOMMANDS: Final[Mapping[str, Collection[str]]] = {
    "config": ("init", "path", "show", "edit", "check"),
    "credentials": _KEY_WORDS,
    "apikey": _KEY_WORDS,
    "keys": ("list", "verify", "export", "import"),
    "trust": ("show", "revoke"),
    "completion": ("bash", "zsh", "fish"),
}
_OF_THE_GROUP: Final = frozenset({"--help", "-h", "--version", "-V"})


class NoValue(Exception):
    """A flag that needs a value stands without one."""

    def __init__(self, flag: str, example: str) -> None:
        super().__init__(f"{flag} needs a value; write: {example}")


class NoSuchCommand(Exception):
    """A first word that looks like a mistyped command."""

    def __init__(self, word: str, meant: str) -> None:
        super().__init__(
            f"there is no command {word!r}; did you mean {meant!r}? "
            f"To send it as a prompt, write: smista -- {word}"
        )


def arrange(argv: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return *argv* with the global flags first and a bare prompt under its command.

    Raises NoSuchCommand for a first word that is close to a command's name, if it stands alone or
    before what only a command would have behind it; NoValue for a flag that ends too early.
    """
    ours, rest = _split(argv)
    if rest and (rest[0] in commands or rest[0] in _OF_THE_GROUP):
        return [*ours, *rest]
    meant = _meant(rest, commands)
    if meant is not None:
        raise NoSuchCommand(rest[0], meant)
    return [*ours, PROMPT, *rest]


def _meant(words: Sequence[str], commands: Collection[str]) -> str | None:
    """Return the command that the first of *words* was to be, if it looks like a mistake."""
    if not words or words[0].startswith("-"):
        return None
    near = get_close_matches(words[0].lower(), commands, n=1, cutoff=0.75)
    if not near:
        return None
    # Of a prompt, hardly anybody types the second word like a flag or a subcommand.
    second = words[1] if len(words) > 1 else None
    alone = second is None or second.startswith("-") or second in _SUBCOMMANDS.get(near[0], ())
    return near[0] if alone else None


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
            value = next(words, None)
            if value is None:
                raise NoValue(word, f"{word} {'FILE' if word in _FILES else 'LEVEL'}")
            ours += [word, value]
        elif word == f"{_YES}=":
            raise NoValue(word, f"{_YES}, or {_YES}=shell,git,network")
        elif word.startswith(f"{_YES}="):
            # click would take the word after a bare --yes for its value.
            rest += [_YES, f"{YES_TO}={word.removeprefix(f'{_YES}=')}"]
        else:
            rest.append(word)
    return ours, rest
