"""Masking, Retry-After, peers and bounded JSON: small parts that guard much."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from smista.core.addresses import is_near
from smista.providers.json_values import BadJson, TooDeep, json_bytes, parse_json
from smista.providers.masking import MASKED, create_mask
from smista.providers.retry_after import retry_after

NOW = datetime(2026, 10, 21, 7, 27, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("0", 0.0),
        ("2.5", 2.5),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:20:00 GMT", None),
        ("Wed, 21 Oct 2026 07:28:00 -0000", 30.0),
        ("-5", None),
        ("1e9", 86_400.0),
        ("nan", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_fc_38_retry_after_is_read_capped_or_ignored(value, seconds):
    assert retry_after(value, now=NOW) == seconds


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "sk_live_abcdefghijklmnop",
        "AIzaSyA1234567890abcdefghijkl",
        "ghp_abcdefghijklmnopqrstuvwxyz",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
        "exact key with spaces",
    ],
)
def test_the_key_and_whatever_looks_like_one_is_masked(secret):
    mask = create_mask(SecretStr("exact key with spaces"))
    shown = mask(f"the key {secret}, Bearer abcdefgh12345678 and http://u:secretword@host/ failed")
    assert secret not in shown
    assert "abcdefgh12345678" not in shown
    assert "secretword" not in shown
    assert shown.startswith(f"the key {MASKED}")


def test_plain_words_are_not_masked():
    text = "the key is wrong; risk-management and monkey_business stay"
    assert create_mask(None)(text) == text


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("10.1.2.3", True),
        ("172.31.0.1", True),
        ("172.32.0.1", False),
        ("192.168.7.7", True),
        ("169.254.1.1", True),
        ("fe80::1%eth0", True),
        ("fd00::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:93.184.216.34", False),
        ("93.184.216.34", False),
        ("2606:4700::1", False),
        ("0.0.0.0", False),
        ("198.51.100.7", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_only_loopback_private_and_link_local_peers_are_near(host, near):
    assert is_near(host) is near


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(JSON, st.integers(0, 5))
def test_json_is_accepted_exactly_up_to_its_depth(value, limit):
    text = json.dumps(value, ensure_ascii=False)
    if depth(value) <= limit:
        assert parse_json(text, depth=limit) == value
    else:
        with pytest.raises(TooDeep):
            parse_json(text, depth=limit)


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, '{"a":' * 100_000, "9" * 5000, b"\xff\xfe{}", "NaN,"]
)
def test_what_is_no_json_is_a_typed_error(text):
    with pytest.raises(BadJson):
        parse_json(text, depth=200_000)


@pytest.mark.parametrize(
    "value",
    [{"a": [1, 2.5, None, True, 'é\u2028\n"\\'], "b": {"c": ("x",)}}, [], "", -(2**70), 1e-7],
)
def test_a_body_holds_what_json_says_and_nothing_between(value):
    raw = json_bytes(value)
    assert json.loads(raw) == json.loads(json.dumps(value))
    assert b": " not in raw
    assert b", " not in raw


def test_a_body_with_half_a_character_is_sent_with_a_question_mark_for_it():
    assert json_bytes({"a": "x\ud83d", "b": "é"}) == '{"a":"x?","b":"é"}'.encode()
