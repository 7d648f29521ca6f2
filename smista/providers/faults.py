"""What a provider complains about → the error of ours. Pure; shared by the dialects.

The order of the questions is the order of certainty: an overflow of the context or an unpaid
bill is itself under many statuses, a plain status is what is left.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from smista.core.errors import (
    BadStream,
    ContextLengthExceeded,
    InvalidProviderCredentials,
    ModelNotFound,
    ProviderAuthentication,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnsupportedCapability,
)
from smista.providers.json_values import count, is_object, member
from smista.providers.masking import Mask

_SHOWN: Final = 500
_OVERFLOW_CODES: Final = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
)
_OVERFLOW: Final = re.compile(
    r"maximum context length"
    r"|context (?:length|size|window|limit).{0,40}exceed"
    r"|exceed.{0,60}(?:context (?:length|size|window|limit)|maximum number of tokens)"
    r"|prompt is too long|input is too long|too many input tokens",
    re.IGNORECASE | re.DOTALL,
)
_TOKENS: Final = re.compile(
    r"(?:at least|length \(|token count \(|too long:|requested|limit:) ?(\d+)", re.IGNORECASE
)
_LIMIT: Final = re.compile(
    r"(?:context length is|context length \(|tokens allowed \(|> ?) ?(\d+)", re.IGNORECASE
)
_BILLING_CODES: Final = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_credits",
        "insufficient_balance",
    }
)
_BILLING: Final = re.compile(
    r"exceeded your current quota|credit balance|out of credits|billing"
    r"|insufficient.{0,20}(?:quota|credit|fund|balance)",
    re.IGNORECASE,
)
_MODEL_CODES: Final = frozenset({"model_not_found", "model_not_available"})
_NO_MODEL: Final = re.compile(
    r"\bmodel\b.{0,120}(?:not found|does not exist|not exist|unknown|no such)"
    r"|(?:not found|no such|unknown).{0,40}\bmodel\b|invalid model (?:name|id)\b",
    re.IGNORECASE | re.DOTALL,
)
_UNSUPPORTED: Final = re.compile(
    r"(?:does not|doesn't|not) support.{0,40}(?:tool|function|image|vision|stream|reasoning)"
    r"|(?:tool|function|image|vision|stream|reasoning).{0,60}(?:not supported|unsupported)",
    re.IGNORECASE | re.DOTALL,
)
_WORDS: Final = {
    "overloaded_error": 529,
    "overloaded": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "server_error": 500,
    "api_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "timeout_error": 504,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What a provider said went wrong; *status* is None inside a stream that names none."""

    provider: str
    status: int | None
    words: frozenset[str] = frozenset()
    message: str = ""
    tokens: int | None = None
    limit: int | None = None

    @property
    def text(self) -> str:
        said = self.message[:_SHOWN] or "(no message)"
        if self.status is None:
            return f"{self.provider} reported an error: {said}"
        return f"{self.provider} answered {self.status}: {said}"


def read_complaint(provider: str, status: int | None, value: Any, mask: Mask) -> Complaint:
    """Return the complaint in *value*: an error object, one that holds it, or a bare text."""
    inner = member(value, "error") or value
    fields = [holder for holder in (inner, value) if is_object(holder)]
    said = inner if isinstance(inner, str) else _first(fields, "message", "detail", "msg")
    words = {str(holder[k]) for holder in fields for k in ("code", "type") if holder.get(k)}
    return Complaint(
        provider=provider,
        status=status or _status(words),
        words=frozenset(words),
        message=mask(said),
        tokens=count(member(inner, "n_prompt_tokens")),
        limit=count(member(inner, "n_ctx")),
    )


def _first(fields: Iterable[dict[str, Any]], *names: str) -> str:
    found = (holder.get(name) for holder in fields for name in names)
    return next((value for value in found if isinstance(value, str)), "")


def _status(words: Iterable[str]) -> int | None:
    numbers = (int(w) for w in words if w.isascii() and w.isdigit() and len(w) == 3)
    named = (_WORDS[word] for word in sorted(words) if word in _WORDS)
    return next((n for n in numbers if n >= 400), None) or next(named, None)


def classify(complaint: Complaint) -> ProviderError:
    """Return the error that *complaint* stands for; `Retry-After` is the transport's business."""
    return _telling(complaint) or _by_status(complaint)


def _telling(c: Complaint) -> ProviderError | None:
    """Return the error that the words tell, whatever the status."""
    if c.status == 413 or c.words & _OVERFLOW_CODES or _OVERFLOW.search(c.message):
        return _overflow(c)
    if c.status == 402 or c.words & _BILLING_CODES or _BILLING.search(c.message):
        return ProviderFailure(c.text, kind="billing", provider=c.provider, status=c.status)
    if c.words & _MODEL_CODES or (c.status in (400, 404) and _NO_MODEL.search(c.message)):
        return ModelNotFound(c.text, provider=c.provider, status=c.status)
    return None


def _overflow(c: Complaint) -> ProviderError:
    return ContextLengthExceeded(
        c.text,
        kind="context_overflow",
        provider=c.provider,
        status=c.status,
        tokens=c.tokens or _number(_TOKENS, c.message),
        limit=c.limit or _number(_LIMIT, c.message),
    )


def _number(pattern: re.Pattern[str], message: str) -> int | None:
    found = [int(text) for text in pattern.findall(message) if len(text) < 16]
    return max(found, default=None)


def _by_status(c: Complaint) -> ProviderError:
    match c.status:
        case 401:
            return InvalidProviderCredentials(
                f"{c.text}; check the key stored for {c.provider}", **_where(c)
            )
        case 403 | 407:
            return ProviderAuthentication(c.text, **_where(c))
        case 408:
            return ProviderTimeout(c.text, **_where(c))
        case 429:
            return ProviderRateLimited(c.text, **_where(c))
        case 400 | 422 if _UNSUPPORTED.search(c.message):
            return ProviderUnsupportedCapability(c.text, **_where(c))
        case 400 | 422:
            return ProviderRejected(c.text, **_where(c))
        case int() as status if status >= 500:
            return ProviderUnavailable(c.text, kind=_KINDS.get(status), **_where(c))
        case _:
            return ProviderFailure(c.text, kind="upstream_error", **_where(c))


_KINDS: Final = {502: "bad_gateway", 504: "gateway_timeout", 529: "overloaded"}


def _where(c: Complaint) -> dict[str, Any]:
    return {"provider": c.provider, "status": c.status}


def bad_stream(provider: str, kind: str, what: str) -> ProviderError:
    """Return the error for bytes that make no answer."""
    return BadStream(f"{provider}: {what}", kind=kind, provider=provider)


def not_an_api(provider: str, url: str, what: str, status: int) -> ProviderError:
    """Return the error for an address where no model API lives."""
    return ProviderFailure(
        f"{url} answered {what}: this is no model API; check the path in the base_url of"
        f" {provider} (most end in /v1)",
        kind="not_an_api",
        provider=provider,
        status=status,
    )
