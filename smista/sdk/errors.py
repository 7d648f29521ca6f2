"""What can go wrong between a client and its router. Messages never hold secrets."""

from collections.abc import Mapping
from typing import Any, TypeGuard


class SdkError(Exception):
    """Base of all errors of the SDK."""


class ApiError(SdkError):
    """The router answered with an error: HTTP *status*, stable *code*, *message*, *details*."""

    def __init__(
        self, status: int, code: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.details: Mapping[str, Any] = details or {}


class Unreachable(SdkError):
    """No router answers at *url*, or the connection broke."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"no router answers at {url} ({reason})")
        self.url = url
        self.reason = reason


class BadAnswer(SdkError):
    """What answered does not speak the router's language."""


class Unproven(SdkError):
    """What answers at *url* did not prove that it is the user's own router."""

    def __init__(self, url: str) -> None:
        super().__init__(f"what answers at {url} did not prove that it is your router")
        self.url = url


class NotFetched(SdkError):
    """A page of the internet that is not fetched; the text tells whoever asked why."""


class NotSignedIn(SdkError):
    """The call needs a session token, and the client holds none and no key to get one."""

    def __init__(self) -> None:
        super().__init__("not signed in: call sign_in() first, or give the client an API key")


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether the parsed JSON *value* is an object."""
    return isinstance(value, dict)


def api_error(status: int, body: object) -> SdkError:
    """Return the error that the parsed *body* of an answer with *status* states."""
    error = body.get("error") if is_object(body) else None
    if is_object(error):
        code, message, details = error.get("code"), error.get("message"), error.get("details")
        if isinstance(code, str) and isinstance(message, str):
            return ApiError(status, code, message, details if is_object(details) else None)
    return BadAnswer(f"status {status} without the error body of a smista router")
