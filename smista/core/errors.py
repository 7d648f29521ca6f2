"""The error tree. Every error carries the stable code of the API and says what to do next.

    SmistaError
    ├─ RequestError    what the client sent cannot be used
    ├─ AuthError       who the client is, is not clear or not enough
    ├─ SessionError    the session or its run cannot take this now
    ├─ RoutingError    no model may or can serve the turn
    ├─ ProviderError   a model server failed; `retryable` says if asking again may help
    └─ ServiceError    the router itself is busy, leaving or broken

HTTP statuses are the front's business, exit codes the terminal's. Messages never hold secrets.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class SmistaError(Exception):
    """Base of all errors that reach a person. *details* is JSON that the API shows as it is."""

    code: ClassVar[str] = "internal_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, /, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, Any] = {k: v for k, v in details.items() if v is not None}


class RequestError(SmistaError):
    code = "invalid_request"


class InvalidRequest(RequestError):
    """Shape or order is wrong; `details.fields` names place and kind, never values."""


class InvalidJson(RequestError):
    code = "invalid_json"


class InvalidSessionId(RequestError):
    code = "invalid_session_id"


class CredentialsInQuery(RequestError):
    code = "credentials_in_query"


class RequestTooLarge(RequestError):
    code = "request_too_large"


class UnsupportedMediaType(RequestError):
    code = "unsupported_media_type"


class NotFound(RequestError):
    code = "not_found"


class MethodNotAllowed(RequestError):
    code = "method_not_allowed"


class UnknownIntent(RequestError):
    code = "unknown_intent"


class UnknownEffort(RequestError):
    code = "unknown_effort"


class UnknownProvider(RequestError):
    code = "unknown_provider"


class InvalidModelReference(RequestError):
    code = "invalid_model_reference"


class InvalidProviderName(RequestError):
    code = "invalid_provider_name"


class PermissionExpansion(RequestError):
    code = "permission_expansion"


class AuthError(SmistaError):
    code = "missing_credentials"


class MissingCredentials(AuthError):
    """No bearer token, or no key header at sign-in."""


class InvalidApiKey(AuthError):
    code = "invalid_api_key"


class InvalidToken(AuthError):
    code = "invalid_token"


class TokenExpired(AuthError):
    code = "token_expired"


class TokenRevoked(AuthError):
    code = "token_revoked"


class Forbidden(AuthError):
    code = "forbidden"


class SessionError(SmistaError):
    code = "session_not_found"


class SessionNotFound(SessionError):
    """Unknown, archived, or someone else's: never told apart."""


class SessionExists(SessionError):
    """An import brings a session that is there already."""

    code = "session_exists"


class RunInFlight(SessionError):
    code = "run_in_flight"


class Superseded(SessionError):
    code = "superseded"


class RoutingError(SmistaError):
    code = "no_route"


class NoRoute(RoutingError):
    """No rule and no default, or restricted content without a usable local model."""


class OverrideNotAllowed(RoutingError):
    code = "override_not_allowed"


class FallbackExhausted(RoutingError):
    code = "fallback_exhausted"


class ContextWindowExceeded(RoutingError):
    code = "context_window_exceeded"


class MissingCapability(RoutingError):
    code = "missing_capability"


class RoutingUnsupportedCapability(RoutingError):
    code = "routing_unsupported_capability"


class UnknownModel(RoutingError):
    code = "unknown_model"


class MissingProviderCredentials(RoutingError):
    code = "missing_provider_credentials"


class ProviderError(SmistaError):
    """A model server failed. `details.kind` names the kind of fault where the code is broad."""

    code = "provider_error"
    retry_after: float | None = None


class ProviderFailure(ProviderError):
    """An error of no known class."""


class BadStream(ProviderError):
    """The answer's bytes do not make sense, or end before their end."""

    retryable = True


class ProviderUnavailable(ProviderError):
    code = "provider_unavailable"
    retryable = True


class ProviderRateLimited(ProviderError):
    """*retry_after* is in seconds and a floor for the next try on this provider."""

    code = "rate_limited"
    retryable = True

    def __init__(
        self, message: str, /, *, retry_after: float | None = None, **details: Any
    ) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class ProviderTimeout(ProviderError):
    code = "request_timeout"


class ProviderAuthentication(ProviderError):
    code = "provider_authentication"


class InvalidProviderCredentials(ProviderError):
    code = "invalid_provider_credentials"


class InvalidProviderConfiguration(ProviderError):
    code = "invalid_provider_configuration"


class ProviderRejected(ProviderError):
    """The provider calls our request malformed."""

    code = "invalid_request"


class ModelNotFound(ProviderError):
    code = "model_not_found"


class ContextLengthExceeded(ProviderError):
    code = "context_length_exceeded"


class ProviderUnsupportedCapability(ProviderError):
    code = "provider_unsupported_capability"


class ServiceError(SmistaError):
    code = "internal_error"


class InternalError(ServiceError):
    """A fault of ours; the detail stays in the log."""


class RouterBusy(ServiceError):
    code = "router_busy"
    retryable = True


class ShuttingDown(ServiceError):
    code = "shutting_down"
    retryable = True


class TooManyRequests(ServiceError):
    """The router's own limiter. *retry_after* is in seconds."""

    code = "rate_limited"
    retryable = True

    def __init__(self, message: str, /, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AnswerTimeout(ServiceError):
    """A buffered answer outlived `request_timeout_ms`; its turn goes on."""

    code = "request_timeout"


class StorageError(ServiceError):
    code = "storage_error"


class StorageUnavailable(StorageError):
    """The store cannot be reached now; nothing was written or the outcome is unknown."""

    retryable = True


class LeaseLost(StorageUnavailable):
    """Another router took the session over meanwhile; nothing was written."""


def revive(code: str, message: str, details: Mapping[str, Any]) -> SmistaError:
    """Return the error that was once told with *code*; an unknown code is an internal error."""
    kinds: list[type[SmistaError]] = [SmistaError]
    while kinds:
        kind = kinds.pop(0)
        if kind.code == code and "__init__" not in kind.__dict__ and kind is not SmistaError:
            return kind(message, **details)
        kinds += kind.__subclasses__()
    return InternalError(message, **details)
