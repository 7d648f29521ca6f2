"""How a key gets from a person into a file: asked for unseen, read from a pipe, or given."""

import sys
from dataclasses import dataclass
from getpass import getpass
from typing import TextIO, cast

from pydantic import SecretStr

from cli.failures import BadUsage
from cli.surroundings import Surroundings
from cli.visible import echo
from smista.local.credentials import Credentials, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The keys of one user, and the scope that a command is about."""

    here: Surroundings
    keys: Credentials
    scope: Scope


def scoped(here: Surroundings, *, everywhere: bool) -> Store:
    keys = Credentials(project=here.root, places=here.places)
    return Store(here=here, keys=keys, scope=Scope.GLOBAL if everywhere else Scope.PROJECT)


async def given_key(key: str | None, name: str) -> SecretStr:
    """Return *key*, or ask for it without showing what is typed. Raises BadUsage."""
    if key is not None:
        echo(
            "warning: a key among the words of a command stays in your shell's history and was "
            "visible to other programs; leave it out and you are asked for it",
            err=True,
        )
        return _usable(key)
    stdin = cast("TextIO | None", sys.stdin)
    if stdin is not None and not stdin.isatty():
        return _usable(stdin.readline())
    try:
        return _usable(getpass(f"key of {name}: "))
    except EOFError as error:
        raise BadUsage("no key was given") from error


def _usable(text: str) -> SecretStr:
    key = text.strip()
    if not key:
        raise BadUsage("the key is empty")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise BadUsage("this is no key: keys are printable ASCII without spaces")
    return SecretStr(key)
