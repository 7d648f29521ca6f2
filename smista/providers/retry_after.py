"""The `Retry-After` header → seconds to wait. What makes no sense is as if it were not there."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST: Final = 86_400.0


def retry_after(value: str | None, *, now: datetime) -> float | None:
    """Return the seconds *value* (seconds or HTTP date) asks for, at most a day, else None."""
    text = (value or "").strip()
    if not text:
        return None
    seconds = _seconds(text)
    if seconds is None:
        seconds = _until(text, now)
    return None if seconds is None or not seconds >= 0 else min(seconds, LONGEST)


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _until(text: str, now: datetime) -> float | None:
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (aware - now).total_seconds()
