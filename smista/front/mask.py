"""Takes keys out of text that leaves the router: the very keys of a request, and key shapes."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from pydantic_core import to_json

from smista.core.key_shapes import LOOSE

MASK: Final = "[redacted]"
_SHORTEST: Final = 6
_SHAPES: Final = re.compile(LOOSE + r"|(?i:\bbearer\s+)[^\s\"']{6,}")


def masked_text(text: str, keys: Iterable[str] = ()) -> str:
    """Return *text* without *keys* and without anything that has the shape of a key."""
    for key in keys:
        if len(key) >= _SHORTEST:
            text = text.replace(key, MASK)
    return _SHAPES.sub(MASK, text)


def masked(value: Any, keys: Sequence[str] = ()) -> Any:
    """Return the JSON *value* with every text and member name in it masked."""
    match value:
        case str():
            return masked_text(value, keys)
        case dict():
            members = cast("dict[Any, Any]", cast("object", value))
            return {
                masked_text(str(name), keys): masked(item, keys) for name, item in members.items()
            }
        case list() | tuple():
            return [masked(item, keys) for item in cast("Sequence[Any]", value)]
        case _:
            return value


def needles(keys: Iterable[str]) -> tuple[bytes, ...]:
    """Return *keys* as they would stand in JSON bytes."""
    return tuple({to_json(key)[1:-1] for key in keys if len(key) >= _SHORTEST})


def without_keys(body: bytes, hidden: Iterable[bytes]) -> bytes:
    """Return the JSON bytes *body* without the *hidden* `needles`; other text stays as it is."""
    for needle in hidden:
        body = body.replace(needle, MASK.encode())
    return body
