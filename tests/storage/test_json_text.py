"""JSON that is stored comes back as it went in, or is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.storage.rows import json_text
from smista.storage.values import Unstorable

INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXTS | st.from_regex(r"[0-9]{15,25}", fullmatch=True),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_can_be_stored_is_stored_as_it_is(value: object) -> None:
    assert json.loads(json_text(value)) == value


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**40])
@pytest.mark.parametrize("around", [lambda n: n, lambda n: [0, n], lambda n: {"é": {"a": n}}])
def test_a_number_beyond_64_bits_is_refused_wherever_it_stands(number: int, around) -> None:
    with pytest.raises(Unstorable):
        json_text(around(number))


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_text_that_no_store_can_carry_is_mended(text: str) -> None:
    assert json.loads(json_text([text])) == ["a\ufffdb"]
