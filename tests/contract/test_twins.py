"""The two journals, side by side: what one answers, the other does."""

from dataclasses import replace
from typing import Any

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smista.core.errors import StorageError
from smista.core.records import Session, TurnRecord
from tests.contract.builders import AT, USER, id_of
from tests.contract.stores import Kept, in_memory, on_surreal
from tests.contract.turns import turns

SESSION = Session(id=id_of(10), user_id=USER, title="t", created_at=AT, updated_at=AT)


async def written(kept: Kept, record: TurnRecord) -> str:
    try:
        await kept.journal.record_turn(record)
    except StorageError as error:
        return type(error).__name__
    return "written"


async def loaded(kept: Kept, messages: int | None) -> Any:
    """Return the state, or the name of what stood against it."""
    try:
        return await kept.journal.load(SESSION, messages=messages)
    except StorageError as error:
        return type(error).__name__


async def told(kept: Kept) -> dict[str, Any]:
    """Return everything a journal can tell of the session."""
    journal = kept.journal
    return {
        "states": [await loaded(kept, most) for most in (None, 2, 1, 0)],
        "trace": await journal.trace(SESSION.id, limit=1000),
        "page": await journal.trace(SESSION.id, offset=1, limit=2),
        "usage": await journal.usage(SESSION.id),
        "session": await journal.session(USER, SESSION.id),
        "sessions": await journal.sessions(USER),
    }


async def compare(records: list[TurnRecord], again: int) -> None:
    async with in_memory() as memory, on_surreal() as surreal:
        for kept in (memory, surreal):
            await kept.journal.create_session(SESSION)
        for record in (*records, *records[-again:]):
            assert await written(memory, record) == await written(surreal, record)
            assert await told(memory) == await told(surreal)
        # A write waits for the deletions that the loads have left behind.
        for kept in (memory, surreal):
            await kept.journal.update_session(replace(SESSION, title="u"))
        assert await memory.counts() == await surreal.counts()
        for kept in (memory, surreal):
            await kept.journal.delete_session(SESSION.id)
            assert await kept.counts() == {}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns(SESSION), st.integers(1, 2))
def test_the_twins_agree(records: list[TurnRecord], again: int) -> None:
    trio.run(compare, records, again)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns(SESSION))
def test_what_the_last_turn_says_comes_back(records: list[TurnRecord]) -> None:
    trio.run(_comes_back, records)


async def _comes_back(records: list[TurnRecord]) -> None:
    async with in_memory() as kept:
        await kept.journal.create_session(SESSION)
        for record in records:
            assert await written(kept, record) == "written"
        state = await kept.journal.load(SESSION, messages=None)
    last = records[-1]
    assert state.run.spent == last.run.spent
    assert (state.run.ceiling, state.run.unpriced_agreed) == (
        last.run.ceiling,
        last.run.unpriced_agreed,
    )
    assert (state.input is None) >= last.drop_input
    plans = [plan for record in records for plan in record.plans]
    newest = max((plan.id for plan in plans), default=None)
    assert (state.plan and state.plan.id) == newest
    assert len([m for m in state.messages if m.call_id is None]) == last.run.messages
