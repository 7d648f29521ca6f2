"""Worked examples of routing, each decided whole."""

from decimal import Decimal
from typing import Any

import pytest

from smista.core.history import Message, Role
from smista.core.intents import Effort, TaskIntent
from smista.core.snapshot import Attempt, Snapshot
from tests.core.builders import decided, file, model, refused, request, snapshot

AUTH_ROUTING = {
    "default": {"model": "openai/gpt-5.5-mini", "fallbacks": ["ollama/qwen2.5-coder:7b"]},
    "rules": [
        {
            "name": "auth edits use Claude",
            "priority": 30,
            "effort": "high",
            "intent": "edit",
            "paths": ["src/auth/**"],
            "model": "anthropic/claude-sonnet",
            "fallbacks": ["openai/gpt-5.5-thinking"],
        }
    ],
}
AUTH_MODELS = tuple(
    model(name)
    for name in (
        "openai/gpt-5.5-mini",
        "anthropic/claude-sonnet",
        "openai/gpt-5.5-thinking",
        "ollama/qwen2.5-coder:7b",
    )
)


def auth_snapshot(**facts: Any) -> Snapshot:
    made = request(
        routing=AUTH_ROUTING,
        workspace={"referenced_paths": ["src/auth/middleware.rs"]},
        attachments={"files": [file("src/auth/middleware.rs", "fn auth() {}")]},
        privacy=facts.pop("privacy", {}),
    )
    facts.setdefault("request", made)
    return snapshot(models=AUTH_MODELS, command=TaskIntent.EDIT, **facts)


def test_an_auth_edit_uses_claude_with_high_effort():
    decision = decided(auth_snapshot())
    assert decision.routing.provider == "anthropic"
    assert decision.routing.model == "claude-sonnet"
    assert decision.routing.effort is Effort.HIGH
    assert decision.prompt.effort is Effort.HIGH
    assert decision.routing.matched_rule == "auth edits use Claude -> anthropic/claude-sonnet"
    assert not decision.routing.fallback_used


def test_without_an_anthropic_key_the_fallback_serves():
    decision = decided(auth_snapshot(credentials=frozenset({"openai"})))
    assert (decision.routing.provider, decision.routing.model) == ("openai", "gpt-5.5-thinking")
    assert decision.routing.fallback_used
    assert [attempt.code for attempt in decision.attempts] == ["missing_provider_credentials"]
    assert "no credential for anthropic" in decision.routing.reason


def test_a_chat_without_an_auth_path_takes_the_default_route():
    taken = snapshot(request=request(routing=AUTH_ROUTING), models=AUTH_MODELS)
    decision = decided(taken)
    assert (decision.routing.provider, decision.routing.model) == ("openai", "gpt-5.5-mini")
    assert decision.routing.matched_rule is None


def test_restricted_auth_files_exclude_every_remote_model():
    refusal = refused(auth_snapshot(privacy={"restricted_paths": ["src/auth/**"]}))
    assert refusal.error.code == "no_route"
    assert "src/auth/middleware.rs" in refusal.error.message
    assert "auth edits use Claude" in refusal.error.message
    assert [attempt["code"] for attempt in refusal.error.details["attempts"]] == ["no_route"] * 2


def test_the_prompt_ends_with_the_users_text_and_holds_the_file():
    decision = decided(auth_snapshot())
    *_, shown, said = decision.prompt.messages
    assert "fn auth() {}" in shown.text
    assert (said.role, said.text) == (Role.USER, "hello")


def test_failed_candidates_are_passed_over_with_what_was_recorded():
    failed = Attempt(
        model=AUTH_MODELS[1].ref, code="provider_unavailable", reason="answered 503 twice"
    )
    decision = decided(auth_snapshot(failed=(failed,)))
    assert decision.routing.model == "gpt-5.5-thinking"
    assert decision.attempts == (failed,)


def test_no_rule_and_no_default_is_no_route():
    refusal = refused(snapshot(request=request(routing={})))
    assert refusal.error.code == "no_route"
    assert refusal.primary is None


@pytest.mark.parametrize(
    ("explicit", "privacy", "code"),
    [
        ("openai/gpt-5.5-mini", {"remote": {"mode": "deny"}}, "override_not_allowed"),
        ("openai/unknown", {}, "unknown_model"),
        ("gemini/flash", {}, "missing_provider_credentials"),
    ],
)
def test_an_override_fails_with_its_own_code(explicit: str, privacy: Any, code: str):
    made = request(input={"explicit_model": explicit}, privacy=privacy)
    models = (*AUTH_MODELS, model("gemini/flash"))
    refusal = refused(snapshot(request=made, models=models))
    assert refusal.error.code == code
    assert len(refusal.error.details["attempts"]) == 1


def test_an_override_serves_without_matching_any_rule():
    made = request(routing=AUTH_ROUTING, input={"explicit_model": "openai/gpt-5.5-mini"})
    decision = decided(snapshot(request=made, models=AUTH_MODELS))
    assert decision.routing.override_used
    assert decision.routing.matched_rule is None
    assert decision.routing.effort is Effort.MEDIUM


def test_history_keeps_its_order_and_the_text_comes_once():
    history = (
        Message(uuid="1", role=Role.USER, text="before", run_id="old"),
        Message(uuid="2", role=Role.ASSISTANT, text="answer", run_id="old"),
        Message(uuid="3", role=Role.USER, text="hello", run_id="run"),
    )
    decision = decided(snapshot(history=history))
    assert [message.text for message in decision.prompt.messages] == ["before", "answer", "hello"]


def test_a_local_model_costs_nothing():
    cost = decided(snapshot()).cost
    assert (cost.min, cost.max, cost.known) == (Decimal(0), Decimal(0), True)
