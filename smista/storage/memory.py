"""Journal in memory: the same rows as on SurrealDB, kept in a dict. Gone when the process ends."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import trio

from smista.core.errors import LeaseLost, StorageError
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
from smista.storage.aging import begins, contents_of, is_due
from smista.storage.copies import copy_from, copy_unit, stored_copy, tables_of_copy
from smista.storage.facts import TABLES, facts_from, places
from smista.storage.packing import TOKENS, page
from smista.storage.rows import Row, Unit, ref
from smista.storage.spending import spending_from, spending_in
from smista.storage.turns import turn_unit, unserved_run_row
from smista.storage.values import Ref, clean, clean_text


def _utc_now() -> datetime:
    return datetime.now(UTC)


class MemoryJournal:
    """A journal that forgets; see smista.ports.journal.Journal.

    Writes are whole by nature. *rows*: where to keep them, for who wants to look or to go on.
    *shared*: other journals over the same rows stand for other routers. *now*: the store's clock,
    by which leases expire.
    """

    def __init__(
        self,
        rows: dict[Ref, Row] | None = None,
        *,
        shared: bool = False,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._rows: dict[Ref, Row] = {} if rows is None else rows
        self._shared = shared
        self._now = now

    @property
    def shared(self) -> bool:
        return self._shared

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
        await trio.lowlevel.checkpoint()
        address = ref("auth_token", token_id)
        if address in self._rows:
            self._change(address, revoked_at=clean(at))

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
        await trio.lowlevel.checkpoint()
        part = None if title is None else clean_text(title).lower()
        exact = None if scope is None else clean_text(scope)
        found = [
            row
            for row in self._table("session")
            if row["user"] == ref("user", user_id)
            and (exact is None or row.get("scope") == exact)
            and (part is None or part in row.get("title", "").lower())
        ]
        found.sort(key=lambda row: (row["updated_at"], str(row["id"].key)), reverse=True)
        return tuple(rows.session_from(row) for row in found)

    async def update_session(self, session: Session) -> None:
        await trio.lowlevel.checkpoint()
        changed = rows.session_row(session)
        self._demand(changed["id"])
        names = ("title", "archived_at", "updated_at")
        self._change(changed["id"], **{name: changed.get(name) for name in names})

    async def delete_session(self, session_id: str) -> None:
        await trio.lowlevel.checkpoint()
        session = ref("session", session_id)
        owned = {address for address, row in self._rows.items() if row.get("session") == session}
        owned |= {Ref(f"{address.table}_content", address.key) for address in owned}
        for address in (*owned, session):
            self._rows.pop(address, None)

    async def load(
        self, session: Session, *, messages: int | None = 400, at: datetime | None = None
    ) -> SessionState:
        await trio.lowlevel.checkpoint()
        run = self._rows.get(ref("session_run_state", session.id))
        end = run["messages"] if run else 0
        first = 0 if messages is None else max(0, end - messages)
        references = (run["run_references"], run["references"]) if run else (0, 0)
        plan = self._newest("session_plan", session.id)
        approvals = self._owned("session_approval", session.id)
        stored = states.StoredState(
            run=run,
            input=self._rows.get(ref("session_run_input", session.id)),
            input_content=self._rows.get(ref("session_run_input_content", session.id)),
            first=first,
            messages=self._span("session_message", session.id, first, end),
            contents=self._span("session_message_content", session.id, first, end),
            references=self._span("session_context_reference", session.id, *references),
            plan=plan,
            plan_content=plan and self._rows[Ref("session_plan_content", plan["id"].key)],
            disclosed=[
                row["target_id"]
                for row in approvals
                if row["target_type"] == DISCLOSURE and row["decision"] == "approved"
            ],
            answered=self._owned("idempotency_record", session.id),
            facts=self._owned("context_memory", session.id),
            fact_contents=self._owned("context_memory_content", session.id),
        )
        since = states.kept_since(stored, at)
        for address in states.stale_answers(stored, since):
            del self._rows[address]
        with rows.reading("session"):
            return self._state(session, stored, since)

    def _state(
        self, session: Session, stored: states.StoredState, since: datetime | None
    ) -> SessionState:
        kept = states.messages_from(stored)
        called = states.StoredCalls(
            **{
                name: self._named(table, session.id, states.named_calls(kept))
                for name, table in states.CALL_TABLES.items()
            }
        )
        return states.state_from(session, stored, kept, called, since)

    async def read_out(self, session: Session) -> SessionCopy:
        await trio.lowlevel.checkpoint()
        run = self._rows.get(ref("session_run_state", session.id), {})
        counted, whole = tables_of_copy()
        results = [
            self._span(table, session.id, 0, run.get(counter, 0))
            for table, counter in counted.values()
        ]
        results += [
            sorted(self._owned(table, session.id), key=lambda row: str(row["id"].key))
            for table in whole.values()
        ]
        with rows.reading("session"):
            return copy_from(session, stored_copy(results))

    async def take_in(self, copy: SessionCopy) -> bool:
        await trio.lowlevel.checkpoint()
        if ref("session", copy.session.id) in self._rows:
            return False
        self._apply(copy_unit(copy))
        return True

    async def record_turn(self, record: TurnRecord) -> None:
        await trio.lowlevel.checkpoint()
        unit = turn_unit(record)
        session = ref("session", record.session_id)
        self._demand(session)
        if unit.lease is not None and self._lease(record.session_id) != unit.lease:
            raise LeaseLost("another router has taken this session over; send the message again")
        self._apply(unit)
        self._change(session, updated_at=record.at)

    async def facts(self, scope: MemoryScope, owner_id: str) -> tuple[MemoryRecord, ...]:
        await trio.lowlevel.checkpoint()
        base, content = TABLES[scope]
        with rows.reading("memory"):
            return facts_from(scope, self._owned(base, owner_id), self._owned(content, owner_id))

    async def forget_fact(self, scope: MemoryScope, owner_id: str, fact_id: str) -> bool:
        await trio.lowlevel.checkpoint()
        found = [self._rows.pop(place, None) for place in places(scope, owner_id, fact_id)]
        state = self._rows.get(ref("session_run_state", owner_id), {})
        if self._shared and "lease" in state and "active" not in state:
            self._change(state["id"], lease=state["lease"] + 1)
        return found[0] is not None

    async def take_lease(self, session: Session, *, router: str, seconds: float) -> int | None:
        await trio.lowlevel.checkpoint()
        if ref("session", session.id) not in self._rows:
            return None
        fresh = unserved_run_row(session)
        active = self._rows.setdefault(fresh["id"], fresh).get("active")
        if active is not None and not self._takeable(active, router):
            return None
        number, now = (self._lease(session.id) or 0) + 1, self._now()
        until = now + timedelta(seconds=seconds)
        lease = {"router": clean_text(router), "number": number, "until": until}
        self._change(fresh["id"], lease=number, active={"started_at": now, "lease": lease})
        return number

    async def renew_lease(self, session_id: str, number: int, *, seconds: float) -> bool:
        await trio.lowlevel.checkpoint()
        if self._lease(session_id) != number:
            return False
        address = ref("session_run_state", session_id)
        active = self._rows[address].get("active")
        if active is not None:
            until = self._now() + timedelta(seconds=seconds)
            lease = {**active["lease"], "until": until}
            self._change(address, active={**active, "lease": lease})
        return True

    async def release_lease(self, session_id: str, number: int) -> bool:
        await trio.lowlevel.checkpoint()
        address = ref("session_run_state", session_id)
        if self._lease(session_id) != number or "active" not in self._rows[address]:
            return False
        self._change(address, active=None, lease=number + 1)
        return True

    async def trace(
        self, session_id: str, *, offset: int = 0, limit: int = 50
    ) -> tuple[TraceEvent, ...]:
        await trio.lowlevel.checkpoint()
        begin = begins(self._table("trace_event"), session_id)
        span = (session_id, begin, begin + offset + limit)
        events = self._span("trace_event", *span)
        contents = self._span("trace_event_content", *span)
        with rows.reading("trace"):
            return page(events, contents, begin + offset, limit)

    async def usage(self, session_id: str) -> tuple[CostSum, ...]:
        await trio.lowlevel.checkpoint()
        groups: dict[tuple[str, str, str], list[Row]] = {}
        session = ref("session", session_id)
        for row in self._table("trace_event"):
            if row["session"] == session and "requests" in row:
                group = row["cost_provider"], row["cost_model"], row["task_type"]
                groups.setdefault(group, []).append(row)
        return tuple(_cost_sum(*group, found) for group, found in sorted(groups.items()))

    async def spending(self, user_id: str, query: UsageQuery) -> tuple[UsageSum, ...]:
        owned = await self.sessions(user_id, scope=query.scope)
        sessions = [session for session in owned if query.concerns(session)]
        found = spending_in(self._table("trace_event"), sessions, query)
        return spending_from([found], sessions, query)

    async def due_sessions(self, bounds: Bounds) -> tuple[Share, tuple[Session, ...]]:
        await trio.lowlevel.checkpoint()
        sessions = [rows.session_from(row) for row in self._table("session")]
        due = tuple(session for session in sessions if is_due(session, bounds))
        return Share(due=len(due), of=len(sessions)), due

    async def due_events(self, before: datetime) -> Share:
        await trio.lowlevel.checkpoint()
        return Share(due=len(self._old_rows(before)), of=len(self._table("trace_event")))

    async def drop_events(self, before: datetime) -> None:
        await trio.lowlevel.checkpoint()
        old = self._old_rows(before)
        for address in (*old, *contents_of(old)):
            del self._rows[address]

    def _old_rows(self, before: datetime) -> list[Ref]:
        return [row["id"] for row in self._table("trace_event") if row["created_at"] <= before]

    async def unlock(self, *, router: str = "") -> int:
        await trio.lowlevel.checkpoint()
        locked = [
            row["id"]
            for row in self._table("session_run_state")
            if "active" in row and (not self._shared or self._takeable(row["active"], router))
        ]
        for address in locked:
            lease = self._rows[address].get("lease")
            raised = lease + 1 if self._shared and lease is not None else lease
            self._change(address, active=None, lease=raised)
        return len(locked)

    async def _put(self, row: Row) -> None:
        await trio.lowlevel.checkpoint()
        self._apply(Unit(puts=(row,)))

    async def _row(self, address: Ref) -> Row | None:
        await trio.lowlevel.checkpoint()
        return self._rows.get(address)

    def _apply(self, unit: Unit) -> None:
        new = (row for table in unit.inserts.values() for row in table)
        self._rows.update((row["id"], row) for row in (*new, *unit.puts))
        for address in unit.drops:
            self._rows.pop(address, None)

    def _change(self, address: Ref, **columns: Any) -> None:
        merged = {**self._rows[address], **columns}
        self._rows[address] = {k: v for k, v in merged.items() if v is not None}

    def _lease(self, session_id: str) -> int | None:
        return self._rows.get(ref("session_run_state", session_id), {}).get("lease")

    def _takeable(self, active: Mapping[str, Any], router: str) -> bool:
        lease: Mapping[str, Any] = active["lease"]
        return bool(lease["router"] == clean_text(router) or lease["until"] <= self._now())

    def _demand(self, session: Ref) -> None:
        if session not in self._rows:
            raise StorageError("the session is gone; nothing was written")

    def _table(self, table: str) -> list[Row]:
        return [row for address, row in self._rows.items() if address.table == table]

    def _owned(self, table: str, session_id: str) -> list[Row]:
        session = rows.key(session_id)
        return [row for row in self._table(table) if row["id"].key[0] == session]

    def _newest(self, table: str, session_id: str) -> Row | None:
        found = self._owned(table, session_id)
        return max(found, key=lambda row: row["id"].key, default=None)

    def _span(self, table: str, session_id: str, first: int, end: int) -> list[Row]:
        inside = [row for row in self._owned(table, session_id) if first <= row["id"].key[1] < end]
        return sorted(inside, key=lambda row: row["id"].key[1])

    def _named(self, table: str, session_id: str, ids: Iterable[str]) -> dict[str, Row]:
        found = (self._rows.get(rows.within(table, session_id, each)) for each in ids)
        return states.by_key(row for row in found if row is not None)


def _cost_sum(provider: str, model: str, task_type: str, found: Sequence[Row]) -> CostSum:
    tokens = {
        name: sum(row[name] for row in found if name in row)
        for name in TOKENS
        if any(name in row for row in found)
    }
    costs = [row["cost"] for row in found if "cost" in row]
    return CostSum(
        provider=provider,
        model=model,
        task_type=task_type,
        requests=sum(row["requests"] for row in found),
        cost=plain(sum(costs, Decimal(0))) if costs else None,
        **tokens,
    )


@asynccontextmanager
async def open_memory() -> AsyncGenerator[MemoryJournal]:
    """Open a journal in memory, the way open_surreal() opens one that lasts."""
    yield MemoryJournal()
