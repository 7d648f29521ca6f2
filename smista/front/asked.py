"""One request as the endpoints see it, whichever way it came in."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from pydantic import SecretStr

from smista.core.errors import InvalidRequest
from smista.core.model_ref import BUILT_IN, COMPAT, provider_id

_PROVIDER_KEY: Final = re.compile(r"x-smista-provider-(.+)-api-key\Z")
_SECRET_HEADERS: Final = ("authorization", "x-smista-api-key", "proxy-authorization", "cookie")
_EVENT_STREAM: Final = "text/event-stream"
_LONGEST_IDEMPOTENCY_KEY: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """*headers* have lower-case names; *template* is the path without the ids in it."""

    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str] = field(repr=False)
    read: Callable[[], Awaitable[bytes]] = field(repr=False)
    template: str
    session_id: str | None = None
    fact_id: str | None = None

    @property
    def wants_stream(self) -> bool:
        """Whether Accept names an event stream; `*/*` does not."""
        ranges = self.headers.get("accept", "").split(",")
        return any(part.partition(";")[0].strip().lower() == _EVENT_STREAM for part in ranges)

    def secrets(self) -> list[str]:
        """Return all keys the request brought, to keep them out of every answer and log."""
        return secrets_of(self.headers)

    def provider_keys(self) -> dict[str, SecretStr]:
        """Return provider id → key. Raises InvalidProviderName for a malformed instance name."""
        keys: dict[str, SecretStr] = {}
        for name, value in self.headers.items():
            match = _PROVIDER_KEY.match(name)
            if match and value:
                keys[_provider(match[1])] = SecretStr(value)
        return keys

    def idempotency_key(self) -> str | None:
        """Raises InvalidRequest unless the key is absent or short printable ASCII."""
        key = self.headers.get("idempotency-key")
        if key is None:
            return None
        if 0 < len(key) <= _LONGEST_IDEMPOTENCY_KEY and key.isascii() and key.isprintable():
            return key
        raise InvalidRequest(
            f"Idempotency-Key must be 1 to {_LONGEST_IDEMPOTENCY_KEY} printable ASCII characters",
            fields=[{"place": "header.idempotency-key", "kind": "invalid_text"}],
        )


def header_map(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by lower-case name; a repeated one joins its values with a comma."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def query_map(query: bytes) -> dict[str, str]:
    """Return the parameters of an already checked query; of a repeated one the first counts."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return dict(reversed(pairs))


def secrets_of(headers: Mapping[str, str]) -> list[str]:
    """Return every value in *headers* that is a credential."""
    found = [value for name, value in headers.items() if _PROVIDER_KEY.match(name)]
    named = (headers.get(name, "") for name in _SECRET_HEADERS)
    return found + [value.rpartition(" ")[2] for value in named if value]


def _provider(name: str) -> str:
    return name if name in BUILT_IN else provider_id(COMPAT + name)
