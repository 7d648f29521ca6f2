"""What a tool call touches: the paths it names, openly or somewhere in a command line."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from smista.core.history import Call
from smista.core.privacy import Guard
from smista.core.tools import FILE_TOOLS, LISTING_TOOLS, ROUTER_TOOLS

_SPACE: Final = re.compile(r"\s+")
_FINE: Final = re.compile(r"[\s:=,;|&()<>$`{}\[\]\"'!@#]+")
_DROPPED: Final = re.compile(r"[\"'\\]")
_MOST_NAMES: Final = 4096
_WHOLE_TREE: Final = frozenset({"", ".", "./", "/"})


def arguments_of(call: Call) -> dict[str, Any]:
    """Return the arguments of *call*; empty if what the model wrote is no JSON object."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def touched_paths(name: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a call of file tool *name* touches: they join the run's task paths."""
    if name not in FILE_TOOLS:
        return ()
    path = arguments.get("path")
    return (path,) if isinstance(path, str) and path else ()


def call_restriction(lists: Guard, name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return why a call counts as one for a restricted path, None if it does not.

    Listing and searching the whole tree is no such call: its result says which files it read.
    """
    if not lists.active:
        return None
    names = named_paths(name, arguments)
    if len(names) > _MOST_NAMES:
        return f"the {name} call names too many things to check"
    plain = name in FILE_TOOLS or name in LISTING_TOOLS
    judge = lists.restricts if plain else lists.mentions
    reasons = (judge(path) for path in names if path not in _WHOLE_TREE)
    return next((reason for reason in reasons if reason is not None), None)


def named_paths(name: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return everything in a call that may name a file, for the privacy lists to judge."""
    return tuple(dict.fromkeys(part for part in _named(name, arguments) if part))


def _named(name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    if name in ROUTER_TOOLS:
        return  # the router opens no file for them; to speak of one is not to read it
    if name in FILE_TOOLS or name in LISTING_TOOLS:
        for key in ("path", "glob"):
            if isinstance(value := arguments.get(key), str):
                yield value
        return
    for text in _texts(arguments):
        yield from _parts(text)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in cast("dict[str, object]", value).values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in cast("list[object]", value):
            yield from _texts(part)


def _parts(text: str) -> Iterator[str]:
    # Read twice: as it stands, and as a shell would after it has dropped quotes and backslashes.
    for reading in dict.fromkeys((text, _DROPPED.sub("", text))):
        yield from _SPACE.split(reading)
        yield from _FINE.split(reading)
