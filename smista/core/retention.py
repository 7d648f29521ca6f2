"""What is over age, and when that is not to be believed. Pure: times come in, nothing is asked."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

JUMP: Final = timedelta(hours=24)
"""How far the wall clock may be from steady progress between two looks at it."""
SHARE: Final = 0.2
"""How much of all there is may become due at once."""
HANDFUL: Final = 10
"""So few are not too many, unless they are all there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many days things are kept; 0: for ever. User memory is kept in any case."""

    trace_days: int
    session_days: int
    archived_days: int

    def bounds(self, now: datetime) -> "Bounds":
        """Return the times at which things are due that are no later."""
        return Bounds(
            events=_before(now, self.trace_days),
            updated=_before(now, self.session_days),
            archived=_before(now, self.archived_days),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Due are trace events of *events* or before, living sessions last *updated* then or before,
    and sessions *archived* then or before. None: nothing is.
    """

    events: datetime | None
    updated: datetime | None
    archived: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many are due, of how many."""

    due: int
    of: int

    @property
    def doubtful(self) -> bool:
        """Say if so many at once look like a wrong clock rather than like age."""
        many = self.due > HANDFUL or self.due == self.of
        return many and self.due > SHARE * self.of


def jumped(wall: timedelta, steady: timedelta) -> bool:
    """Say if the wall clock moved by *wall* while *steady* time went by, and that cannot be."""
    return abs(wall - steady) > JUMP


def _before(now: datetime, days: int) -> datetime | None:
    try:
        return now - timedelta(days=days) if days else None
    except OverflowError:  # longer than there have been dates
        return None
