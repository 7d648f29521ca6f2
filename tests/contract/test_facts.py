"""Remembered facts, on the journal in memory and on SurrealDB."""

from dataclasses import replace
from datetime import timedelta

import trio

from smista.core.facts import keyed_id, text_of
from smista.core.records import ForgottenFact, MemoryRecord, MemoryScope
from smista.core.secret import Plain, Sealed
from tests.contract.builders import AT, ENVELOPE, OTHER, USER, id_of, new_session, turn
from tests.contract.stores import Kept

OF_USER, OF_SESSION = MemoryScope.USER, MemoryScope.SESSION


def fact(number: int, text: str = "uses vim", scope: MemoryScope = OF_USER, **changes):
    given = {"id": id_of(number), "scope": scope, "content": Plain(text)}
    late = AT + timedelta(seconds=number)
    return MemoryRecord(**{**given, "created_at": AT, "updated_at": late, **changes})


def keyed(text: str, key: str = "editor", **changes):
    return fact(1, text, id=keyed_id(USER, key), key=key, **changes)


async def test_facts_come_back_as_they_were_written_newest_first(kept: Kept) -> None:
    session = await new_session(kept.journal)
    of_user = fact(1), fact(2, "tabs ☕", key="indent", restricted=True)
    own = fact(3, "b.py", OF_SESSION, key="bug"), fact(4, "", OF_SESSION, content=Sealed(ENVELOPE))
    await kept.journal.record_turn(turn(session, facts=(*of_user, *own)))
    assert await kept.journal.facts(OF_USER, USER) == of_user[::-1]
    assert await kept.journal.facts(OF_SESSION, session.id) == own[::-1]
    assert (await kept.journal.load(session)).facts == own[::-1]


async def test_facts_are_their_owners_alone(kept: Kept) -> None:
    session, other = await new_session(kept.journal, 10), await new_session(kept.journal, 11)
    own = fact(3, scope=OF_SESSION)
    await kept.journal.record_turn(turn(session, facts=(fact(1), own)))
    assert await kept.journal.facts(OF_USER, OTHER) == ()
    assert await kept.journal.facts(OF_SESSION, other.id) == ()
    assert (await kept.journal.load(other)).facts == ()
    assert not await kept.journal.forget_fact(OF_USER, OTHER, fact(1).id)
    assert not await kept.journal.forget_fact(OF_SESSION, other.id, own.id)
    assert not await kept.journal.forget_fact(OF_USER, USER, own.id)
    assert await kept.journal.facts(OF_USER, USER) == (fact(1),)


async def test_a_fact_is_written_over_and_forgotten_with_a_turn(kept: Kept) -> None:
    session = await new_session(kept.journal)
    own = fact(3, scope=OF_SESSION, key="bug")
    await kept.journal.record_turn(turn(session, facts=(keyed("vim"), own)))
    changed = keyed("ed", updated_at=AT + timedelta(days=1))
    gone = ForgottenFact(id=own.id, scope=OF_SESSION)
    record = turn(session, facts=(changed,), forgotten=(gone,))
    await kept.journal.record_turn(record)
    await kept.journal.record_turn(record)
    assert await kept.journal.facts(OF_USER, USER) == (changed,)
    assert (await kept.journal.load(session)).facts == ()
    counts = await kept.counts()
    assert counts["user_memory"] == counts["user_memory_content"] == 1
    assert "context_memory" not in counts
    assert "context_memory_content" not in counts


async def test_two_sessions_that_write_one_key_at_once_leave_one_fact(kept: Kept) -> None:
    sessions = [await new_session(kept.journal, 10 + n) for n in range(6)]
    async with trio.open_nursery() as nursery:
        for n, session in enumerate(sessions):
            record = turn(session, facts=(keyed(f"text {n}"),))
            nursery.start_soon(kept.journal.record_turn, record)
    (found,) = await kept.journal.facts(OF_USER, USER)
    assert (text_of(found) or "").startswith("text ")
    assert (await kept.counts())["user_memory"] == 1
    last = turn(sessions[0], facts=(keyed("last"),))
    await kept.journal.record_turn(last)
    assert [text_of(f) for f in await kept.journal.facts(OF_USER, USER)] == ["last"]


async def test_facts_without_a_key_stand_side_by_side(kept: Kept) -> None:
    session = await new_session(kept.journal)
    facts = tuple(fact(n, "the same") for n in range(5))
    await kept.journal.record_turn(turn(session, facts=facts))
    assert len(await kept.journal.facts(OF_USER, USER)) == 5


async def test_a_deleted_session_takes_its_facts_along_and_leaves_the_users(kept: Kept) -> None:
    session = await new_session(kept.journal)
    facts = (fact(1), fact(3, scope=OF_SESSION, key="k"))
    await kept.journal.record_turn(turn(session, facts=facts))
    await kept.journal.delete_session(session.id)
    assert await kept.journal.facts(OF_USER, USER) == (fact(1),)
    assert await kept.counts() == {"user_memory": 1, "user_memory_content": 1}


async def test_a_person_forgets_a_fact_for_good(kept: Kept) -> None:
    session = await new_session(kept.journal)
    own = fact(3, scope=OF_SESSION, key="k")
    await kept.journal.record_turn(turn(session, facts=(fact(1), own)))
    assert await kept.journal.forget_fact(OF_USER, USER, fact(1).id)
    assert not await kept.journal.forget_fact(OF_USER, USER, fact(1).id)
    assert await kept.journal.forget_fact(OF_SESSION, session.id, own.id)
    assert (await kept.journal.load(session)).facts == ()
    assert not {name for name in await kept.counts() if "memory" in name}
    again = replace(own, content=Plain("anew"))
    await kept.journal.record_turn(turn(session, facts=(again,)))
    assert (await kept.journal.load(session)).facts == (again,)


async def test_what_names_no_fact_is_not_forgotten(kept: Kept) -> None:
    await new_session(kept.journal)
    for junk in ("", "nonsense", "user_memory:x", "0" * 32):
        assert not await kept.journal.forget_fact(OF_USER, USER, junk)
        assert await kept.journal.facts(OF_USER, junk) == ()
