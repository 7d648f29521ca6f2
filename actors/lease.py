"""The lease of one session: what lets a router serve it where several use one store.

With a store of its own a router needs none, and no actor makes this. When a lease expires
is said by the store's clock alone.
"""

import logging
from dataclasses import replace

import trio

from actors.parts import Parts
from actors.turn import Outcome, Turn
from smista.core.errors import LeaseLost, RunInFlight, SessionNotFound, StorageError
from smista.core.records import SessionState

log = logging.getLogger("smista.sessions")


class Lease:
    """Takes, keeps and gives back the lease of one session, again and again."""

    def __init__(self, session_id: str, parts: Parts) -> None:
        self._session_id = session_id
        self._parts = parts
        self._number: int | None = None

    @property
    def held(self) -> bool:
        """Whether there is a lease to give back; another router may have taken it by now."""
        return self._number is not None

    async def take(self, known: SessionState) -> SessionState:
        """Take the lease and return what storage holds: *known*, unless others came between.

        Raises RunInFlight while another router serves the session, SessionNotFound, StorageError.
        """
        number = await self._parts.journal.take_lease(
            known.session, router=self._parts.router, seconds=self._parts.durations.lease
        )
        if number is None:
            await self._read(known)
            raise RunInFlight("another router serves this session now; try again when it is done")
        self._number = number
        # What was read under another router's lease may have been read before its commit.
        follows = number == known.run.lease + 1 and known.run.active is None
        state = known if follows else await self._read(known)
        return replace(state, run=replace(state.run, lease=number, active=None))

    async def _read(self, known: SessionState) -> SessionState:
        """Return what storage holds of the session; raises SessionNotFound."""
        journal, was = self._parts.journal, known.session
        session = await journal.session(was.user_id, was.id)
        if session is None or session.archived_at is not None:
            raise SessionNotFound("the session is gone; create a new one")
        return await journal.load(session, at=self._parts.clock.now())

    async def serve(self, turn: Turn) -> Outcome:
        """Run *turn* and renew its lease meanwhile; a lost one ends the turn unwritten."""
        async with trio.open_nursery() as renewing:
            renewing.start_soon(self._keep, turn)
            outcome = await turn.run()
            renewing.cancel_scope.cancel(reason="the turn ended")
        if turn.committed:
            self._number = None  # the commit gave it back
        return outcome

    async def _keep(self, turn: Turn) -> None:
        ours = True
        while ours:
            await trio.sleep(self._parts.durations.lease_renewal)
            ours = await self._renewed()
        turn.lose(LeaseLost("another router has taken this session over; send the message again"))

    async def _renewed(self) -> bool:
        """Return False if the lease is lost; a store out of reach cannot say so."""
        journal, seconds = self._parts.journal, self._parts.durations.lease
        if self._number is None:
            raise TypeError("a turn is served under a lease")
        try:
            return await journal.renew_lease(self._session_id, self._number, seconds=seconds)
        except StorageError as error:
            log.warning("the lease of a session was not renewed: %s", error)
            return True

    async def give_back(self, known: SessionState) -> SessionState:
        """Let other routers have the session; return what storage holds then.

        If the store cannot be told, they wait until the lease expires.
        """
        number, self._number = self._number, None
        if number is None:
            return known
        try:
            released = await self._parts.journal.release_lease(self._session_id, number)
        except StorageError as error:
            log.warning("the lease of a session is left to expire: %s", error)
            return known
        if not released:
            return known  # others came between: the next lease's number will not follow
        return replace(known, run=replace(known.run, lease=number + 1))
