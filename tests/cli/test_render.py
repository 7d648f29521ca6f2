"""Events become words; foreign text becomes harmless."""

import pytest

from cli.render import Said, render, usage_words
from smista.core.events import (
    ReasoningDeltaEvent,
    Status,
    TextDeltaEvent,
    ToolCallStarted,
    TurnEnd,
    UsageEvent,
)
from tests.sdk.router import BODY_OF_COMPLETED


def test_the_answer_goes_to_stdout_as_it_is():
    assert render(TextDeltaEvent("a\x1bb")) == Said(answer="a\x1bb")


def test_a_completed_run_says_intent_rule_model_tokens_and_cost():
    said = render(TurnEnd(Status.COMPLETED, BODY_OF_COMPLETED))
    assert said == Said(
        aside="chat (default intent) · rule all -> demo/m · 3 in + 2 out tokens, 0 USD"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"matched_rule": None}, "default route -> openai-compat:demo/m"),
        ({"override_used": True}, "openai-compat:demo/m (as you asked)"),
        ({"fallback_used": True}, "served by the fallback openai-compat:demo/m"),
    ],
)
def test_it_says_why_this_model_served(changes, words):
    data = {**BODY_OF_COMPLETED, "routing": {**BODY_OF_COMPLETED["routing"], **changes}}
    assert words in render(TurnEnd(Status.COMPLETED, data)).aside


def test_an_error_names_code_and_every_model_that_was_tried():
    attempts = [{"model": "a/b", "code": "unknown_model", "reason": "not listed\x1b[2J"}]
    error = {"code": "fallback_exhausted", "message": "m", "details": {"attempts": attempts}}
    aside = render(TurnEnd(Status.ERROR, {"error": error})).aside
    assert aside == "error: fallback_exhausted: m\n  a/b: unknown_model: not listed␛[2J"


def test_a_reason_is_said_once():
    attempts = [{"model": "a/b", "code": "c", "reason": why} for why in ("not listed", "busy", "")]
    error = {"code": "x", "message": "a/b: not listed", "details": {"attempts": attempts}}
    aside = render(TurnEnd(Status.ERROR, {"error": error})).aside
    assert aside == "error: x: a/b: not listed\n  a/b: c\n  a/b: c: busy\n  a/b: c"


@pytest.mark.parametrize(
    "event",
    [
        ReasoningDeltaEvent("hm"),
        ToolCallStarted("c", "shell"),
        UsageEvent({}),
        TurnEnd(Status.AWAITING_TOOL, {}),
    ],
)
def test_what_others_show_is_not_shown_twice(event):
    assert render(event) == Said()


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        ({}, ""),
        ({"output_tokens": 2}, "2 out tokens"),
        ({"input_tokens": 1, "estimated_cost": "0.08"}, "1 in tokens, 0.08 USD"),
        ({"actual_cost": "0.1", "currency": "EUR"}, "0.1 USD"),
    ],
)
def test_what_the_provider_did_not_say_is_left_out(usage, words):
    assert usage_words(usage) == words
