"""Journal on SurrealDB: embedded in this process (in memory, or in a directory), or a server.

Every value in a query is bound. The text of some queries lies in neighbouring files, by subject.
"""

import os
from collections.abc import AsyncGenerator, Iterable, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import trio

from smista.core.errors import StorageError
from smista.core.gates import DISCLOSURE
from smista.core.model_ref import plain
from smista.core.records import (
    AuthToken,
    MemoryRecord,
    MemoryScope,
    Session,
    SessionState,
    TraceEvent,
    TurnRecord,
    User,
)
from smista.core.retention import Bounds, Share
from smista.core.session_copy import SessionCopy
from smista.core.usage import UsageQuery
from smista.ports.journal import CostSum, UsageSum
from smista.storage import rows, states
from smista.storage.aging import (
    ALL_EVENTS,
    DROP,
    DUE,
    MANY,
    OLD_SESSIONS,
    ROWS,
    contents_of,
    first_text,
    old_text,
    session_values,
)
from smista.storage.bridge import Login, Target
from smista.storage.copies import READ, copy_from, copy_unit, stored_copy, take_in
from smista.storage.facts import TABLES, facts_from, has_all_texts, places
from smista.storage.leases import (
    LOCKS,
    RELEASE,
    RELEASE_ALL,
    RENEW,
    TAKE,
    last_list,
    length_text,
)
from smista.storage.packing import PACK, TOKENS, page
from smista.storage.rows import Row, Unit, key, ref
from smista.storage.schema import KEYED, RANGED, VACUUM
from smista.storage.spending import (
    SUMS,
    is_known,
    spending_from,
    spending_text,
    spending_values,
)
from smista.storage.store import Store, open_directory_store, open_plain_store
from smista.storage.turns import turn_unit, unserved_run_row
from smista.storage.vacuum import THRESHOLD
from smista.storage.values import LAST, Ref, clean, clean_text

# Positions known only inside: one round trip reads the counters and what they count. A range over
# all keys of a session goes from NONE, which sorts before everything, to [], which sorts behind.
_LOAD: Final = """
LET $run = (SELECT * FROM ONLY $state);
LET $end = $run.messages ?? 0;
LET $first = IF $most = NONE { 0 } ELSE { math::max([0, $end - $most]) };
LET $from = $run.run_references ?? 0;
LET $to = $run.`references` ?? 0;
LET $plan = (SELECT * FROM session_plan:[$s, NONE]..[$s, []] ORDER BY id DESC LIMIT 1)[0];
LET $plan_id = $plan.uuid;
RETURN $run;
SELECT * FROM ONLY $input;
SELECT * FROM ONLY $input_content;
RETURN $first;
SELECT * OMIT id, session, user, created_at FROM session_message:[$s, $first]..[$s, $end];
SELECT content FROM session_message_content:[$s, $first]..[$s, $end];
SELECT items FROM session_context_reference:[$s, $from]..[$s, $to];
RETURN $plan;
SELECT VALUE content FROM session_plan_content:[$s, $plan_id]..[$s, []];
SELECT VALUE target_id FROM session_approval:[$s, $kind, NONE]..[$s, $kind, []]
    WHERE decision = 'approved';
SELECT id, route, key, digest, outcome, created_at FROM idempotency_record:[$s, NONE]..[$s, []];
SELECT * OMIT session, user FROM context_memory:[$s, NONE]..[$s, []];
SELECT id, content FROM context_memory_content:[$s, NONE]..[$s, []];
"""
_LETS: Final = 7

_FACTS: Final = {
    scope: f"""
SELECT * OMIT session, user FROM {base}:[$owner, NONE]..[$owner, []];
SELECT id, content FROM {content}:[$owner, NONE]..[$owner, []];
"""
    for scope, (base, content) in TABLES.items()
}

# A text goes with its fact. Other routers may know a session's facts: a raised number tells them.
_FORGET_FACT: Final = """
DELETE $texts RETURN NONE;
UPDATE $states SET lease = lease + 1 WHERE lease != NONE AND active = NONE RETURN NONE;
UPSERT $vacuum CONTENT { wanted: true } RETURN NONE;
DELETE $facts RETURN BEFORE
"""

# Ids sort by time, so hardly a call lies between those of the newest messages and is not theirs.
_CALLS: Final = ";".join(
    f"SELECT * OMIT session, user FROM {table}:[$s, $from]..=[$s, $to]"
    for table in states.CALL_TABLES.values()
)
_FORGET: Final = "DELETE $stale RETURN NONE"

_SESSIONS: Final = "SELECT * FROM session WHERE {where} ORDER BY updated_at DESC, id DESC"
_SAID: Final = {
    "user": "user = $user",
    "scope": "scope = $scope",
    "title": "string::contains(string::lowercase(title ?? ''), $title)",
}

