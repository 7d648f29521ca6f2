"""Requests and answers of the embedded engine as CBOR, through the compiled `cbor2`.

The SDK's own codec is pure Python and costs more than the engine. Ours is used only after it has
agreed with the SDK's on every kind of value; knows surrealdb, and nothing of files or threads.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import cbor2

from smista.storage.values import Ref

_log = logging.getLogger("smista.storage")

_NONE, _TABLE, _RECORD, _DECIMAL, _TIME, _UUID = 6, 7, 8, 10, 12, 37
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING: Final = cbor2.CBORTag(_NONE, None)
_MOMENT: Final = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

SAMPLE: Final[Mapping[str, Any]] = {
    "nothing": None,
    "truth": [True, False],
    "numbers": [0, -1, 2**63 - 1, -(2**63), 1.5, -0.0],
    "money": [Decimal("0.1"), Decimal("12345678.90"), Decimal("1E-9")],
    "text": ["", "plain", "naïve 🦊", "2026-01-01", "session:1"],
    "bytes": b"\x00\xff",
    "time": [_MOMENT, datetime(1960, 1, 1, tzinfo=UTC)],
    "id": UUID(int=7),
    "refs": [Ref("session", UUID(int=8)), Ref("trace_event", (UUID(int=9), 3)), Ref("user", "u")],
    "nested": {"a": [{"b": None}, []], "c": {}},
}


def encode(text: str, values: Mapping[str, Any]) -> bytes:
    """Return the request that runs *text* with *values* bound."""
    return cbor2.dumps({"id": "q", "method": "query", "params": [text, _tagged(values)]})


def decode(data: bytes) -> Any:
    return cbor2.loads(data, tag_hook=_untagged)


def _tagged(value: Any) -> Any:
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {name: _tagged(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [_tagged(item) for item in value]
    return _TAGS[kind](value)


def _tag_ref(value: Ref) -> cbor2.CBORTag:
    return cbor2.CBORTag(_RECORD, [value.table, _tagged(value.key)])


def _tag_time(value: datetime) -> cbor2.CBORTag:
    past = value - _EPOCH
    seconds = past.days * 86400 + past.seconds
    return cbor2.CBORTag(_TIME, [seconds, past.microseconds * 1000])


_PLAIN: Final = frozenset({str, int, float, bool, bytes})
_TAGS: Final[Mapping[type, Callable[[Any], cbor2.CBORTag]]] = {
    type(None): lambda _: _NOTHING,
    Ref: _tag_ref,
    UUID: lambda value: cbor2.CBORTag(_UUID, value.bytes),
    datetime: _tag_time,
    # The engine refuses exponents, which str() would use for small amounts.
    Decimal: lambda value: cbor2.CBORTag(_DECIMAL, format(value, "f")),
}


def _untagged(*hook: Any) -> Any:
    # cbor2 5 calls with (decoder, tag), cbor2 6 with (tag, immutable).
    tag = hook[0] if isinstance(hook[0], cbor2.CBORTag) else hook[1]
    read = _READERS.get(tag.tag)
    return tag if read is None else read(tag.value)


def _read_time(value: Any) -> datetime:
    seconds, nanoseconds = value
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)


def _key(stored: Any) -> Any:
    # An address must be hashable, and a list is not.
    return tuple(stored) if stored.__class__ is list else stored


def _read_ref(value: Any) -> Ref:
    table, key = value
    return Ref(table, _key(key))


_READERS: Final[Mapping[int, Callable[[Any], Any]]] = {
    _NONE: lambda _: None,
    _TABLE: str,
    _RECORD: _read_ref,
    _DECIMAL: Decimal,
    _TIME: _read_time,
    _UUID: lambda value: value if isinstance(value, UUID) else UUID(bytes=value),
}


class _PlainDecimal(Decimal):
    """Prints without exponent: the SDK sends decimals as str() shows them."""

    def __str__(self) -> str:
        return format(self, "f")


def to_sdk(value: Any) -> Any:
    """Return *value* with our addresses as the SDK's, for the way without our codec."""
    convert = _TO_SDK.get(value.__class__)
    return value if convert is None else convert(value)


def from_sdk(value: Any) -> Any:
    """Undo to_sdk()."""
    convert = _FROM_SDK.get(value.__class__.__name__)
    return value if convert is None else convert(value)


def _sdk_ref(value: Ref) -> Any:
    from surrealdb import RecordID

    return RecordID(value.table, list(value.key) if isinstance(value.key, tuple) else value.key)


_TO_SDK: Final[Mapping[type, Callable[[Any], Any]]] = {
    Ref: _sdk_ref,
    Decimal: _PlainDecimal,
    dict: lambda members: {name: to_sdk(item) for name, item in members.items()},
    list: lambda items: [to_sdk(item) for item in items],
    tuple: lambda items: [to_sdk(item) for item in items],
}
# By name: the SDK is not imported before a store is opened.
_FROM_SDK: Final[Mapping[str, Callable[[Any], Any]]] = {
    "RecordID": lambda value: _read_ref((value.table_name, value.id)),
    "dict": lambda members: {name: from_sdk(item) for name, item in members.items()},
    "list": lambda items: [from_sdk(item) for item in items],
}


def agrees_with_sdk() -> bool:
    """Say if our codec and the SDK's understand each other on every kind of value."""
    from surrealdb.data.cbor import decode as sdk_decode
    from surrealdb.data.cbor import encode as sdk_encode

    expected = _listed(SAMPLE)
    try:
        ours = from_sdk(sdk_decode(encode("", SAMPLE)))["params"][1]
        theirs = decode(sdk_encode(to_sdk(SAMPLE)))
    except (ValueError, TypeError, KeyError, AttributeError, cbor2.CBOREncodeError) as error:
        _log.warning("the compiled codec failed its self-test: %s", type(error).__name__)
        return False
    return bool(ours == expected == theirs)


def _listed(value: Any) -> Any:
    """Return *value* as it comes back: tuples that are no addresses are lists."""
    return from_sdk(to_sdk(value))
