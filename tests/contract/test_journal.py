"""What every journal promises, on the one in memory and on SurrealDB."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import trio

from smista.core.errors import StorageError
from smista.core.history import Role
from smista.core.ids import new_uuid7, row_id
from smista.core.intents import Mode, TaskIntent
from smista.core.phase import AwaitingApproval, AwaitingTool, Idle, PendingCall
from smista.core.records import (
    AnsweredRecord,
    ApprovalRecord,
    AuthToken,
    CallStatus,
    ContextReference,
    DiffRecord,
    DiffStatus,
    EventType,
    PlanRecord,
    PlanStatus,
    RoutingRecord,
    RunInput,
    RunState,
    Session,
    StoredMessage,
    ToolCallRecord,
    TraceEvent,
    TurnRecord,
    User,
)
from smista.core.request import ExecuteRequest
from smista.core.secret import Envelope, Plain, Sealed, SecretContent
from smista.core.totals import Totals
from smista.ports.journal import CostSum, Journal
from smista.storage.bridge import Target
from smista.storage.memory import MemoryJournal
from smista.storage.rows import Row
from smista.storage.schema import TABLES
from smista.storage.store import open_plain_store
from smista.storage.surreal import SurrealJournal
from smista.storage.values import Ref

AT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
MS = int(AT.timestamp() * 1000)
ENVELOPE = Envelope(version=2, algorithm="a", key_id="kf_1", nonce="bm9uY2U", ciphertext="eA")


@dataclass(frozen=True)
class Kept:
    """A journal, and a look at how many rows each table holds."""

    journal: Any
    counts: Callable[[], Awaitable[dict[str, int]]]


@asynccontextmanager
async def in_memory() -> AsyncIterator[Kept]:
    rows: dict[Ref, Row] = {}

    async def counts() -> dict[str, int]:
        return dict(Counter(ref.table for ref in rows))

    yield Kept(MemoryJournal(rows), counts)


@asynccontextmanager
async def on_surreal() -> AsyncIterator[Kept]:
    target = Target(url="mem://", namespace="test", database="test")
    async with open_plain_store(target) as store:

        async def counts() -> dict[str, int]:
            found: dict[str, int] = {}
            for table in set(TABLES) - {"schema_meta"}:
                ((row,),) = await store.read(f"SELECT count() FROM {table} GROUP ALL")
                found |= {table: row["count"]} if row["count"] else {}
            return found

        yield Kept(SurrealJournal(store), counts)


STORES = {"memory": in_memory, "surreal": on_surreal}


@pytest.fixture(params=STORES)
async def kept(request: pytest.FixtureRequest) -> AsyncIterator[Kept]:
    async with STORES[request.param]() as store:
        yield store


@pytest.fixture
def journal(kept: Kept) -> Journal:
    return kept.journal


def id_of(number: int) -> str:
    return new_uuid7(MS, number)


POLICY = {
    "version": 1,
    "source": "user",
    "classification": {"rules": [{"intent": "edit", "keywords": ["fix"]}]},
    "routing": {
        "default": {"model": "ollama/m"},
        "rules": [
            {
                "name": "r",
                "effort": "low",
                "model": "openai/gpt",
                "requires_capabilities": {"tools": True},
                "required_permissions": {"permissions": {"bash": "deny"}},
                "cost_limit": "0.50",
            }
        ],
    },
    "tools": {"permissions": {"bash": "ask"}},
    "privacy": {"restricted_paths": ["secret/**"]},
}

USER, OTHER = id_of(1), id_of(2)


async def new_session(journal: Journal, number: int = 10, **changes: Any) -> Session:
    given: dict[str, Any] = {
        "id": id_of(number),
        "user_id": USER,
        "title": f"Work {number}",
        "created_at": AT,
        "updated_at": AT,
    }
    session = Session(**{**given, **changes})
    await journal.create_session(session)
    return session


def said(n: int, role: str, content: str | SecretContent, **more: Any) -> StoredMessage:
    body = Plain(content) if isinstance(content, str) else content
    given = {"run_id": id_of(100), "format": "text", "created_at": AT, **more}
    return StoredMessage(uuid=id_of(1000 + n), n=n, role=role, content=body, **given)


def calling(n: int, text: str, *call_ids: str) -> StoredMessage:
    calls = [
        {"call_id": c, "provider_call_id": f"p{i}", "name": "read_file", "arguments": "{}"}
        for i, c in enumerate(call_ids)
    ]
    return said(n, "assistant", json.dumps({"text": text, "tool_calls": calls}), format="calls")


def event(number: int, kind: EventType = EventType.MESSAGE, **changes: Any) -> TraceEvent:
    given: dict[str, Any] = {
        "event_type": kind,
        "task_type": TaskIntent.CHAT,
        "provider": "ollama",
        "model": "m",
        "created_at": AT + timedelta(milliseconds=number),
        "payload": {"role": "user", "number": number},
    }
    return TraceEvent(**{**given, **changes})


def cost(number: int, **payload: Any) -> TraceEvent:
    return event(number, EventType.COST, payload={"provider": "ollama", "model": "m", **payload})


def request_of(text: str) -> ExecuteRequest:
    return ExecuteRequest.model_validate(
        {
            "input": {"text": text, "command": "edit", "explicit_model": "ollama/a/b"},
            "workspace": {
                "root": "/w",
                "git_branch": "main",
                "git_diff": "+x",
                "git_diff_restricted": True,
                "referenced_paths": ["a.py"],
            },
            "policy": POLICY,
            "local_preferences": {"auto_apply": False, "local_only": True, "no_network": False},
            "attachments": {
                "files": [
                    {
                        "path": "a.py",
                        "content": "pass",
                        "content_hash": "h",
                        "required": True,
                        "paths": ["a.py"],
                    }
                ],
                "instructions": [{"source": "s", "content": "c"}],
            },
        }
    )


def turn(session: Session, run: RunState | None = None, **parts: Any) -> TurnRecord:
    """Return a record whose run state counts what *parts* bring, unless *run* is given."""
    messages = parts.get("messages", ())
    first_event, first_ref = parts.get("first_event", 0), parts.get("first_reference", 0)
    counted = RunState(
        run_id=id_of(100),
        turn=1,
        attempt=1,
        updated_at=AT,
        messages=max((m.n + 1 for m in messages), default=0),
        events=first_event + len(parts.get("events", ())),
        references=first_ref + len(parts.get("references", ())),
        run_references=first_ref,
    )
    given: dict[str, Any] = {
        "at": AT + timedelta(seconds=5),
        "events_id": row_id(id_of(100), 1, first_event % 256, 0, "trace_event"),
        "references_id": row_id(id_of(100), 1, 0, 0, "session_context_reference"),
    }
    owner = {"session_id": session.id, "user_id": session.user_id}
    return TurnRecord(run=run or counted, **{**given, **parts}, **owner)


def full_turn(session: Session) -> TurnRecord:
    """Return a record with something in every part."""
    call = id_of(300 + int(session.id[-4:], 16))
    return turn(
        session,
        input=RunInput(run_id=id_of(100), request=request_of("do it"), created_at=AT),
        messages=(said(0, "user", "do it"), calling(1, "reading", call)),
        routing=(
            RoutingRecord(
                id=row_id(session.id, 1, 0, 0, "session_routing_decision"),
                task_type=TaskIntent.EDIT,
                provider="ollama",
                model="m",
                reason="default",
                created_at=AT,
            ),
        ),
        references=(
            ContextReference(kind="file", included=True, reason="named", path="a.py"),
            ContextReference(kind="memory", included=False, reason="too big"),
        ),
        tool_calls=(
            ToolCallRecord(
                id=call,
                tool_name="read_file",
                status=CallStatus.COMPLETED,
                arguments=Plain("{}"),
                created_at=AT,
                completed_at=AT,
                result=Plain("pass"),
                paths=("a.py", "/w/a.py"),
                restricted=True,
            ),
        ),
        diffs=(
            DiffRecord(
                id=call,
                path="a.py",
                status=DiffStatus.APPLIED,
                body=Plain("+x"),
                created_at=AT,
                applied_at=AT,
            ),
        ),
        approvals=(
            ApprovalRecord(
                id=row_id(session.id, 1, 0, 0, "session_approval"),
                target_type="tool_call",
                target_id=call,
                decision="approved",
                created_at=AT,
            ),
        ),
        plans=(plan(400 + int(session.id[-4:], 16)),),
        answered=(answer("again"),),
        events=(event(0), cost(1, input_tokens=3, output_tokens=4, cost="0.1")),
    )


def answer(word: str, **changes: Any) -> AnsweredRecord:
    given = {"route": "execute", "digest": "d", "outcome": {"said": "r", "n": [1, None]}}
    return AnsweredRecord(**{**given, "key": word, "created_at": AT, **changes})


def plan(number: int, **changes: Any) -> PlanRecord:
    given: dict[str, Any] = {
        "id": id_of(number),
        "path": "plan.md",
        "status": PlanStatus.DRAFT,
        "content": Plain("1. look"),
        "content_hash": "h",
        "created_at": AT,
        "updated_at": AT,
    }
    return PlanRecord(**{**given, **changes})


def approval(number: int, target_type: str, target_id: str, **changes: Any) -> ApprovalRecord:
    given = {"id": id_of(number), "decision": "approved", "created_at": AT}
    return ApprovalRecord(target_type=target_type, target_id=target_id, **{**given, **changes})


async def test_users_and_tokens_come_back_as_they_went_in(journal: Journal) -> None:
    user = User(id=USER, api_key_hash="$argon2id$x", created_at=AT, updated_at=AT)
    token = AuthToken(id=id_of(3), user_id=USER, token_hash="$6$x", created_at=AT, expires_at=AT)
    await journal.add_user(user)
    await journal.add_token(token)

    assert await journal.user(USER) == user
    assert await journal.user(USER.replace("-", "")) == user
    assert await journal.token(token.id) == token

    await journal.revoke_token(token.id, at=AT)
    await journal.revoke_token(id_of(4), at=AT)
    assert await journal.token(token.id) == replace(token, revoked_at=AT)
    assert await journal.token(id_of(4)) is None


@pytest.mark.parametrize("junk", ["", "user:x", "⟨a⟩; DELETE user", "0" * 31])
async def test_what_is_no_id_names_nothing(journal: Journal, junk: str) -> None:
    await journal.add_user(User(id=USER, api_key_hash="h", created_at=AT, updated_at=AT))
    assert await journal.user(junk) is None
    assert await journal.token(junk) is None
    assert await journal.session(USER, junk) is None
    assert await journal.user(USER) is not None


async def test_a_session_is_its_owners_alone(journal: Journal) -> None:
    session = await new_session(journal, scope="/w", key_id="kf_1")
    assert await journal.session(USER, session.id) == session
    assert await journal.session(OTHER, session.id) is None
    assert await journal.sessions(OTHER) == ()


async def test_sessions_are_found_by_scope_and_by_part_of_the_title(journal: Journal) -> None:
    old = await new_session(journal, 10, title="Refactor AUTH", scope="/w")
    new = await new_session(journal, 11, scope="/w", updated_at=AT + timedelta(hours=1))
    untitled = await new_session(journal, 12, title=None, scope="/W")

    assert await journal.sessions(USER) == (new, untitled, old)
    assert await journal.sessions(USER, scope="/w") == (new, old)
    assert await journal.sessions(USER, title="auth") == (old,)
    assert await journal.sessions(USER, scope="/W", title="auth") == ()


async def test_a_session_is_updated_and_can_be_archived(journal: Journal) -> None:
    session = await new_session(journal)
    changed = replace(session, title="New", archived_at=AT, updated_at=AT + timedelta(days=1))
    await journal.update_session(changed)
    assert await journal.session(USER, session.id) == changed

    await journal.update_session(replace(changed, archived_at=None, title=None))
    assert await journal.sessions(USER) == (replace(changed, archived_at=None, title=None),)


async def test_a_session_that_is_gone_takes_neither_updates_nor_turns(kept: Kept) -> None:
    session = await new_session(kept.journal)
    await kept.journal.delete_session(session.id)
    with pytest.raises(StorageError):
        await kept.journal.update_session(session)
    with pytest.raises(StorageError):
        await kept.journal.record_turn(full_turn(session))
    assert await kept.counts() == {}


async def test_a_new_session_is_idle_and_empty(journal: Journal) -> None:
    session = await new_session(journal)
    state = await journal.load(session)
    assert (state.session, state.run, state.messages) == (session, RunState(), ())
    assert await journal.trace(session.id) == ()
    assert await journal.usage(session.id) == ()


async def test_a_turn_is_loaded_as_it_was_recorded(journal: Journal) -> None:
    session = await new_session(journal)
    record = full_turn(session)
    await journal.record_turn(record)

    state = await journal.load(session)
    assert state.run == record.run
    assert state.input == record.input
    assert state.references == record.references
    (call,) = record.tool_calls
    assert state.calls == {call.id: call}
    assert state.diffs == {call.id: record.diffs[0]}
    assert (state.plan, state.answered) == (*record.plans, record.answered)
    assert [(m.role, m.text) for m in state.messages] == [
        (Role.USER, "do it"),
        (Role.ASSISTANT, "reading"),
        (Role.TOOL, "pass"),
    ]
    asked, answered = state.messages[1:]
    assert [c.call_id for c in asked.calls] == [call.id]
    assert (answered.call_id, answered.paths, answered.restricted) == (call.id, call.paths, True)
    assert (answered.is_error, answered.run_id) == (False, asked.run_id)
    assert await journal.trace(session.id) == record.events
    assert await journal.session(USER, session.id) == replace(session, updated_at=record.at)


async def test_the_same_turn_sent_again_changes_nothing(kept: Kept) -> None:
    session = await new_session(kept.journal)
    record = full_turn(session)
    await kept.journal.record_turn(record)
    before = await kept.counts(), await kept.journal.load(session)

    await kept.journal.record_turn(record)

    assert (await kept.counts(), await kept.journal.load(session)) == before
    assert await kept.journal.trace(session.id) == record.events


async def test_a_later_turn_answers_a_pending_call(journal: Journal) -> None:
    session = await new_session(journal)
    call = ToolCallRecord(
        id=id_of(300),
        tool_name="bash",
        status=CallStatus.PENDING,
        arguments=Plain("{}"),
        created_at=AT,
    )
    silent = replace(call, id=id_of(301))
    waiting = AwaitingTool((PendingCall(call.id, Mode.ASK), PendingCall(silent.id, Mode.ALLOW)))
    messages = (said(0, "user", "go"), calling(1, "", call.id, silent.id))
    paused = replace(turn(session, messages=messages).run, phase=waiting)
    await journal.record_turn(
        turn(session, run=paused, messages=messages, tool_calls=(call, silent))
    )
    assert (await journal.load(session)).run.phase == waiting

    failed = replace(call, status=CallStatus.FAILED, completed_at=AT, error=Plain("no such file"))
    end = replace(paused, turn=2, phase=Idle(), messages=3)
    await journal.record_turn(
        turn(session, run=end, messages=(said(2, "assistant", "sorry"),), tool_calls=(failed,))
    )

    state = await journal.load(session)
    assert [m.role for m in state.messages] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
        Role.ASSISTANT,
    ]
    assert (state.messages[2].text, state.messages[2].is_error) == ("no such file", True)
    assert state.calls == {call.id: failed, silent.id: silent}
    assert state.run == end


async def test_only_the_newest_whole_exchanges_are_loaded(journal: Journal) -> None:
    session = await new_session(journal)
    roles = ("user", "assistant", "assistant")
    messages = tuple(said(n, roles[n % 3], f"t{n}") for n in range(30))
    await journal.record_turn(turn(session, messages=messages))

    def texts(first: int) -> list[str]:
        return [f"t{n}" for n in range(first, 30)]

    for most, first in ((30, 0), (27, 3), (26, 6), (25, 6), (3, 27), (None, 0), (400, 0)):
        loaded = (await journal.load(session, messages=most)).messages
        assert [m.text for m in loaded] == texts(first)


async def test_only_the_present_runs_references_are_loaded(journal: Journal) -> None:
    session = await new_session(journal)

    def references(name: str, count: int) -> tuple[ContextReference, ...]:
        return tuple(
            ContextReference(kind=name, included=n % 2 == 0, reason=str(n)) for n in range(count)
        )

    await journal.record_turn(turn(session, references=references("old", 100)))
    newer = references("new", 130)
    await journal.record_turn(turn(session, references=newer, first_reference=100))
    assert (await journal.load(session)).references == newer


async def test_any_page_of_a_long_trace_can_be_read(journal: Journal) -> None:
    session = await new_session(journal)
    everything: list[TraceEvent] = []
    sizes = iter((1, 63, 64, 65, 7, 200, 128, 3, 300, 169))
    for size in sizes:
        first = len(everything)
        events = tuple(
            event(n, model=f"m{n // 90}", matched_rule=None if n % 400 < 200 else "rule")
            for n in range(first, first + size)
        )
        everything += events
        await journal.record_turn(turn(session, events=events, first_event=first))
    assert len(everything) == 1000

    for offset, limit in ((0, 50), (0, 1000), (1, 1), (63, 2), (64, 1), (130, 64), (990, 50)):
        page = await journal.trace(session.id, offset=offset, limit=limit)
        assert list(page) == everything[offset : offset + limit]
    assert await journal.trace(session.id, offset=1000) == ()


async def test_events_share_rows(kept: Kept) -> None:
    session = await new_session(kept.journal)
    await kept.journal.record_turn(turn(session, events=tuple(event(n) for n in range(130))))
    assert (await kept.counts())["trace_event"] == 3


async def test_usage_adds_up_exactly(journal: Journal) -> None:
    session = await new_session(journal)
    tenths = [cost(n, input_tokens=1, output_tokens=2, cost="0.1") for n in range(70)]
    other = cost(70, provider="openai", model="gpt", input_tokens=5, cost="0.000000123")
    unpriced = cost(71, model="free", input_tokens=7, output_tokens=0)
    edit = replace(cost(72, input_tokens=1, cost="1e-9"), task_type=TaskIntent.EDIT)
    sealed = replace(cost(73), payload=ENVELOPE)
    await journal.record_turn(turn(session, events=(*tenths, other, unpriced, edit, sealed)))
    more = (cost(74, cached_tokens=2**40, cost="0.2"), event(75))
    await journal.record_turn(turn(session, events=more, first_event=74))

    def total(provider: str, model: str, task: str, requests: int, **known: Any) -> CostSum:
        return CostSum(provider=provider, model=model, task_type=task, requests=requests, **known)

    assert await journal.usage(session.id) == (
        total("ollama", "free", "chat", 1, input_tokens=7, output_tokens=0),
        total(
            "ollama",
            "m",
            "chat",
            71,
            input_tokens=70,
            output_tokens=140,
            cached_tokens=2**40,
            cost="7.2",
        ),
        total("ollama", "m", "edit", 1, input_tokens=1, cost="0.000000001"),
        total("openai", "gpt", "chat", 1, input_tokens=5, cost="0.000000123"),
    )
    assert len(await journal.trace(session.id, limit=100)) == 76


async def test_sealed_content_stays_sealed(journal: Journal) -> None:
    session = await new_session(journal, key_id="kf_1")
    sealed = replace(event(0), payload=ENVELOPE)
    await journal.record_turn(
        turn(session, messages=(said(0, "user", Sealed(ENVELOPE)),), events=(sealed,))
    )
    assert await journal.trace(session.id) == (sealed,)
    with pytest.raises(StorageError, match="sealed"):
        await journal.load(session)


async def test_deleting_a_session_leaves_no_row_of_it(kept: Kept) -> None:
    gone, stays = await new_session(kept.journal, 10), await new_session(kept.journal, 11)
    await kept.journal.record_turn(full_turn(stays))
    alone = await kept.counts()
    await kept.journal.record_turn(full_turn(gone))
    before = await kept.journal.load(stays)

    await kept.journal.delete_session(gone.id)

    assert await kept.counts() == {**alone, "session": 1}
    assert await kept.journal.session(USER, gone.id) is None
    assert await kept.journal.load(stays) == before
    await kept.journal.delete_session(gone.id)
    await kept.journal.delete_session(stays.id)
    assert await kept.counts() == {}


BAD = (
    event(0, payload={"number": 2**63}),
    event(0, payload={"number": -(2**63) - 1}),
    event(0, created_at=datetime(2026, 1, 1)),
    cost(0, cost="NaN"),
    cost(0, cost="0." + "1" * 40),
    cost(0, cost="much"),
    replace(event(0), payload={"what": {1, 2}}),
    replace(event(0), payload={"deep": json.loads("[" * 80 + "]" * 80)}),
)


@pytest.mark.parametrize("bad", BAD, ids=str)
async def test_a_turn_that_cannot_be_stored_leaves_nothing(kept: Kept, bad: TraceEvent) -> None:
    session = await new_session(kept.journal)
    with pytest.raises(StorageError):
        await kept.journal.record_turn(
            turn(session, messages=(said(0, "user", "x"),), events=(bad,))
        )
    assert await kept.counts() == {"session": 1}
    assert await kept.journal.session(USER, session.id) == session


async def test_text_that_no_store_can_carry_is_mended(journal: Journal) -> None:
    session = await new_session(journal, title="a\0b")
    await journal.record_turn(
        turn(
            session,
            messages=(said(0, "user", "nul \0 lone \ud800 naïve 🦊"),),
            events=(event(0, payload={"k\0": "\udfff", "n": 2**63 - 1}),),
        )
    )
    (message,) = (await journal.load(session)).messages
    assert message.text == "nul \ufffd lone \ufffd naïve 🦊"
    (traced,) = await journal.trace(session.id)
    assert traced.payload == {"k\ufffd": "\ufffd", "n": 2**63 - 1}
    assert [s.title for s in await journal.sessions(USER)] == ["a\ufffdb"]


async def test_twenty_sessions_write_at_once(journal: Journal) -> None:
    sessions = [await new_session(journal, n) for n in range(10, 30)]

    async def work(session: Session) -> None:
        for n in range(5):
            messages = (said(2 * n, "user", f"{n}?"), said(2 * n + 1, "assistant", f"{n}!"))
            record = turn(session, messages=messages, events=(cost(n, cost="0.1"),), first_event=n)
            await journal.record_turn(record)

    async with trio.open_nursery() as nursery:
        for session in sessions:
            nursery.start_soon(work, session)

    for session in sessions:
        assert len((await journal.load(session)).messages) == 10
        (total,) = await journal.usage(session.id)
        assert (total.requests, Decimal(total.cost or 0)) == (5, Decimal("0.5"))


async def test_a_bad_turn_does_not_take_its_neighbours_along(journal: Journal) -> None:
    sessions = [await new_session(journal, n) for n in range(10, 20)]
    ghost = replace(sessions[0], id=id_of(99))
    failed: list[str] = []

    async def work(session: Session) -> None:
        try:
            await journal.record_turn(turn(session, messages=(said(0, "user", "x"),)))
        except StorageError:
            failed.append(session.id)

    async with trio.open_nursery() as nursery:
        for session in (*sessions[:5], ghost, *sessions[5:]):
            nursery.start_soon(work, session)

    assert failed == [ghost.id]
    assert all([len((await journal.load(session)).messages) == 1 for session in sessions])


async def test_answered_messages_are_told_oldest_first_and_for_a_day(kept: Kept) -> None:
    session = await new_session(kept.journal)
    answers = tuple(
        answer(
            f"k{n}", created_at=AT + timedelta(hours=n), route="continue" if n % 2 else "execute"
        )
        for n in range(30)
    )
    for each in reversed(answers):
        await kept.journal.record_turn(turn(session, answered=(each,)))
    last = AT + timedelta(hours=29)
    await kept.journal.record_turn(turn(session, at=last, run=RunState(updated_at=last)))

    assert (await kept.journal.load(session)).answered == answers[5:]
    at = AT + timedelta(hours=40)
    assert (await kept.journal.load(session, at=at)).answered == answers[16:]

    # Deleting waits for the writer, and so does the next write.
    await kept.journal.update_session(session)
    assert (await kept.counts())["idempotency_record"] == 14


async def test_a_key_answered_again_has_its_newer_answer(journal: Journal) -> None:
    session, other = await new_session(journal, 10), await new_session(journal, 11)
    odd = "x' OR '\ufffd" * 100
    later = answer(odd, digest="e", created_at=AT + timedelta(hours=1))
    routed = answer(odd, route="continue", created_at=AT + timedelta(hours=2))
    await journal.record_turn(turn(session, answered=(answer(odd),)))
    await journal.record_turn(turn(other, answered=(answer("k"),)))
    await journal.record_turn(turn(session, answered=(later, routed)))
    assert (await journal.load(session)).answered == (later, routed)
    assert (await journal.load(other)).answered == (answer("k"),)


async def test_no_more_than_a_thousand_answers_are_told(journal: Journal) -> None:
    session = await new_session(journal)
    answers = tuple(answer(f"k{n}", created_at=AT + timedelta(seconds=n)) for n in range(1010))
    await journal.record_turn(turn(session, answered=answers))
    assert (await journal.load(session)).answered == answers[10:]


async def test_the_input_of_a_run_is_dropped_with_its_end(kept: Kept) -> None:
    session = await new_session(kept.journal)
    record = full_turn(session)
    await kept.journal.record_turn(record)
    await kept.journal.record_turn(turn(session, run=record.run))
    assert (await kept.journal.load(session)).input == record.input

    for _ in range(2):
        await kept.journal.record_turn(turn(session, run=record.run, drop_input=True))
        assert (await kept.journal.load(session)).input is None
        assert not {"session_run_input", "session_run_input_content"} & set(await kept.counts())


async def test_the_newest_plan_is_told_as_it_was_last_written(kept: Kept) -> None:
    session, other = await new_session(kept.journal, 10), await new_session(kept.journal, 11)
    old, new = plan(400), plan(401, content=Sealed(ENVELOPE), restricted=True)
    approved = replace(
        new, status=PlanStatus.APPROVED, approved_at=AT, updated_at=AT + timedelta(hours=1)
    )
    await kept.journal.record_turn(turn(session, plans=(old, new)))
    await kept.journal.record_turn(turn(other, plans=(plan(402),)))
    assert (await kept.journal.load(session)).plan == new
    await kept.journal.record_turn(turn(session, plans=(approved,)))
    assert (await kept.journal.load(session)).plan == approved
    assert (await kept.counts())["session_plan_content"] == 3


async def test_only_what_was_approved_is_disclosed(journal: Journal) -> None:
    session, other = await new_session(journal, 10), await new_session(journal, 11)
    approvals = (
        approval(500, "remote_disclosure", "openai"),
        approval(501, "remote_disclosure", "openai diff"),
        approval(502, "remote_disclosure", "mistral", decision="rejected", reason="no"),
        approval(503, "remote_disclosure", "openai"),
        approval(504, "tool_call", "c"),
        approval(505, "remote_disclosures", "x"),
    )
    await journal.record_turn(turn(session, approvals=approvals))
    theirs = approval(506, "remote_disclosure", "mistral")
    await journal.record_turn(turn(other, approvals=(theirs,)))
    assert (await journal.load(session)).disclosed == {"openai", "openai diff"}


async def test_a_run_keeps_what_it_spent_and_what_was_agreed_to(journal: Journal) -> None:
    session = await new_session(journal)
    spent = Totals(calls=3, input_tokens=5, cost=Decimal("0.000000123"), cost_known=False)
    detail = {"spent": "0.1", "paths": ["a", "b"], "limit": None}
    run = RunState(
        run_id=id_of(100),
        updated_at=AT,
        spent=spent,
        barred="refused",
        ceiling=Decimal("1.50"),
        unpriced_agreed=True,
        phase=AwaitingApproval(id_of(500), "cost_limit", "Invoke", detail),
    )
    await journal.record_turn(turn(session, run=run))
    assert (await journal.load(session)).run == run

    free = RunState(run_id=id_of(101), updated_at=AT)
    await journal.record_turn(turn(session, run=free))
    assert (await journal.load(session)).run == free


async def test_notes_are_told_as_notes_and_no_exchange_begins_with_one(journal: Journal) -> None:
    session = await new_session(journal)
    messages = (
        said(0, "user", "go", restricted=True),
        said(1, "assistant", "half", interrupted=True),
        said(2, "user", "go on where you were", format="note"),
        said(3, "assistant", "rest"),
        said(4, "user", "thanks"),
    )
    await journal.record_turn(turn(session, messages=messages))
    loaded = (await journal.load(session)).messages
    assert [m.note for m in loaded] == [False, False, True, False, False]
    assert [m.restricted for m in loaded] == [True, False, False, False, False]
    assert [m.interrupted for m in loaded] == [False, True, False, False, False]
    assert [m.text for m in (await journal.load(session, messages=3)).messages] == ["thanks"]


async def test_unlock_clears_every_lock_and_keeps_the_rest(journal: Journal) -> None:
    locked, free = await new_session(journal, 10), await new_session(journal, 11)
    held = RunState(run_id=id_of(100), turn=3, updated_at=AT, active={"turn": 3})
    await journal.record_turn(turn(locked, run=held))
    await journal.record_turn(turn(free))
    assert (await journal.load(locked)).run == held

    assert await journal.unlock() == 1
    assert await journal.unlock() == 0
    assert (await journal.load(locked)).run == replace(held, active=None)


async def test_a_message_that_makes_no_sense_is_a_storage_error(journal: Journal) -> None:
    session = await new_session(journal)
    for damage in ("no json", "[]", json.dumps({"text": "x", "tool_calls": [{"call_id": "c"}]})):
        record = turn(session, messages=(said(0, "assistant", damage, format="calls"),))
        await journal.record_turn(record)
        with pytest.raises(StorageError, match="cannot be read"):
            await journal.load(session)
