"""The parent of all session actors: wakes them, contains their faults, lets them sleep.

It is the `Sessions` of the front. What an actor knows is a cache of storage; the directory holds
no run itself.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import trio

from actors.deciding import decided_on, preview_snapshot
from actors.envelope import Abandon, Envelope, Forget, Leave, ReaderLeft
from actors.parts import Parts
from actors.reading import without_restricted
from actors.session import SessionActor
from actors.turn_stream import TurnStream
from smista.core.decision import Decision, Refusal
from smista.core.errors import SessionExists, SessionNotFound, ShuttingDown
from smista.core.facts import newest_first
from smista.core.identity import identity
from smista.core.lifecycle import Lock
from smista.core.model_ref import Catalog, ProviderDescriptor
from smista.core.records import MemoryRecord, MemoryScope, Session, SessionState, TraceEvent
from smista.core.request import ExecuteRequest
from smista.core.session_copy import SessionCopy, as_new, settled
from smista.core.session_views import session_detail
from smista.core.usage import UsageQuery
from smista.ports.journal import CostSum, UsageSum
from smista.ports.provider import Credentials
from smista.ports.sessions import Call, TurnReader

log = logging.getLogger("smista.sessions")


@asynccontextmanager
async def open_directory(parts: Parts) -> AsyncGenerator["Directory"]:
    """Own the nursery of all sessions; leaving it cancels what is left of them."""
    async with trio.open_nursery() as nursery:
        yield Directory(parts, nursery)
        nursery.cancel_scope.cancel(reason="the directory closes")


class Directory:
    """Owns the awake sessions, at most one actor each."""

    def __init__(self, parts: Parts, nursery: trio.Nursery) -> None:
        self._parts = parts
        self._nursery = nursery
        self._awake: dict[str, SessionActor] = {}
        self._waking: dict[str, trio.Event] = {}
        self._draining = False

    # --- runs --------------------------------------------------------------------------------

    async def tell(self, call: Call) -> TurnReader:
        """Hand *call* to its session's actor and return the reader of what comes of it."""
        recognised = identity(call.message, call.idempotency_key)
        actor = await self._actor(call.user_id, call.session_id)
        if self._draining:
            raise ShuttingDown("the router is shutting down; start it again and repeat the call")
        limits = self._parts.limits
        stream = TurnStream(
            limit=limits.stream_events,
            said_bytes=limits.said_bytes,
            leave=lambda silent: actor.whisper(ReaderLeft(silent)),
        )
        envelope = Envelope(
            message=call.message,
            stream=stream,
            reader=stream.attach(),
            credentials=call.credentials,
            identity=recognised,
        )
        actor.tell_nowait(envelope)
        try:
            await envelope.verdict()
        except trio.Cancelled:
            envelope.reader.close()
            raise
        return envelope.reader

    async def preview(
        self, user_id: str, session_id: str, request: ExecuteRequest, credentials: Credentials
    ) -> Decision:
        """Return the decision an execute would make now; no lock, no write, no model call."""
        session = await self._session(user_id, session_id)
        actor = self._awake.get(session_id)
        state = actor.newest if actor and actor.current else await self._load(session)
        snapshot = await preview_snapshot(state, request, credentials, self._parts)
        match await decided_on(snapshot, self._parts):
            case Refusal(error=error):
                raise error
            case Decision() as decision:
                return decision

    async def _actor(self, user_id: str, session_id: str) -> SessionActor:
        while True:
            actor = self._awake.get(session_id)
            if actor is not None:
                if actor.state.session.user_id != user_id:
                    raise _unknown()
                return actor
            waking = self._waking.get(session_id)
            if waking is None:
                await self._wake(user_id, session_id)
            else:
                await waking.wait()

    async def _wake(self, user_id: str, session_id: str) -> None:
        """Load a session and start its actor; whoever asks meanwhile waits for this."""
        waking = self._waking[session_id] = trio.Event()
        try:
            session = await self._session(user_id, session_id)
            state = await self._load(session)
            actor = SessionActor(state, self._parts, self._forget)
            self._awake[session_id] = actor
            self._nursery.start_soon(self._host, actor)
        finally:
            del self._waking[session_id]
            waking.set()

    async def _load(self, session: Session) -> SessionState:
        return await self._parts.journal.load(session, at=self._parts.clock.now())

    def _forget(self, actor: SessionActor) -> None:
        # By then the session may be awake again, with an actor that is not the one that ends.
        session_id = actor.state.session.id
        if self._awake.get(session_id) is actor:
            del self._awake[session_id]

    async def _host(self, actor: SessionActor) -> None:
        """Run one actor. A fault in it ends here: its run is answered, all others go on."""
        try:
            await actor.serve()
        except Exception:  # the one place where a session's bug is contained
            log.exception("session %s failed and was closed", actor.state.session.id)

    async def _session(self, user_id: str, session_id: str, *, archived: bool = False) -> Session:
        session = await self._parts.journal.session(user_id, session_id)
        if session is None or (session.archived_at is not None and not archived):
            raise _unknown()
        return session

    # --- sessions ----------------------------------------------------------------------------

    async def create(
        self, user_id: str, *, title: str, scope: str | None, key_id: str | None
    ) -> Session:
        now = self._parts.clock.now()
        session = Session(
            id=self._parts.clock.new_id(),
            user_id=user_id,
            title=title,
            scope=scope,
            key_id=key_id,
            created_at=now,
            updated_at=now,
        )
        await self._parts.journal.create_session(session)
        return session

    async def list(
        self, user_id: str, *, scope: str | None, title: str | None
    ) -> tuple[Session, ...]:
        return await self._parts.journal.sessions(user_id, scope=scope, title=title)

    async def fetch(self, user_id: str, session_id: str) -> dict[str, Any]:
        session = await self._session(user_id, session_id)
        state = await self._parts.journal.load(session, messages=None)
        actor = self._awake.get(session_id)
        live = actor.newest if actor and actor.current and session.encrypted else None
        return session_detail(state, live)

    async def update(
        self, user_id: str, session_id: str, *, title: str | None, archived: bool | None
    ) -> Session:
        session = await self._session(user_id, session_id, archived=True)
        now = self._parts.clock.now()
        was = session.archived_at
        archived_at = was if archived is None else ((was or now) if archived else None)
        updated = replace(
            session,
            title=session.title if title is None else title,
            archived_at=archived_at,
            updated_at=now,
        )
        if was is None and archived_at is not None:
            await self._leave(user_id, session_id, updated)
        else:
            await self._parts.journal.update_session(updated)
        return updated

    async def delete(self, user_id: str, session_id: str) -> None:
        session = await self._session(user_id, session_id, archived=True)
        await self._leave(user_id, session.id, None)

    async def _leave(self, user_id: str, session_id: str, update: Session | None) -> None:
        """Have the session's own actor archive or delete it, so that no turn writes beside it."""
        archived = await self._session(user_id, session_id, archived=True)
        if archived.archived_at is not None:
            await self._parts.journal.delete_session(session_id)
            return
        leave = Leave(update)
        (await self._actor(user_id, session_id)).tell_nowait(leave)
        await leave.wait()

    async def trace(
        self, user_id: str, session_id: str, *, offset: int, limit: int
    ) -> tuple[TraceEvent, ...]:
        await self._session(user_id, session_id)
        return await self._parts.journal.trace(session_id, offset=offset, limit=limit)

    async def usage(self, user_id: str, session_id: str) -> tuple[CostSum, ...]:
        await self._session(user_id, session_id)
        return await self._parts.journal.usage(session_id)

    # --- what is remembered ------------------------------------------------------------------

    async def facts(
        self, user_id: str, *, session_id: str | None = None
    ) -> tuple[MemoryRecord, ...]:
        journal = self._parts.journal
        found = await journal.facts(MemoryScope.USER, user_id)
        if session_id is None:
            return found
        await self._session(user_id, session_id)
        return newest_first((*found, *await journal.facts(MemoryScope.SESSION, session_id)))

    async def forget(self, user_id: str, fact_id: str, *, session_id: str | None = None) -> bool:
        journal = self._parts.journal
        if session_id is not None:
            await self._session(user_id, session_id)
            await self._forget_in_actor(session_id, fact_id)
            if await journal.forget_fact(MemoryScope.SESSION, session_id, fact_id):
                return True
        try:
            return await journal.forget_fact(MemoryScope.USER, user_id, fact_id)
        finally:
            self._parts.memories.changed(user_id)

    async def _forget_in_actor(self, session_id: str, fact_id: str) -> None:
        actor = self._awake.get(session_id)
        if actor is not None:
            forget = Forget(fact_id)
            actor.tell_nowait(forget)
            await forget.done.wait()

    async def export(self, user_id: str, session_id: str) -> SessionCopy:
        """Return the session as storage holds it, without the restricted bodies of a live run."""
        session = await self._session(user_id, session_id)
        copy = await self._parts.journal.read_out(session)
        return without_restricted(copy, await self._load(session))

    async def take_in(self, user_id: str, copy: SessionCopy) -> Session:
        copy = settled(copy)
        if not copy.session.encrypted:
            # What is sealed is bound to its ids; all else gets new ones.
            copy = as_new(copy, replace(copy.session, id=self._parts.clock.new_id()))
        if not await self._parts.journal.take_in(copy):
            raise SessionExists(
                "there is a session by this id already, and an encrypted one keeps its id"
            )
        return copy.session

    async def spending(self, user_id: str, query: UsageQuery) -> tuple[UsageSum, ...]:
        return await self._parts.journal.spending(user_id, query)

    # --- the house ---------------------------------------------------------------------------

    def providers(self) -> tuple[ProviderDescriptor, ...]:
        return self._parts.providers.descriptors()

    async def models(self, credentials: Credentials, *, deadline: float) -> Catalog:
        return await self._parts.providers.catalog(credentials, deadline=deadline)

    async def drain(self, *, grace: float, settle: float) -> None:
        """Refuse new work, give turns *grace* s, then interrupt them at their checkpoints.

        Returns when no turn is served any more, or *settle* seconds after the interruption.
        """
        self._draining = True
        with trio.move_on_after(grace):
            await self._quiet()
            return
        for actor in self._awake.values():
            actor.whisper(Abandon())
        with trio.move_on_after(settle):
            await self._quiet()

    async def _quiet(self) -> None:
        for actor in list(self._awake.values()):
            await actor.wait_free()

    @property
    def awake(self) -> int:
        """How many sessions have an actor now."""
        return len(self._awake)

    @property
    def busy(self) -> int:
        """How many turns are being served now."""
        return sum(actor.lock is not Lock.FREE for actor in self._awake.values())


def _unknown() -> SessionNotFound:
    return SessionNotFound("no such session; look at the list of yours for its id")
