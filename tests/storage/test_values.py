from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.storage.rows import json_text
from smista.storage.values import MAX_DEPTH, Unstorable, clean, clean_text

surrogates = st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF)


@given(st.text(alphabet=st.one_of(st.characters(), surrogates, st.just("\0"))))
def test_cleaned_text_is_carried_by_utf8_and_keeps_its_length(text: str) -> None:
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    assert len(cleaned.encode().decode()) == len(text)
    assert clean_text(cleaned) == cleaned


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")))
def test_sound_text_is_left_as_it_is(text: str) -> None:
    assert clean_text(text) is text


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        datetime(2026, 1, 1),
        {1},
        pytest.param(object(), id="object"),
        timedelta(1),
    ],
    ids=repr,
)
def test_what_would_come_back_changed_is_refused(value: Any) -> None:
    with pytest.raises(Unstorable):
        clean({"a": [value]})


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1e-29", "1e29", "9" * 29])
def test_decimals_that_the_engine_would_round_are_refused(amount: str) -> None:
    with pytest.raises(Unstorable):
        clean(Decimal(amount))


def test_a_time_may_have_any_zone() -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert clean(at) == at.astimezone(UTC)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


def test_depth_has_a_limit() -> None:
    assert clean(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    for refuse in (clean, json_text):
        with pytest.raises(Unstorable):
            refuse(nested(MAX_DEPTH + 1))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(alphabet=st.one_of(st.characters(), surrogates)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_json_text_agrees_with_clean_whichever_way_it_takes(value: Any) -> None:
    import json

    try:
        cleaned = clean(value)
    except Unstorable:
        with pytest.raises(Unstorable):
            json_text(value)
    else:
        assert json.loads(json_text(value)) == cleaned
