"""Events become words; foreign text becomes harmless."""

from datetime import UTC, datetime

import pytest

from cli.render import Said, render, timeline, usage_words
from smista.core.events import (
    ReasoningDeltaEvent,
    Status,
    TextDeltaEvent,
    ToolCallStarted,
    TurnEnd,
    UsageEvent,
)
from smista.sdk.answers import TraceEntry
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


def entry(event_type, **payload):
    return TraceEntry(
        event_type=event_type,
        task_type="edit",
        provider="p",
        model="m",
        matched_rule="r -> p/m",
        created_at=datetime(2026, 5, 25, 9, 0, 1, tzinfo=UTC),
        payload={"plaintext": payload},
    )


def test_a_trace_reads_as_a_timeline_turn_by_turn():
    text = timeline(
        [
            entry("message", role="user"),
            entry("classification", intent="edit", reason="keyword 'fix'"),
            entry("routing_decision", provider="p", model="m", reason="rule 'r'"),
            entry("context_selection", kind="file", path="a.py", included=True, reason="required"),
            entry("tool_call", tool_name="shell", status="failed", error="x" * 200),
            entry("approval", decision="rejected", target_type="tool_call", reason="no"),
            entry("classification", intent="chat", reason="default"),
            entry("cost", provider="p", model="m", input_tokens=1, output_tokens=2, cost="0.5"),
            entry("message", role="user"),
        ]
    )
    lines = text.split("\n")
    assert lines[0] == "09:00:01  message           user message"
    assert lines[1] == "09:00:01  classification    edit: keyword 'fix'"
    assert lines[2] == "09:00:01  routing_decision  rule r -> p/m: rule 'r'"
    assert lines[3] == "09:00:01  context_selection in  a.py: required"
    assert lines[4].startswith("09:00:01  tool_call         shell failed xxx")
    assert len(lines[4]) < 160
    assert lines[5] == "09:00:01  approval          rejected (tool_call): no"
    assert lines[6] == ""
    assert lines[8] == "09:00:01  cost              p/m: 1 in + 2 out tokens, 0.5 USD"
    assert lines[9] == ""


def test_a_sealed_event_says_so():
    sealed = entry("message").model_copy(update={"payload": {"encrypted": {}}})
    assert "sealed (p/m)" in timeline([sealed])


def test_foreign_text_in_a_trace_is_harmless():
    assert "\x1b" not in timeline(
        [entry("classification", intent="\x1b[2J", reason="\x1b]0;x\x07")]
    )
