"""What every journal promises, on the one in memory and on SurrealDB."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import trio

from smista.core.errors import StorageError
from smista.core.history import Role
from smista.core.intents import Mode, TaskIntent
from smista.core.phase import AwaitingTool, Idle, PendingCall
from smista.core.records import (
    AuthToken,
    CallStatus,
    ContextReference,
    RunState,
    Session,
    ToolCallRecord,
    TraceEvent,
    User,
)
from smista.core.secret import Plain, Sealed
from smista.ports.journal import CostSum, Journal
from tests.contract.builders import (
    AT,
    ENVELOPE,
    OTHER,
    USER,
    calling,
    cost,
    event,
    full_turn,
    id_of,
    new_session,
    said,
    turn,
)
from tests.contract.stores import Kept


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
            72,  # the sealed one counts, and tells no figures
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
    (traced,) = await journal.trace(session.id)
    assert replace(traced, id="") == sealed
    (message,) = (await journal.load(session)).messages
    assert (message.text, message.sealed, message.opened) == ("", ENVELOPE, False)


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
