"""What is asked of usage over all sessions: by what it is summed, and over which time."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from smista.core.records import Session


class UsageBy(StrEnum):
    """What sums are made for. A day is one of UTC, a project the scope of its sessions."""

    MODEL = "model"
    INTENT = "intent"
    DAY = "day"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """Usage *since* then, and before *until*; None: without that bound. *scope*: one project."""

    by: UsageBy = UsageBy.MODEL
    since: datetime | None = None
    until: datetime | None = None
    scope: str | None = None

    def concerns(self, session: Session) -> bool:
        """Say if *session* can hold anything of that time: each turn moves its `updated_at`."""
        begun = self.until is None or session.created_at < self.until
        return begun and (self.since is None or session.updated_at >= self.since)