# Positions count from the session's first event, and what is over age is deleted before them.
_TRACE: Final = """
LET $row = (SELECT VALUE id FROM trace_event:[$s, 0]..[$s, $last] LIMIT 1)[0];
LET $begin = IF $row = NONE { 0 } ELSE { record::id($row)[1] };
SELECT * FROM trace_event:[$s, $begin + $from]..[$s, $begin + $to];
SELECT * FROM trace_event_content:[$s, $begin + $from]..[$s, $begin + $to];
RETURN $begin;
"""

_USAGE: Final = f"""
SELECT cost_provider, cost_model, task_type, math::sum(requests) AS requests, {SUMS}
    FROM trace_event:[$s, 0]..[$s, $last] WHERE requests > 0
    GROUP BY cost_provider, cost_model, task_type;
"""

_UPDATE_SESSION: Final = """
IF !(UPDATE $row SET title = $title, archived_at = $archived, updated_at = $updated
    RETURN VALUE id) { THROW 'the session is gone' }
"""

# The session's own row goes last: until then deleting can be repeated.
_DELETE: Final = ";".join(
    (
        *(f"DELETE {table}:[$s, NONE]..[$s, []] RETURN NONE" for table in RANGED),
        "DELETE $keyed RETURN NONE",
        "UPSERT $vacuum CONTENT { wanted: true } RETURN NONE",
        "DELETE $owner RETURN NONE",
    )
)


