"""Packing: however a session's events fall into turns and rows, they read back in order."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smista.core.ids import new_uuid7
from smista.core.intents import TaskIntent
from smista.core.records import EventType, RunState, TraceEvent, TurnRecord
from smista.storage.packing import PACK, event_rows, page
from smista.storage.rows import Row

AT = datetime(2026, 11, 30, tzinfo=UTC)
SESSION, USER = new_uuid7(1, 1), new_uuid7(1, 2)


def event(number: int, kind: EventType, provider: str, payload: dict[str, Any]) -> TraceEvent:
    return TraceEvent(
        event_type=kind,
        task_type=TaskIntent.CHAT,
        provider=provider,
        model="m",
        created_at=AT + timedelta(microseconds=number),
        payload={"number": number, **payload},
    )


events = st.builds(
    event,
    st.integers(0, 999),
    st.sampled_from([EventType.MESSAGE, EventType.COST]),
    st.sampled_from(["a", "b"]),
    st.sampled_from([{}, {"provider": "a", "model": "m", "input_tokens": 2}, {"model": "x"}]),
)


def recorded(turns: list[list[TraceEvent]]) -> Iterator[Row]:
    first = 0
    for turn in turns:
        yield from event_rows(
            TurnRecord(
                session_id=SESSION,
                user_id=USER,
                run=RunState(),
                at=AT,
                events=tuple(turn),
                first_event=first,
                events_id=new_uuid7(1, first),
            )
        )
        first += len(turn)


@given(
    st.lists(st.lists(events, max_size=150), max_size=5), st.integers(0, 300), st.integers(0, 99)
)
def test_any_page_is_a_slice_of_all_events(
    turns: list[list[TraceEvent]], offset: int, limit: int
) -> None:
    rows = list(recorded(turns))
    pairs = [
        (base, content)
        for base, content in zip(rows[::2], rows[1::2], strict=True)
        if max(0, offset - PACK + 1) <= base["id"].key[1] < offset + limit
    ]
    found = page([b for b, _ in pairs], [c for _, c in pairs], offset, limit)
    assert list(found) == [e for turn in turns for e in turn][offset : offset + limit]


@given(st.lists(events, max_size=200))
def test_a_row_is_small_and_of_one_context_and_charges_one_model(turn: list[TraceEvent]) -> None:
    bases = list(recorded([turn]))[::2]
    assert sum(base["count"] for base in bases) == len(turn)
    assert all(0 < base["count"] <= PACK for base in bases)

    start = 0
    for base in bases:
        held = turn[start : start + base["count"]]
        start += len(held)
        assert {e.provider for e in held} == {base["provider"]}
        costs = [e for e in held if e.event_type is EventType.COST]
        charged = {
            (e.payload.get("provider", e.provider), e.payload.get("model", "m")) for e in costs
        }
        named = {(base["cost_provider"], base["cost_model"])} if costs else set()
        assert charged == named
        assert base.get("requests", 0) == len(costs)
        tokens = [e.payload["input_tokens"] for e in costs if "input_tokens" in e.payload]
        assert base.get("input_tokens") == (sum(tokens) if tokens else None)
