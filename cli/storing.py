"""How a key gets from a person to where it is kept: asked for unseen, piped in, or given."""

import sys
from dataclasses import dataclass
from functools import partial
from getpass import getpass
from typing import TextIO, cast

import trio
from pydantic import SecretStr

from cli.failures import BadUsage
from cli.own_keys import keys, say_fault
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.local.credentials import Credentials, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The keys of one user, and the scope that a command is about."""

    here: Surroundings
    keys: Credentials
    scope: Scope


def scoped(here: Surroundings, *, everywhere: bool) -> Store:
    return Store(here=here, keys=keys(here), scope=Scope.GLOBAL if everywhere else Scope.PROJECT)


async def keep(kept: Credentials, name: str, key: SecretStr, scope: Scope) -> str:
    """Keep *key* in the keyring, else in a file, and return where, for a person to read."""
    path = await trio.to_thread.run_sync(partial(kept.store, name, key, scope=scope))
    if path is None:
        return "the system keyring"
    say_fault(kept)
    return visible_line(str(path))


async def forget(kept: Credentials, name: str, scope: Scope) -> str:
    """Forget *name* in *scope*; return what came of it, for a person to read."""
    gone = await trio.to_thread.run_sync(partial(kept.remove, name, scope=scope))
    say_fault(kept)
    whose = "all projects" if scope is Scope.GLOBAL else "this project"
    return f"is {'gone' if gone else 'not there'} for {whose}"


async def given_key(key: str | None, name: str, command: str) -> SecretStr:
    """Return *key*, or ask for it without showing what is typed. Raises BadUsage.

    *command* is what to type so that the key stays unseen.
    """
    if key is not None:
        echo(
            "warning: a key among the words of a command stays in your shell's history and was "
            f"visible to other programs; leave it out and you are asked for it: {command}",
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
