"""What may be stored: values that come back as they went in. Pure; knows no engine.

The engine would take some values and lose them: a NUL makes a row unreadable for ever, an integer
beyond 64 bits wraps, a time without zone shifts. They are mended or refused here.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from smista.core.errors import StorageError

MAX_DEPTH: Final = 64
LAST: Final = 2**63 - 1
_DIGITS: Final = 28
_REPLACEMENT: Final = "\ufffd"

Key = UUID | str | tuple[UUID | str | int, ...]


class Ref(NamedTuple):
    """A row's address: its table and the key in it."""

    table: str
    key: Key


class Unstorable(StorageError):
    """A value that would not survive storage; trying again cannot help."""


def clean(value: Any, depth: int = 0) -> Any:
    """Return *value* with NULs and lone surrogates replaced; raises Unstorable for the hopeless."""
    kind = value.__class__
    if kind is str:
        return clean_text(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind in _CHECKED:
        return _CHECKED[kind](value)
    if depth >= MAX_DEPTH:
        raise Unstorable(f"a value nested more than {MAX_DEPTH} deep cannot be stored; flatten it")
    return _clean_container(value, depth)


def clean_text(text: str) -> str:
    """Return *text* as UTF-8 can carry it, without NUL."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(_REPLACEMENT if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def _clean_container(value: Any, depth: int) -> Any:
    if isinstance(value, Enum):
        return clean(value.value, depth + 1)
    if isinstance(value, Mapping):
        return _clean_members(cast("Any", value), depth + 1)
    if value.__class__ in (list, tuple):
        return [clean(item, depth + 1) for item in value]
    kind = value.__class__.__name__
    raise Unstorable(f"a {kind} cannot be stored; turn it into text or numbers")


def _clean_members(members: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return {clean_text(str(name)): clean(item, depth) for name, item in members.items()}


def _clean_int(value: int) -> int:
    if not -LAST - 1 <= value <= LAST:
        raise Unstorable("an integer beyond 64 bits cannot be stored; send it as text")
    return value


def _clean_time(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise Unstorable("a time without a zone cannot be stored; give it one")
    return value


def _clean_money(value: Decimal) -> Decimal:
    # The engine's decimals hold 96 bits: 28 digits are exact, more would be rounded.
    if value.is_finite():
        _, digits, exponent = value.as_tuple()
        whole = len(digits) + max(int(exponent), 0)
        if whole <= _DIGITS and int(exponent) >= -_DIGITS:
            return value
    raise Unstorable(f"a decimal of more than {_DIGITS} digits cannot be stored exactly")


_AS_THEY_ARE: Final = frozenset({type(None), bool, float, bytes, UUID, Ref})
_CHECKED: Final[Mapping[type, Any]] = {
    int: _clean_int,
    datetime: _clean_time,
    Decimal: _clean_money,
}
