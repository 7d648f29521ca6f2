"""Deletes what is over age, now and then, and nothing at all while the clock is in doubt."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

import trio

from smista.core.errors import RunInFlight, SessionNotFound, StorageError
from smista.core.retention import Bounds, Retention, Share, jumped
from smista.ports.journal import Journal

log = logging.getLogger("smista.retention")

HELD: Final = timedelta(hours=24)
"""For how long nothing is deleted once the clock was in doubt."""
SESSIONS: Final = "sessions"
EVENTS: Final = "trace rows"


class Sessions(Protocol):
    """Where sessions are deleted, each by its own actor."""

    async def delete(self, user_id: str, session_id: str) -> None: ...


class Doubt:
    """Whether the clock can be believed: it has to move steadily, and make little due at once.

    *wall* is what the clock says, *steady* the seconds of one that cannot be set.
    """

    def __init__(self, wall: datetime, steady: float) -> None:
        self._wall = wall
        self._steady = steady
        self._held: dict[str, float] = {}

    def look(self, wall: datetime, steady: float) -> None:
        """Note how both clocks stand now."""
        passed = timedelta(seconds=steady - self._steady)
        if jumped(wall - self._wall, passed):
            log.warning("the clock jumped to %s; nothing is deleted for a day", wall)
            self._held = {what: steady + HELD.total_seconds() for what in (SESSIONS, EVENTS)}
        self._wall, self._steady = wall, steady

    def allows(self, what: str, share: Share) -> bool:
        """Return whether *what* that is due may be deleted now."""
        held = self._held.get(what)
        if held is not None and self._steady < held:
            return False
        if not share.doubtful:
            self._held.pop(what, None)
            return True
        if held is not None:
            return True  # it was held for a day, and the clock still says so
        text = "%s of %s %s are due at once; if the clock is right they are deleted in a day"
        log.warning(text, share.due, share.of, what)
        self._held[what] = self._steady + HELD.total_seconds()
        return False


async def sweep(
    journal: Journal,
    sessions: Sessions,
    retention: Retention,
    *,
    every: float,
    now: Callable[[], datetime],
) -> None:
    """Delete what is over age, every *every* seconds; never returns."""
    doubt = Doubt(now(), trio.current_time())
    while True:
        await trio.sleep(every)
        wall = now()
        doubt.look(wall, trio.current_time())
        try:
            bounds = retention.bounds(wall)
            await _sweep_sessions(journal, sessions, bounds, doubt)
            await _sweep_events(journal, bounds, doubt)
        except StorageError as error:
            log.warning("nothing more is deleted this time: %s", error)


async def _sweep_sessions(
    journal: Journal, sessions: Sessions, bounds: Bounds, doubt: Doubt
) -> None:
    share, due = await journal.due_sessions(bounds)
    if not due or not doubt.allows(SESSIONS, share):
        return
    gone = 0
    for session in due:
        try:
            await sessions.delete(session.user_id, session.id)
            gone += 1
        except (RunInFlight, SessionNotFound) as error:
            # It is in use at another router, or somebody was faster.
            log.info("session %s is left for later: %s", session.id, error)
    log.info("%s sessions were over age and are deleted", gone)


async def _sweep_events(journal: Journal, bounds: Bounds, doubt: Doubt) -> None:
    if bounds.events is None:
        return
    share = await journal.due_events(bounds.events)
    if share.due and doubt.allows(EVENTS, share):
        await journal.drop_events(bounds.events)
        log.info("%s trace rows were over age and are deleted", share.due)
