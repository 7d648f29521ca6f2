"""What an encrypted session's turns leave: envelopes, and rows that wait for theirs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smista.core.ids import derived
from smista.core.intents import Mode, TaskIntent
from smista.core.phase import AwaitingDecrypt, AwaitingTool, PendingCall
from smista.core.records import (
    Before,
    CallStatus,
    DiffRecord,
    DiffStatus,
    EventBatch,
    EventType,
    InputHead,
    MemoryRecord,
    MemoryScope,
    RoutingRecord,
    RunState,
    SealedInput,
    ToolCallRecord,
    Unsealed,
)
from smista.core.secret import Envelope, Opened, Plain, Sealed
from smista.core.unsealed import filled, joined, references, unsealed_from_json, unsealed_to_json
from smista.ports.journal import CostSum, Journal
from tests.contract.builders import (
    AT,
    ENVELOPE,
    approval,
    cost,
    event,
    id_of,
    new_session,
    plan,
    said,
    turn,
)

BLANK = Plain("")


def waiting() -> Unsealed:
    """One row of each kind, all of them without content."""
    call = ToolCallRecord(
        id=id_of(300),
        tool_name="read_file",
        status=CallStatus.FAILED,
        arguments=BLANK,
        error=BLANK,
        created_at=AT,
        format="entry",
    )
    diff = DiffRecord(id=id_of(301), path="", status=DiffStatus.PROPOSED, body=BLANK, created_at=AT)
    fact = MemoryRecord(
        id=id_of(302), scope=MemoryScope.SESSION, content=BLANK, created_at=AT, updated_at=AT
    )
    events = (
        event(0, payload={}),
        event(1, EventType.COST, payload={}, provider="openai", matched_rule="r"),
    )
    return Unsealed(
        messages=(
            said(0, "user", BLANK),
            said(1, "assistant", BLANK, format="calls", calls=(id_of(300), id_of(303))),
        ),
        calls=(call,),
        diffs=(diff,),
        plans=(plan(304, content=BLANK, path="", content_hash=""),),
        facts=(fact,),
        batches=(EventBatch(first=0, first_id=id_of(305), events=events),),
        input=InputHead(run_id=id_of(100), created_at=AT, plan_active=True),
        notes_id=id_of(306),
        pending=(replace(call, id=id_of(303), status=CallStatus.PENDING, error=None),),
        routing=(
            RoutingRecord(
                id=id_of(307),
                task_type=TaskIntent.EDIT,
                provider="ollama",
                model="m",
                reason="",
                created_at=AT,
                fallback_used=True,
            ),
        ),
        approvals=(approval(308, "plan", id_of(304)),),
        late=frozenset({f"message:{id_of(1000)}"}),
    )


def state_of(run_id: str = id_of(100), **changes: Any) -> RunState:
    given: dict[str, Any] = {
        "run_id": run_id,
        "turn": 1,
        "updated_at": AT + timedelta(seconds=5),
        "messages": 2,
        "events": 2,
    }
    return RunState(**{**given, **changes})


def envelope(text: str) -> Envelope:
    return ENVELOPE.model_copy(update={"ciphertext": text})


async def test_rows_that_wait_come_back_with_the_run(journal: Journal) -> None:
    session = await new_session(journal, key_id="kf_1")
    pending = AwaitingTool((PendingCall(id_of(303), Mode.ALLOW),))
    earlier = state_of(phase=pending, unsealed=waiting(), updated_at=None)
    run = state_of(
        phase=AwaitingDecrypt((f"message:{id_of(9)}",), TaskIntent.PLAN),
        unsealed=waiting(),
        before=Before(run=earlier, at=AT),
    )
    await journal.record_turn(turn(session, run, messages=()))
    loaded = await journal.load(session)
    assert loaded.run == run
    assert loaded.texts == {}


async def test_sealed_rows_come_back_unopened(journal: Journal) -> None:
    session = await new_session(journal, key_id="kf_1")
    names = references(waiting())
    envelopes = {name: envelope(f"AA{n:02}") for n, name in enumerate(names)}
    rows, rest = filled(waiting(), envelopes)
    assert rest == Unsealed(late=waiting().late)
    given = SealedInput(
        head=InputHead(run_id=id_of(100), created_at=AT, plan_active=True),
        content=envelope("in"),
        notes_id=id_of(306),
        notes=envelope("no"),
    )
    await journal.record_turn(
        turn(
            session,
            state_of(),
            messages=rows.messages,
            tool_calls=rows.calls,
            diffs=rows.diffs,
            plans=rows.plans,
            facts=rows.facts,
            batches=rows.batches,
            sealed_input=given,
        )
    )

    state = await journal.load(session)
    user, assistant, answer = state.messages
    assert (user.sealed, user.opened, user.text) == (envelopes[names[2]], False, "")
    assert [call.call_id for call in assistant.calls] == [id_of(300), id_of(303)]
    assert (answer.call_id, answer.is_error) == (id_of(300), True)
    assert answer.sealed == envelopes[f"tool_call:{id_of(300)}"]
    assert state.calls[id_of(300)].format == "entry"
    assert (state.input, state.sealed_input) == (None, given)
    assert state.plan is not None
    assert state.plan.content == Sealed(envelopes[f"plan:{id_of(304)}"])
    assert [fact.content for fact in state.facts] == [Sealed(envelopes[f"memory:{id_of(302)}"])]
    traced = await journal.trace(session.id)
    assert [(e.id, e.payload) for e in traced] == [
        (derived(id_of(305), n), envelopes[f"trace:{derived(id_of(305), n)}"]) for n in (0, 1)
    ]
    assert await journal.usage(session.id) == (
        CostSum(provider="openai", model="m", task_type="chat", requests=1),
    )


async def test_an_opened_text_is_never_written(journal: Journal) -> None:
    session = await new_session(journal, key_id="kf_1")
    opened = Opened("PLANTED", ENVELOPE)
    await journal.record_turn(turn(session, messages=(said(0, "user", opened),)))
    (message,) = (await journal.load(session)).messages
    assert (message.text, message.sealed) == ("", ENVELOPE)


async def test_events_of_several_turns_can_be_sealed_in_one(journal: Journal) -> None:
    session = await new_session(journal, key_id="kf_1")
    batches = tuple(
        EventBatch(
            first=first, first_id=id_of(400 + first), events=(replace(cost(n), payload=ENVELOPE),)
        )
        for n, first in enumerate((0, 1))
    )
    await journal.record_turn(turn(session, state_of(events=2), batches=batches))
    traced = await journal.trace(session.id)
    assert [each.id for each in traced] == [id_of(400), id_of(401)]


def test_rows_that_wait_hold_no_content() -> None:
    stored = unsealed_to_json(waiting())
    assert unsealed_from_json(stored) == waiting()


@given(st.sets(st.sampled_from(references(waiting()))))
def test_what_is_not_sealed_goes_on_waiting(names: set[str]) -> None:
    whole = {name for name in names if not name.startswith("trace:")}
    _, rest = filled(waiting(), dict.fromkeys(whole, ENVELOPE))
    assert set(references(rest)) == set(references(waiting())) - whole
    assert set(references(joined(rest, waiting()))) == set(references(waiting()))
