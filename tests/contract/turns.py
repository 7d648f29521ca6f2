"""Turns as chance would have them: several in a row, of one session, with all kinds of parts."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from smista.core.ids import new_uuid7
from smista.core.intents import Mode, TaskIntent
from smista.core.phase import AwaitingApproval, AwaitingEncrypt, AwaitingTool, Idle, PendingCall
from smista.core.records import (
    AnsweredRecord,
    ApprovalRecord,
    CallStatus,
    ContextReference,
    DiffRecord,
    DiffStatus,
    EventType,
    PlanRecord,
    PlanStatus,
    RouteContext,
    RoutingRecord,
    RunInput,
    RunState,
    Session,
    StoredMessage,
    ToolCallRecord,
    TraceEvent,
    TurnRecord,
)
from smista.core.secret import Plain, Sealed
from smista.core.totals import Totals
from tests.contract.builders import ENVELOPE, id_of, request_of

texts = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\0\ud800🦊")), max_size=12)
# Ids come from few, so that rows are met again.
ids = st.integers(1, 6).map(id_of)
times = st.datetimes(
    min_value=datetime(2026, 11, 27), max_value=datetime(2026, 12, 1), timezones=st.just(UTC)
)
flags = st.booleans()
words = st.sampled_from(("ollama", "openai", "mistral"))
routes = st.builds(
    RouteContext,
    task_type=st.sampled_from(TaskIntent),
    provider=texts,
    model=texts,
    matched_rule=st.none() | texts,
)
amounts = st.decimals(min_value=0, max_value=10_000, places=6)
counts = st.integers(0, 2**40)
plains = texts.map(Plain)
secrets = st.one_of(plains, st.just(Sealed(ENVELOPE)))
json_values = st.recursive(
    st.none() | flags | counts | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def some(strategy: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=most).map(tuple)


def unlike(strategy: st.SearchStrategy[Any], *names: str) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return some of *strategy*, no two of which agree in all of *names*."""

    def place(each: Any) -> tuple[Any, ...]:
        return tuple(getattr(each, name) for name in names)

    return st.lists(strategy, max_size=3, unique_by=place).map(tuple)


phases = st.one_of(
    st.just(Idle()),
    st.lists(st.builds(PendingCall, ids, st.sampled_from(Mode), flags), max_size=2).map(
        lambda calls: AwaitingTool(tuple(calls))
    ),
    st.builds(AwaitingApproval, ids, words, words, json_objects),
    some(texts).map(AwaitingEncrypt),
)
totals = st.builds(
    Totals,
    calls=counts,
    input_tokens=maybe(counts),
    output_tokens=maybe(counts),
    cached_tokens=maybe(counts),
    reasoning_tokens=maybe(counts),
    cost=amounts,
    cost_known=flags,
)
calls = st.builds(
    ToolCallRecord,
    id=ids,
    tool_name=words,
    status=st.sampled_from(CallStatus),
    arguments=plains,
    created_at=times,
    completed_at=maybe(times),
    result=maybe(plains),
    error=maybe(plains),
    paths=maybe(some(texts)),
    restricted=flags,
)
diffs = st.builds(
    DiffRecord,
    id=ids,
    path=texts,
    status=st.sampled_from(DiffStatus),
    body=secrets,
    created_at=times,
    applied_at=maybe(times),
    restricted=flags,
)
plans = st.builds(
    PlanRecord,
    id=ids,
    path=texts,
    status=st.sampled_from(PlanStatus),
    content=secrets,
    content_hash=words,
    created_at=times,
    updated_at=times,
    approved_at=maybe(times),
    restricted=flags,
)
approvals = st.builds(
    ApprovalRecord,
    id=ids,
    target_type=st.sampled_from(("remote_disclosure", "tool_call", "plan")),
    target_id=words,
    decision=st.sampled_from(("approved", "rejected")),
    created_at=times,
    reason=maybe(texts),
)
answers = st.builds(
    AnsweredRecord,
    route=words,
    key=st.one_of(words, texts),
    digest=words,
    outcome=json_objects,
    created_at=times,
)
routings = st.builds(
    RoutingRecord,
    id=ids,
    task_type=st.sampled_from(TaskIntent),
    provider=words,
    model=words,
    reason=texts,
    created_at=times,
    matched_rule=maybe(words),
    fallback_used=flags,
    override_used=flags,
)
references = st.builds(
    ContextReference, kind=words, included=flags, reason=texts, path=maybe(texts)
)
inputs = st.builds(
    RunInput, run_id=ids, request=words.map(request_of), created_at=times, plan_active=flags
)
costs = st.fixed_dictionaries(
    {"provider": words, "model": words},
    optional={"input_tokens": counts, "reasoning_tokens": counts, "cost": amounts.map(str)},
)


