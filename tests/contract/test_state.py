"""What a session leaves besides its conversation: answers, plans, disclosures, costs."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from smista.core.intents import TaskIntent
from smista.core.phase import AwaitingApproval
from smista.core.records import CallStatus, PlanStatus, RouteContext, RunState, ToolCallRecord
from smista.core.secret import Plain, Sealed
from smista.core.totals import Totals
from smista.ports.journal import Journal
from tests.contract.builders import (
    AT,
    ENVELOPE,
    answer,
    approval,
    calling,
    full_turn,
    id_of,
    new_session,
    plan,
    said,
    turn,
)
from tests.contract.stores import Kept


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
        route=RouteContext(TaskIntent.EDIT, "openai-compat:a", "m", "r -> openai-compat:a/m"),
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


async def test_calls_are_found_whatever_their_ids_look_like(journal: Journal) -> None:
    session = await new_session(journal)
    named = ("call_1", id_of(301), "zz", id_of(303))
    calls = tuple(
        ToolCallRecord(
            id=call,
            tool_name="bash",
            status=CallStatus.COMPLETED,
            arguments=Plain("{}"),
            created_at=AT,
            result=Plain(f"result of {call}"),
        )
        for call in (*named, id_of(302), "other")
    )
    messages = (said(0, "user", "go"), calling(1, "", *named))
    await journal.record_turn(turn(session, messages=messages, tool_calls=calls))
    state = await journal.load(session)
    assert set(state.calls) == set(named)
    assert [m.text for m in state.messages[2:]] == [f"result of {call}" for call in named]

    messages = (said(0, "user", "go"), calling(1, "", id_of(301), id_of(303)))
    await journal.record_turn(turn(session, messages=messages))
    assert set((await journal.load(session)).calls) == {id_of(301), id_of(303)}
