"""What Gemini's error bodies mean beyond what all providers' bodies mean."""

import re
from collections.abc import Iterator
from typing import Any, Final

from smista.core.errors import (
    InvalidProviderCredentials,
    ModelNotFound,
    ProviderError,
    ProviderRateLimited,
)
from smista.providers.faults import Complaint, classify, read_complaint
from smista.providers.json_values import is_object, items, member, text
from smista.providers.masking import Mask

_NAME: Final = "gemini"
_SECONDS: Final = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
_STATUS: Final = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


def gemini_error(status: int | None, value: Any, mask: Mask) -> ProviderError:
    """Return the error for an error object inside a stream."""
    known = status or _STATUS.get(text(member(member(value, "error"), "status")))
    complaint = read_complaint(_NAME, known, value, mask)
    return judge(complaint, value) or classify(complaint)


def judge(complaint: Complaint, said: Any) -> ProviderError | None:
    """Return the error for words that are this API's own, None if others know them too."""
    details = [d for d in items(member(member(said, "error"), "details")) if is_object(d)]
    where = {"provider": _NAME, "status": complaint.status}
    if "API_KEY_INVALID" in _reasons(details) or "API key not valid" in complaint.message:
        # Answered with a 400, as if the request were malformed.
        return InvalidProviderCredentials(
            f"{complaint.text}; check the key stored for {_NAME}", **where
        )
    if complaint.status == 404 and "models/" in complaint.message:
        return ModelNotFound(complaint.text, **where)
    if complaint.status == 429 and (wait := _retry(details)) is not None:
        # Limits per minute speak of quota and billing, too; only a wait tells them apart.
        return ProviderRateLimited(complaint.text, retry_after=wait, **where)
    return None


def _reasons(details: list[dict[str, Any]]) -> set[str]:
    return {text(detail.get("reason")) for detail in details}


def _retry(details: list[dict[str, Any]]) -> float | None:
    """Return the seconds to wait, None if a limit per day is used up or none are named."""
    if any("PerDay" in quota for quota in _quotas(details)):
        return None
    waits = (_SECONDS.fullmatch(text(detail.get("retryDelay"))) for detail in details)
    return next((float(found[1]) for found in waits if found), None)


def _quotas(details: list[dict[str, Any]]) -> Iterator[str]:
    for detail in details:
        for violation in items(detail.get("violations")):
            yield text(member(violation, "quotaId"))
