"""Rows that say less than they should."""

from smista.storage.memory import MemoryJournal
from smista.storage.rows import Row
from smista.storage.values import Ref
from tests.contract.builders import full_turn, new_session


async def test_what_does_not_say_that_it_is_free_counts_as_restricted() -> None:
    rows: dict[Ref, Row] = {}
    journal = MemoryJournal(rows)
    session = await new_session(journal)
    await journal.record_turn(full_turn(session))
    before = await journal.load(session)
    assert [m.restricted for m in before.messages] == [False, False, True]
    assert before.plan is not None
    assert not before.plan.restricted

    for address, row in rows.items():
        rows[address] = {name: value for name, value in row.items() if name != "restricted"}

    state = await journal.load(session)
    assert all(message.restricted for message in state.messages)
    assert state.plan is not None
    kept = (*state.calls.values(), *state.diffs.values(), state.plan)
    assert [each.restricted for each in kept] == [True] * 3
