"""What a model wrote as arguments of a call, each checked before it is used. Pure."""

from collections.abc import Mapping
from typing import Any

from cli.files import Unusable


def know(arguments: Mapping[str, Any], *names: str) -> None:
    """Raise Unusable if there are others than *names*."""
    unknown = sorted(set(arguments) - set(names))
    if unknown:
        raise Unusable(f"unknown arguments {', '.join(unknown)}; there are {', '.join(names)}")


def string(arguments: Mapping[str, Any], name: str) -> str:
    """Return the text *name*. Raises Unusable."""
    value = arguments.get(name)
    if not isinstance(value, str):
        raise Unusable(f"`{name}` is missing or not a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Unusable(f"`{name}` is not valid text") from error
    return value


def number(arguments: Mapping[str, Any], name: str, least: int) -> int:
    """Return the integer *name*, *least* if it is not there. Raises Unusable."""
    value = arguments.get(name, least)
    if value is None:
        return least
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Unusable(f"`{name}` should be an integer of {least} or more")
    return value