class SurrealJournal:
    """The journal over an open store; see smista.ports.journal.Journal.

    *alone*: no other router uses the store.
    """

    def __init__(self, store: Store, *, alone: bool = True) -> None:
        self._store = store
        self._alone = alone

    @property
    def shared(self) -> bool:
        return not self._alone

    async def add_user(self, user: User) -> None:
        await self._put(rows.user_row(user))

    async def user(self, user_id: str) -> User | None:
        found = await self._row(ref("user", user_id))
        return None if found is None else rows.user_from(found)

    async def add_token(self, token: AuthToken) -> None:
        await self._put(rows.token_row(token))

    async def token(self, token_id: str) -> AuthToken | None:
        found = await self._row(ref("auth_token", token_id))
        return None if found is None else rows.token_from(found)

    async def revoke_token(self, token_id: str, *, at: datetime) -> None:
        text = "UPDATE $row SET revoked_at = $at RETURN NONE"
        await self._store.change(text, row=ref("auth_token", token_id), at=clean(at))

    async def create_session(self, session: Session) -> None:
        await self._put(rows.session_row(session))

    async def session(self, user_id: str, session_id: str) -> Session | None:
        found = await self._row(ref("session", session_id))
        if found is None or found["user"] != ref("user", user_id):
            return None
        return rows.session_from(found)

    async def sessions(
        self, user_id: str, *, scope: str | None = None, title: str | None = None
    ) -> tuple[Session, ...]:
        asked: dict[str, Any] = {"user": ref("user", user_id)}
        if scope is not None:
            asked["scope"] = clean_text(scope)
        if title is not None:
            asked["title"] = clean_text(title).lower()
        (found,) = await self._store.read(sessions_text(asked), **asked)
        return tuple(rows.session_from(each) for each in found)

    async def update_session(self, session: Session) -> None:
        changed = rows.session_row(session)
        await self._store.change(
            _UPDATE_SESSION,
            row=changed["id"],
            title=changed.get("title"),
            archived=changed.get("archived_at"),
            updated=changed["updated_at"],
        )

    async def delete_session(self, session_id: str) -> None:
        session = ref("session", session_id)
        await self._store.change(
            _DELETE,
            keyed=[Ref(table, session.key) for table in KEYED],
            s=session.key,
            owner=session,
            vacuum=VACUUM,
        )

    async def load(
        self, session: Session, *, messages: int | None = 400, at: datetime | None = None
    ) -> SessionState:
        results = await self._store.read(
            _LOAD,
            s=key(session.id),
            state=ref("session_run_state", session.id),
            input=ref("session_run_input", session.id),
            input_content=ref("session_run_input_content", session.id),
            most=messages,
            kind=DISCLOSURE,
        )
        stored = _stored_state(results[_LETS:])
        with rows.reading("session"):
            kept = states.messages_from(stored)
            named = states.named_calls(kept)
            since = states.kept_since(stored, at)
        stale = states.stale_answers(stored, since)
        if stale:
            self._store.offer(_FORGET, stale=stale)
        called = await self._calls(session, named)
        with rows.reading("session"):
            return states.state_from(session, stored, kept, called, since)

    async def _calls(self, session: Session, named: Sequence[str]) -> states.StoredCalls:
        if not named:
            return states.StoredCalls(calls={}, contents={}, diffs={}, bodies={})
        keys = {key(call) for call in named}
        begin, end = _bounds(keys)
        found = await self._store.read(_CALLS, **{"s": key(session.id), "from": begin, "to": end})
        theirs = [[row for row in each if row["id"].key[1] in keys] for each in found]
        return states.StoredCalls(
            **{
                name: states.by_key(each)
                for name, each in zip(states.CALL_TABLES, theirs, strict=True)
            }
        )

    async def read_out(self, session: Session) -> SessionCopy:
        state = ref("session_run_state", session.id)
        _, *results = await self._store.read(READ, s=key(session.id), state=state)
        with rows.reading("session"):
            # Sessions may be long, and what they hold is put together in Python.
            return await trio.to_thread.run_sync(copy_from, session, stored_copy(results))

    async def take_in(self, copy: SessionCopy) -> bool:
        if await self._row(ref("session", copy.session.id)) is not None:
            return False
        unit = await trio.to_thread.run_sync(copy_unit, copy)
        text, values = take_in(unit)
        await self._store.change(text, **values)
        return True

    async def record_turn(self, record: TurnRecord) -> None:
        unit = turn_unit(record)
        if record.forgotten:
            # What was deleted can be read in the log until the store is copied.
            unit = replace(unit, puts=({"id": VACUUM, "wanted": True}, *unit.puts))
        await self._store.write(unit)

    async def facts(self, scope: MemoryScope, owner_id: str) -> tuple[MemoryRecord, ...]:
        bases, contents = await self._store.read(_FACTS[scope], owner=key(owner_id))
        if not has_all_texts(bases, contents):
            # A turn was written between the two; what is missing now is missing.
            bases, contents = await self._store.read(_FACTS[scope], owner=key(owner_id))
        with rows.reading("memory"):
            return facts_from(scope, bases, contents)

    async def forget_fact(self, scope: MemoryScope, owner_id: str, fact_id: str) -> bool:
        base, content = places(scope, owner_id, fact_id)
        known = self.shared and scope is MemoryScope.SESSION
        answers = await self._store.change(
            _FORGET_FACT,
            texts=[content],
            facts=[base],
            states=[ref("session_run_state", owner_id)] if known else [],
            vacuum=VACUUM,
        )
        return bool(last_list(answers))

    async def take_lease(self, session: Session, *, router: str, seconds: float) -> int | None:
        fresh = unserved_run_row(session)
        answers = await self._store.change(
            TAKE,
            owner=ref("session", session.id),
            state=fresh["id"],
            fresh=[fresh],
            router=clean_text(router),
            length=length_text(seconds),
        )
        return next(iter(last_list(answers)), None)

    async def renew_lease(self, session_id: str, number: int, *, seconds: float) -> bool:
        state = ref("session_run_state", session_id)
        answers = await self._store.change(
            RENEW, state=state, number=number, length=length_text(seconds)
        )
        return last_list(answers) == [number]

    async def release_lease(self, session_id: str, number: int) -> bool:
        state = ref("session_run_state", session_id)
        answers = await self._store.change(RELEASE, state=state, number=number)
        return bool(last_list(answers))

    async def trace(
        self, session_id: str, *, offset: int = 0, limit: int = 50
    ) -> tuple[TraceEvent, ...]:
        # The row that holds event *offset* may begin up to a pack before it.
        first = max(0, offset - PACK + 1)
        most = min(offset + limit, LAST // 2)
        bounds = {"s": key(session_id), "from": first, "to": most, "last": LAST}
        *_, events, contents, begin = await self._store.read(_TRACE, **bounds)
        with rows.reading("trace"):
            return page(events, contents, begin + offset, limit)

    async def usage(self, session_id: str) -> tuple[CostSum, ...]:
        (sums,) = await self._store.read(_USAGE, s=key(session_id), last=LAST)
        return tuple(sorted((_cost_sum(each) for each in sums), key=_usage_order))

    async def spending(self, user_id: str, query: UsageQuery) -> tuple[UsageSum, ...]:
        owned = await self.sessions(user_id, scope=query.scope)
        sessions = [session for session in owned if query.concerns(session)]
        if not sessions:
            return ()
        text = spending_text(len(sessions), query)
        results = await self._store.read(text, **spending_values(sessions, query))
        return spending_from(results, sessions, query)

    async def due_sessions(self, bounds: Bounds) -> tuple[Share, tuple[Session, ...]]:
        due, counted = await self._store.read(DUE, updated=bounds.updated, archived=bounds.archived)
        sessions = tuple(map(rows.session_from, due))
        return Share(due=len(sessions), of=_count(counted)), sessions

    async def due_events(self, before: datetime) -> Share:
        (counted,) = await self._store.read(ALL_EVENTS)
        return Share(due=len(await self._old_rows(before)), of=_count(counted))

    async def drop_events(self, before: datetime) -> None:
        old = await self._old_rows(before)
        for n in range(0, len(old), ROWS):
            some = old[n : n + ROWS]
            contents = contents_of(some)
            await self._store.change(DROP, rows=some, contents=contents, vacuum=VACUUM)

    async def _old_rows(self, before: datetime) -> list[Ref]:
        """Return the addresses of all trace rows of *before* or earlier."""
        (sessions,) = await self._store.read(OLD_SESSIONS, before=before)
        found: list[Ref] = []
        for n in range(0, len(sessions), MANY):
            some = sessions[n : n + MANY]
            firsts = await self._store.read(first_text(len(some)), **session_values(some))
            pairs = zip(some, firsts, strict=True)
            old = [each for each, first in pairs if first and first[0]["created_at"] <= before]
            if old:
                values = session_values(old)
                parts = await self._store.read(old_text(len(old)), before=before, **values)
                found += [row for part in parts for row in part]
        return found

    async def unlock(self, *, router: str = "") -> int:
        if self.shared:
            return len(last_list(await self._store.change(RELEASE_ALL, router=router)))
        (locked,) = await self._store.read(LOCKS)
        text = "UPDATE $locked SET active = NONE RETURN NONE"
        await self._store.change(text, locked=locked)
        return len(locked)

    async def _put(self, row: Row) -> None:
        await self._store.write(Unit(puts=(row,)))

    async def _row(self, address: Ref) -> Row | None:
        (found,) = await self._store.read("SELECT * FROM $row", row=address)
        return found[0] if found else None


def sessions_text(asked: Iterable[str]) -> str:
    """Return the query for sessions by what is *asked*; each is bound under its own name.

    A condition that may not hold (`$scope = NONE OR …`) would keep the engine from its index.
    """
    return _SESSIONS.format(where=" AND ".join(_SAID[name] for name in asked))


def _count(counted: Sequence[Row]) -> int:
    return int(counted[0]["count"]) if counted else 0


def _bounds(keys: Set[UUID | str]) -> tuple[Any, Any]:
    """Return a first and a last key with all of *keys* between them."""
    times = [each for each in keys if isinstance(each, UUID)]
    # Other text than ids is in no order of time: then all keys there are.
    return (min(times), max(times)) if len(times) == len(keys) else (None, [])


def _stored_state(results: Sequence[Any]) -> states.StoredState:
    run, given, content, first, said, contents, references, *others = results
    plan, plan_content, disclosed, answered, facts, fact_contents = others
    return states.StoredState(
        run=run,
        input=given,
        input_content=content,
        first=first,
        messages=said,
        contents=contents,
        references=references,
        plan=plan,
        plan_content={"content": plan_content[0]} if plan_content else None,
        disclosed=disclosed,
        answered=answered,
        facts=facts,
        fact_contents=fact_contents,
    )


def _cost_sum(stored: Row) -> CostSum:
    known = {name: stored[name] for name in TOKENS if is_known(stored, name)}
    cost = plain(Decimal(str(stored["cost"]))) if is_known(stored, "cost") else None
    return CostSum(
        provider=stored["cost_provider"],
        model=stored["cost_model"],
        task_type=stored["task_type"],
        requests=stored["requests"],
        cost=cost,
        **known,
    )


def _usage_order(each: CostSum) -> tuple[str, str, str]:
    return each.provider, each.model, each.task_type


def _absolute(target: str) -> Path:
    # Not resolve(): a link in the store's place must be seen and refused.
    return Path(os.path.abspath(target))


@asynccontextmanager
async def open_surreal(
    target: str,
    *,
    namespace: str = "smista",
    database: str = "local",
    durable: bool = True,
    login: Login | None = None,
    vacuum_above: int = THRESHOLD,
) -> AsyncGenerator[SurrealJournal]:
    """Open the journal at *target*: `mem://`, a directory, or `ws://host:port/rpc`.

    *durable*: an acknowledged write is on the disk; else the system may still hold it. It is
    settled by the first directory a process opens. *vacuum_above*: bytes from which on a directory
    whose rows are mostly dead is copied when it is opened. Raises StorageUnavailable if the
    directory is held by another process or the server is out of reach, StorageError if it is not
    ours to use.
    """
    if target.startswith(("mem://", "ws://", "wss://")):
        place = Target(url=target, namespace=namespace, database=database, login=login)
        async with open_plain_store(place, durable=durable) as store:
            yield SurrealJournal(store, alone=not place.remote)
        return
    if "://" in target:
        raise StorageError(f"{target!r} is no store; use mem://, a directory or ws://host")
    directory = _absolute(target)
    url = f"surrealkv://{directory / 'data'}"
    place = Target(url=url, namespace=namespace, database=database)
    async with open_directory_store(
        directory, place, durable=durable, vacuum_above=vacuum_above
    ) as store:
        yield SurrealJournal(store)
