"""Answers as values: status, headers, JSON bytes. The one table from errors to HTTP statuses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final, cast

from pydantic_core import PydanticSerializationError, to_json

from smista.core.errors import (
    ProviderRateLimited,
    SmistaError,
    StorageUnavailable,
    TooManyRequests,
)
from smista.core.events import error_body
from smista.front.mask import masked, needles, without_keys

Header = tuple[bytes, bytes]

STATUSES: Final = {
    "context_length_exceeded": 422,
    "context_window_exceeded": 422,
    "credentials_in_query": 400,
    "fallback_exhausted": 503,
    "forbidden": 403,
    "internal_error": 500,
    "invalid_api_key": 401,
    "invalid_json": 400,
    "invalid_model_reference": 422,
    "invalid_provider_configuration": 500,
    "invalid_provider_credentials": 503,
    "invalid_provider_name": 422,
    "invalid_request": 422,
    "invalid_session_id": 400,
    "invalid_token": 401,
    "method_not_allowed": 405,
    "missing_capability": 422,
    "missing_credentials": 401,
    "missing_provider_credentials": 503,
    "model_not_found": 404,
    "no_route": 422,
    "not_found": 404,
    "override_not_allowed": 403,
    "permission_expansion": 422,
    "provider_authentication": 503,
    "provider_error": 502,
    "provider_unavailable": 503,
    "provider_unsupported_capability": 422,
    "rate_limited": 429,
    "request_timeout": 504,
    "request_too_large": 413,
    "router_busy": 503,
    "routing_unsupported_capability": 422,
    "run_in_flight": 409,
    "session_exists": 409,
    "session_not_found": 404,
    "shutting_down": 503,
    "storage_error": 502,
    "superseded": 409,
    "token_expired": 401,
    "token_revoked": 401,
    "unknown_effort": 422,
    "unknown_intent": 422,
    "unknown_model": 422,
    "unknown_provider": 422,
    "unsupported_media_type": 415,
}
_LONGEST_MESSAGE: Final = 1000

JSON_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. *headers* do not hold the length."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = JSON_HEADERS

    def raw_headers(self) -> list[Header]:
        return [*self.headers, (b"content-length", str(len(self.body)).encode())]

    def plus(self, *headers: Header) -> "Reply":
        return replace(self, headers=(*self.headers, *headers))

    def masked_for(self, keys: Sequence[str]) -> "Reply":
        return replace(self, body=without_keys(self.body, needles(keys))) if keys else self


def status_of(error: SmistaError) -> int:
    """Return the HTTP status of *error*."""
    if isinstance(error, StorageUnavailable):
        return 503
    return STATUSES[error.code]


def json_reply(value: Any, status: int = 200) -> Reply:
    return Reply(status, dump(value))


def error_reply(error: SmistaError, keys: Sequence[str] = ()) -> Reply:
    """Return the answer for *error*, masked; never raises, whatever the details hold."""
    reply = json_reply({"error": safe_error(error, keys)}, status_of(error))
    wait = retry_after(error)
    return reply if wait is None else reply.plus((b"retry-after", str(wait).encode()))


def safe_error(error: SmistaError, keys: Sequence[str] = ()) -> dict[str, Any]:
    """Return the members of the `error` object, masked and with a message of bounded length."""
    body: dict[str, Any] = masked(error_body(error), keys)
    body["message"] = body["message"][:_LONGEST_MESSAGE]
    return body


def retry_after(error: SmistaError) -> int | None:
    """Return whole seconds for the Retry-After header, if *error* knows them."""
    if isinstance(error, TooManyRequests | ProviderRateLimited) and error.retry_after is not None:
        return max(1, ceil(error.retry_after))
    return None


def dump(value: Any) -> bytes:
    """Return *value* as JSON. A lone surrogate, which no JSON text can hold, becomes `?`."""
    try:
        return to_json(value, fallback=str)
    except (PydanticSerializationError, UnicodeEncodeError):
        return to_json(_encodable(value), fallback=str)


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case dict():
            members = cast("dict[Any, Any]", cast("object", value))
            return {_encodable(name): _encodable(item) for name, item in members.items()}
        case list() | tuple():
            return [_encodable(item) for item in cast("Sequence[Any]", value)]
        case _:
            return value
