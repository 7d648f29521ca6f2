"""Query parameters → checked values; what cannot be read names its place and kind, no value."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from smista.core.errors import InvalidRequest
from smista.core.usage import UsageBy, UsageQuery

_LONGEST: Final = 40


def usage_query(query: Mapping[str, str]) -> UsageQuery:
    """Return what is asked of usage. Raises InvalidRequest."""
    by = query.get("by", UsageBy.MODEL.value)
    known = [each.value for each in UsageBy]
    if by not in known:
        raise _unreadable("by", f"one of {', '.join(known)}", "enum")
    return UsageQuery(
        by=UsageBy(by),
        since=_moment(query, "since"),
        until=_moment(query, "until"),
        scope=query.get("scope"),
    )


def _moment(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        if len(text) > _LONGEST:
            raise ValueError
        # An unescaped plus of a zone arrives as a blank.
        moment = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        raise _unreadable(name, "a day or a time, as 2026-05-25T12:00:00Z", "datetime") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _unreadable(name: str, expected: str, kind: str) -> InvalidRequest:
    place = {"place": f"query.{name}", "kind": kind}
    return InvalidRequest(f"the parameter {name} must be {expected}", fields=[place])
