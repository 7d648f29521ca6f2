"""JSON from a server that is not trusted: bounded depth, and values only of the kinds we want."""

import json
import re
from itertools import accumulate
from typing import Any, Final, TypeGuard

from pydantic_core import PydanticSerializationError, to_json

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEP: Final = {0x7B: 1, 0x5B: 1, 0x7D: -1, 0x5D: -1}
_NO_BRACKETS: Final = bytes(set(range(256)) - set(_STEP))


class BadJson(ValueError):
    """The text is no JSON that we accept."""


class TooDeep(BadJson):
    """The JSON nests deeper than allowed."""


def parse_json(text: str | bytes, *, depth: int) -> Any:
    """Return the value of *text*. Raises BadJson, TooDeep if it nests deeper than *depth*."""
    # Few brackets cannot nest deeply; only the rare frame with many of them is measured.
    if _brackets(text) > depth and _nesting(text) > depth:
        raise TooDeep(f"JSON nests deeper than {depth} levels")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadJson(f"not JSON: {type(error).__name__}") from None


def json_bytes(value: Any) -> bytes:
    """Return *value* as compact JSON; a lone surrogate, which JSON cannot hold, becomes `?`."""
    try:
        return to_json(value)
    except (PydanticSerializationError, UnicodeEncodeError):
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8", "replace")


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def member(value: Any, name: str) -> Any:
    """Return member *name* of an object, None if there is none."""
    return value.get(name) if is_object(value) else None


def items(value: Any) -> list[Any]:
    """Return the items of a list; anything else has none."""
    return value if is_list(value) else []


def text(value: Any) -> str:
    """Return *value* if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def object_text(value: Any) -> str:
    """Return an object or list as JSON text; a text is taken for one already, the rest is ""."""
    if is_object(value) or is_list(value):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text(value)


def count(value: Any) -> int | None:
    """Return *value* if it is a plausible number of tokens, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    whole = int(value) if 0 <= value < 2**53 else None  # NaN and infinity compare false
    return whole if whole == value else None


def _brackets(text: str | bytes) -> int:
    if isinstance(text, str):
        return text.count("{") + text.count("[")
    return text.count(b"{") + text.count(b"[")


def _nesting(text: str | bytes) -> int:
    raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
    brackets = _STRING.sub(b"", raw).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)
