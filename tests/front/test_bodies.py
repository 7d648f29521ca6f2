"""A policy that is sent again unchanged is the one that was parsed before."""

import json

import pytest

from smista.core.errors import UnknownIntent
from smista.front.bodies import EXECUTE, parse
from tests.actors.house import request


def body(text: str, **policy) -> bytes:
    sent = request(text).model_dump(mode="json")
    return json.dumps({**sent, "policy": {**sent["policy"], **policy}}).encode()


def test_the_same_policy_in_another_request_is_not_parsed_again():
    first, second = parse(body("one"), EXECUTE), parse(body("two"), EXECUTE)
    assert (first.input.text, second.input.text) == ("one", "two")
    assert first.policy is second.policy


def test_a_policy_that_changed_is_another_one():
    first, second = parse(body("one"), EXECUTE), parse(body("one", source="project"), EXECUTE)
    assert first.policy.source != second.policy.source


def test_a_fault_in_a_policy_is_told_with_its_place_in_the_body():
    wrong = body("one", classification={"rules": [{"intent": "edt"}]})
    with pytest.raises(UnknownIntent) as refused:
        parse(wrong, EXECUTE)
    (field,) = refused.value.details["fields"]
    assert field["place"] == "body.policy.classification.rules.0.intent"
