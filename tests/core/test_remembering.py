"""Facts by name, and what a call of the memory tool does to them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.facts import (
    MOST_FACTS,
    MOST_TEXT,
    handle,
    keyed_id,
    named,
    newest_first,
    recalled,
    short_ids,
    text_of,
)
from smista.core.ids import new_uuid7
from smista.core.records import MemoryRecord, MemoryScope
from smista.core.remembering import MOST_VALUE, Owner, remember
from smista.core.secret import Envelope, Plain, Sealed

AT = datetime(2026, 1, 1, tzinfo=UTC)
USER = new_uuid7(1, 1)
SEALED = Sealed(Envelope(version=2, algorithm="a", key_id="k", nonce="n", ciphertext="c"))


def fact(number: int, text: str = "v", **changes) -> MemoryRecord:
    given = {"id": new_uuid7(5, number), "scope": MemoryScope.USER, "content": Plain(text)}
    late = AT + timedelta(seconds=min(number, 1_000_000))
    return MemoryRecord(**{**given, "created_at": AT, "updated_at": late, **changes})


def owner(**changes) -> Owner:
    given = {"scope": MemoryScope.USER, "id": USER, "now": AT, "new_id": lambda: new_uuid7(9, 9)}
    return Owner(**{**given, **changes})


def do(operation: str, facts=(), *, by: Owner | None = None, **arguments):
    return remember({"operation": operation, "scope": "user", **arguments}, facts, by or owner())


@given(st.sets(st.integers(0, 2**74 - 1), max_size=30))
def test_a_short_id_means_its_fact_and_no_other(numbers):
    facts = [fact(1, id=new_uuid7(5, number)) for number in numbers]
    if len({handle(f.id) for f in facts}) < len(facts):
        return
    for fact_id, short in short_ids(f.id for f in facts).items():
        assert [f.id for f in named(facts, short)] == [fact_id]
        assert [f.id for f in named(facts, fact_id.upper())] == [fact_id]
        assert 6 <= len(short) <= 10


def test_a_key_comes_before_an_id_that_begins_alike():
    other = fact(0xABCDEF1234)
    topic = fact(2, key=handle(other.id)[:6])
    assert named([other, topic], topic.key) == [topic]
    assert named([other], handle(other.id)[:3]) == []
    assert named([other], "not hex") == []


def test_one_owner_has_one_id_for_a_key_and_others_have_another():
    assert keyed_id(USER, "k") == keyed_id(USER, "k")
    assert len({keyed_id(USER, "k"), keyed_id(USER, "l"), keyed_id(new_uuid7(1, 2), "k")}) == 3


def test_recall_is_newest_first_and_a_sealed_fact_has_no_text_yet():
    facts = [fact(1, "old"), fact(3, "new"), fact(2, "mid", scope=MemoryScope.SESSION)]
    told = recalled([*facts, fact(4, content=SEALED)])
    assert [each.text for each in told] == ["", "new", "mid", "old"]
    assert [each.sealed is not None for each in told] == [True, False, False, False]
    assert len({each.short for each in told}) == 4


def test_recall_holds_no_more_than_an_owner_may_have():
    many = [fact(n) for n in range(MOST_FACTS[MemoryScope.USER] + 5)]
    assert len(recalled(many)) == MOST_FACTS[MemoryScope.USER]
    assert recalled(many)[0].id == many[-1].id
    long = [fact(n, "x" * 1_000) for n in range(100)]
    assert sum(len(f.text) for f in recalled(long)) <= MOST_TEXT[MemoryScope.USER]


def test_a_key_holds_one_fact_and_keyless_ones_stand_side_by_side():
    first = do("record", key="editor", value="vim").written
    again = do("record", [first], key=" editor ", value="ed").written
    assert (again.id, text_of(again), again.created_at) == (first.id, "ed", first.created_at)
    loose = do("record", [first], value="tabs").written
    assert loose.key is None
    same = do("record", [loose], value="tabs")
    assert same.written is None
    assert "already remembered" in same.told


def test_what_was_written_in_sight_of_restricted_content_is_marked_anew_each_time():
    marked = do("record", key="k", value="a", by=owner(restricted=True)).written
    assert marked.restricted
    assert not do("update", [marked], key="k", value="b").written.restricted


def test_a_word_that_may_mean_two_facts_is_asked_back():
    one, two = fact(1, id=new_uuid7(5, 0xAAAA000001)), fact(2, id=new_uuid7(5, 0xAAAA000002))
    common = handle(one.id)[:4]
    hidden = replace(two, key="hidden", restricted=True)
    answer = do("forget", [one, hidden], key=common)
    assert answer.is_error
    assert answer.dropped is None
    assert handle(one.id)[:10] in answer.told
    assert "hidden" not in answer.told
    assert "hidden" in do("forget", [one, hidden], key=common, by=owner(local=True)).told


def test_a_short_topic_is_not_taken_for_an_id():
    other = fact(1, id=new_uuid7(5, 0xFACE000001))
    assert handle(other.id).startswith("face")
    assert do("record", [other], key="face", value="round").written.id == keyed_id(USER, "face")
    assert do("update", [other], key="face", value="round").written.id == other.id


@pytest.mark.parametrize(
    ("facts", "arguments", "why"),
    [
        ([fact(n) for n in range(200)], {"value": "one more"}, "200 facts already"),
        ([fact(n, "x" * 999 + str(n % 9)) for n in range(40)], {"value": "y"}, "40000 characters"),
        ([], {"value": "x" * (MOST_VALUE + 1)}, "say it shorter"),
        ([], {"value": "v", "key": "k" * 101}, "at most 100"),
        ([], {"value": "v", "key": "a\0b"}, "printable"),
        ([], {"value": "use ghp_" + "a1B2" * 9}, "secrets are not remembered"),
        ([], {"value": "v", "key": "ghp_" + "a1B2" * 9}, "secrets are not remembered"),
        ([], {"value": "password: Tr0ub4dor&3xyz"}, "secrets are not remembered"),
        ([], {"value": "the API key is 'abc&def12'"}, "secrets are not remembered"),
        ([], {"value": "hunter22", "key": "database password"}, "secrets are not remembered"),
        ([], {"value": "\n \t"}, "needs a value"),
    ],
)
def test_what_goes_beyond_the_bounds_is_refused_with_the_reason(facts, arguments, why):
    answer = do("record", facts, **arguments)
    assert answer.is_error
    assert answer.written is None
    assert why in answer.told


@pytest.mark.parametrize(
    "value",
    [
        "the password is in 1Password",
        "token: see the vault",
        "max token: 128000",
        "the secret is to wait",
        "passwords have at least 12 characters",
    ],
)
def test_talk_of_secrets_is_remembered(value):
    assert do("record", [], value=value).written is not None


def test_a_full_memory_can_still_be_changed_and_forgotten():
    facts = [fact(n) for n in range(200)]
    name = handle(facts[7].id)
    assert do("update", facts, key=name, value="w").written.id == facts[7].id
    assert do("forget", facts, key=name).dropped == facts[7]


@given(st.permutations([fact(n) for n in range(5)]))
def test_order_does_not_depend_on_where_facts_came_from(facts):
    assert newest_first(facts) == tuple(fact(n) for n in range(4, -1, -1))


@pytest.mark.parametrize("operation", ["update", "forget"])
def test_what_is_not_there_is_not_changed(operation):
    answer = do(operation, [fact(1)], key="nonsense", value="v")
    assert answer.is_error
    assert answer.written is answer.dropped is None