def _told(kind: EventType) -> st.SearchStrategy[TraceEvent]:
    payloads = costs if kind is EventType.COST else json_objects
    return st.builds(
        TraceEvent,
        event_type=st.just(kind),
        task_type=st.sampled_from((TaskIntent.CHAT, TaskIntent.EDIT)),
        provider=words,
        model=words,
        created_at=times,
        payload=st.one_of(payloads, st.just(ENVELOPE)),
        matched_rule=maybe(words),
    )


events = st.sampled_from((EventType.COST, EventType.MESSAGE)).flatmap(_told)


@dataclass
class Written:
    """How much the session holds before the next turn."""

    messages: int = 0
    events: int = 0
    references: int = 0
    turns: int = field(default=0)


@st.composite
def _message(draw: st.DrawFn, n: int) -> StoredMessage:
    form = draw(st.sampled_from(("text", "calls", "note")))
    text = draw(texts)
    if form == "calls":
        asked = [
            {"call_id": call, "provider_call_id": "p", "name": "bash", "arguments": draw(texts)}
            for call in draw(st.lists(ids, max_size=2, unique=True))
        ]
        text = json.dumps({"text": text, "tool_calls": asked})
    return StoredMessage(
        uuid=new_uuid7(7, n),
        n=n,
        role="assistant" if form == "calls" else draw(st.sampled_from(("user", "assistant"))),
        run_id=draw(ids),
        format=form,
        content=Plain(text),
        created_at=draw(times),
        provider=draw(maybe(words)),
        model=draw(maybe(words)),
        restricted=draw(flags),
        interrupted=draw(flags),
    )


active_turns = st.builds(
    lambda started_at, router, number, until: {
        "started_at": started_at,
        "lease": {"router": router, "number": number, "until": until},
    },
    times,
    words,
    st.integers(1, 9),
    times,
)


@st.composite
def _turn(draw: st.DrawFn, session: Session, written: Written) -> TurnRecord:
    said = tuple(
        draw(_message(n))
        for n in range(written.messages, written.messages + draw(st.integers(0, 3)))
    )
    told, selected = draw(some(events)), draw(some(references))
    begin = Written(**vars(written))
    written.messages += len(said)
    written.events += len(told)
    written.references += len(selected)
    written.turns += 1
    run = RunState(
        run_id=draw(ids),
        turn=draw(st.integers(0, 9)),
        attempt=draw(st.integers(0, 9)),
        phase=draw(phases),
        active=draw(maybe(active_turns)),
        updated_at=draw(times),
        messages=written.messages,
        events=written.events,
        references=written.references,
        run_references=draw(st.sampled_from((0, begin.references))),
        spent=draw(totals),
        barred=draw(maybe(texts)),
        ceiling=draw(maybe(amounts)),
        unpriced_agreed=draw(flags),
        route=draw(maybe(routes)),
    )
    return TurnRecord(
        session_id=session.id,
        user_id=session.user_id,
        run=run,
        at=draw(times),
        input=draw(maybe(inputs)),
        drop_input=draw(flags),
        messages=said,
        routing=draw(unlike(routings, "id")),
        references=selected,
        first_reference=begin.references,
        references_id=new_uuid7(8, written.turns),
        tool_calls=draw(unlike(calls, "id")),
        diffs=draw(unlike(diffs, "id")),
        approvals=draw(unlike(approvals, "target_type", "id")),
        plans=draw(unlike(plans, "id")),
        answered=draw(unlike(answers, "route", "key")),
        events=told,
        first_event=begin.events,
        events_id=new_uuid7(9, written.turns),
    )


@st.composite
def turns(draw: st.DrawFn, session: Session) -> list[TurnRecord]:
    """Return one to four turns of *session*, in the order in which they happened."""
    written = Written()
    return [draw(_turn(session, written)) for _ in range(draw(st.integers(1, 4)))]
