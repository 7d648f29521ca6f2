"""Decisions as the API and the trace show them."""

import json
from decimal import Decimal

from smista.core.intents import TaskIntent
from smista.core.snapshot import Snapshot
from smista.core.stream import Usage
from smista.core.views import (
    classification_payload,
    context_view,
    cost_payload,
    preview_view,
    refusal_payload,
    routing_payload,
    routing_view,
    selection_payload,
    usage_view,
)
from tests.core.builders import decided, file, model, refused, request, snapshot

DIFF = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-old\n+new {0}\n"
CLASSIFICATION = {
    "rules": [{"intent": "review", "keywords": ["review"], "requires_any_context": ["git_diff"]}]
}
ROUTING = {
    "rules": [
        {
            "name": "task.review",
            "intent": "review",
            "model": "openai/gpt-5.5-thinking",
            "required_permissions": {"permissions": {"file_write": "ask"}},
        }
    ]
}


def review(**parts: object) -> Snapshot:
    made = request(
        classification=CLASSIFICATION,
        routing=ROUTING,
        tools={"permissions": {"file_read": "allow"}},
        privacy={"restricted_paths": [".env"]},
        workspace={"git_diff": DIFF.format("a")},
        attachments={
            "files": [file(".env", "SECRET")],
            "instructions": [{"source": "AGENTS.md", "content": "x"}],
        },
    )
    facts = {"input_cost_per_million_tokens": "1", "output_cost_per_million_tokens": "2"}
    models = (model("openai/gpt-5.5-thinking", **facts),)
    return snapshot("review this", **{"request": made, "models": models, **parts})


def test_a_preview_reads_like_the_documented_one():
    assert preview_view(decided(review())) == {
        "classification": {
            "intent": "review",
            "source": "inferred",
            "reason": "keyword 'review' and context kind 'git_diff' matched rule 0",
            "matched_rule": 0,
            "confidence": "high",
        },
        "routing": {
            "intent": "review",
            "provider": "openai",
            "model": "gpt-5.5-thinking",
            "matched_rule": "task.review -> openai/gpt-5.5-thinking",
            "fallback_used": False,
            "override_used": False,
            "reason": "rule 'task.review' matched the review intent",
        },
        "included_context": ["AGENTS.md", "current git diff"],
        "excluded_context": [".env"],
        "estimated_cost": {"min": "0.000019", "max": "0.008211", "currency": "USD"},
        "required_permissions": [
            {"permission": "file_read", "mode": "allow"},
            {"permission": "file_write", "mode": "ask"},
        ],
    }


def test_an_unknown_price_shows_as_nothing_with_the_reason():
    shown = preview_view(decided(review(models=(model("openai/gpt-5.5-thinking"),))))
    assert shown["estimated_cost"] == {"min": "0", "max": "0", "currency": "USD"}
    assert "price of openai/gpt-5.5-thinking is unknown" in shown["routing"]["reason"]


def test_a_turns_routing_has_no_reason_and_says_task_type():
    assert routing_view(decided(snapshot()).routing) == {
        "task_type": "chat",
        "provider": "ollama",
        "model": "small",
        "fallback_used": False,
        "override_used": False,
    }


def test_a_diff_that_was_parted_is_named_by_file():
    made = request(
        routing={"default": {"model": "openai/m"}},
        workspace={"git_diff": DIFF.format("a") + DIFF.format(".env")},
        privacy={"restricted_paths": [".env"]},
    )
    decision = decided(snapshot(request=made, models=(model("openai/m"),)))
    assert context_view(decision.items) == {
        "included": ["current git diff: a"],
        "excluded": ["current git diff: .env"],
    }


def test_an_explicit_command_has_no_confidence():
    made = decided(snapshot(command=TaskIntent.PLAN)).classification
    assert classification_payload(made) == {
        "intent": "plan",
        "source": "explicit",
        "reason": "explicit command 'plan'",
    }


def test_trace_payloads():
    decision = decided(review())
    assert routing_payload(decision.routing) == {
        "provider": "openai",
        "model": "gpt-5.5-thinking",
        "matched_rule": "task.review -> openai/gpt-5.5-thinking",
        "fallback_used": False,
        "override_used": False,
        "reason": "rule 'task.review' matched the review intent",
    }
    (excluded,) = decision.excluded
    assert selection_payload(excluded) == {
        "kind": "file",
        "included": False,
        "path": ".env",
        "reason": "restricted for remote models: .env matches '.env' of privacy.restricted_paths",
    }
    usage = Usage(input_tokens=5, output_tokens=2, cached_tokens=1)
    assert cost_payload(decision.routing, usage, Decimal("0.10")) == {
        "provider": "openai",
        "model": "gpt-5.5-thinking",
        "input_tokens": 5,
        "output_tokens": 2,
        "cached_tokens": 1,
        "cost": "0.1",
    }


def test_a_failed_route_names_what_was_asked_for():
    refusal = refused(review(models=()))
    payload = refusal_payload(refusal)
    assert (payload["provider"], payload["model"]) == ("openai", "gpt-5.5-thinking")
    assert payload["matched_rule"] == "task.review -> openai/gpt-5.5-thinking"
    assert payload["reason"] == refusal.error.message
    nothing = refusal_payload(refused(snapshot(request=request(routing={}))))
    assert (nothing["provider"], nothing["model"]) == ("", "")


def test_usage_leaves_out_what_is_not_known():
    assert usage_view(Usage(), None) == {}
    assert usage_view(Usage(input_tokens=3, output_tokens=4), Decimal("0.50")) == {
        "input_tokens": 3,
        "output_tokens": 4,
        "total_tokens": 7,
        "estimated_cost": "0.5",
        "actual_cost": "0.5",
        "currency": "USD",
    }


def test_every_view_is_plain_json():
    decision = decided(review())
    for view in (preview_view(decision), context_view(decision.items)):
        assert json.loads(json.dumps(view)) == view
