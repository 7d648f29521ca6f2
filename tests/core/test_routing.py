"""Routing: precedence, the walk along the chain, locality, requirements, and every way to fail."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.history import Role
from smista.core.intents import Effort, TaskIntent
from smista.core.model_ref import Capabilities, ModelRef, Unavailable
from smista.core.policy import RoutingPolicy
from smista.core.rules import find_route, weigh_rules
from smista.core.snapshot import Attempt
from tests.core.builders import (
    ROOT,
    answered,
    called,
    decided,
    file,
    model,
    refused,
    request,
    said,
    snapshot,
)

LOCAL = model("ollama/l")
REMOTE = model("openai/r")
BOTH = {"default": {"model": "openai/r", "fallbacks": ["ollama/l"]}}
REMOTE_ONLY = {"default": {"model": "openai/r"}}


def rule(name: str, **parts: Any) -> dict[str, Any]:
    return {"name": name, "model": f"openai/{name}", **parts}


def matched(rules: list[dict[str, Any]], intent: str = "edit", *paths: str) -> str | None:
    policy = RoutingPolicy.model_validate({"rules": rules, "default": {"model": "ollama/l"}})
    route = find_route(policy, TaskIntent(intent), paths, ROOT)
    assert route is not None
    return None if route.rule is None else route.rule.name


@pytest.mark.parametrize(
    ("conditions", "intent", "paths", "fits"),
    [
        ({}, "chat", (), True),
        ({"intent": "edit"}, "edit", (), True),
        ({"intent": "edit"}, "chat", (), False),
        ({"paths": ["src/**"]}, "chat", ("src/a",), True),
        ({"paths": ["src/**"]}, "chat", (f"{ROOT}/src/a",), True),
        ({"paths": ["src/**"]}, "chat", ("lib/a",), False),
        ({"paths": ["a/**", "b/**"]}, "chat", ("b/x",), True),
        ({"paths": ["a/**"], "intent": "edit"}, "edit", ("b/x", "a/x"), True),
        ({"paths": ["a/**"], "intent": "edit"}, "chat", ("a/x",), False),
        ({"paths": ["a["]}, "chat", ("a[",), False),
        ({"paths": ["SRC/**"]}, "chat", ("src/a",), False),
    ],
)
def test_match_conditions(
    conditions: dict[str, Any], intent: str, paths: tuple[str, ...], fits: bool
):
    assert (matched([rule("r", **conditions)], intent, *paths) == "r") is fits


def test_lower_priority_wins_over_specificity():
    rules = [rule("a", intent="edit", paths=["src/**"]), rule("b", priority=5)]
    assert matched(rules, "edit", "src/x") == "b"


@pytest.mark.parametrize(("weaker", "stronger"), [(0, 1), (1, 2), (2, 3)])
def test_the_ladder_of_specificity(weaker: int, stronger: int):
    ladder = [{}, {"intent": "edit"}, {"paths": ["**"]}, {"intent": "edit", "paths": ["**"]}]
    rules = [rule("weak", **ladder[weaker]), rule("strong", **ladder[stronger])]
    assert matched(rules, "edit", "x") == "strong"


def test_the_order_in_the_file_breaks_what_is_left():
    assert matched([rule("one"), rule("two")]) == "one"


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "priority": st.integers(0, 5),
                "intent": st.sampled_from(["edit", "chat"]),
                "paths": st.lists(st.sampled_from(["src/**", "*.rs", "lib/*"]), min_size=1),
            },
        ),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
def test_a_winner_given_more_priority_still_wins(rules: list[dict[str, Any]], data: Any):
    named = [rule(f"r{n}", **parts) for n, parts in enumerate(rules)]
    winner = matched(named, "edit", "src/a.rs")
    if winner is None:
        return
    first = next(r for r in named if r["name"] == winner)
    first["priority"] = data.draw(st.integers(0, first.get("priority", 1000)))
    assert matched(named, "edit", "src/a.rs") == winner


def test_every_rule_can_be_explained():
    rules = [rule("a", intent="plan"), rule("b", paths=["x/**"]), rule("c", paths=["src/**"])]
    checks = weigh_rules(
        RoutingPolicy.model_validate({"rules": rules}), TaskIntent.EDIT, ("src/a",), ROOT
    )
    assert {c.rule.name: (c.matched, c.reason) for c in checks} == {
        "a": (False, "rule 'a' wants intent plan, not edit"),
        "b": (False, "rule 'b': no task path fits its paths"),
        "c": (True, "rule 'c' matched src/a (src/**)"),
    }


def test_the_reason_names_rule_intent_path_and_pattern():
    made = request(
        routing={"rules": [rule("r", intent="edit", paths=["src/**"], model="ollama/small")]},
        workspace={"referenced_paths": ["src/a"]},
    )
    reason = decided(snapshot(request=made, command=TaskIntent.EDIT)).routing.reason
    assert reason == "rule 'r' matched the edit intent and src/a (src/**)"


@pytest.mark.parametrize(
    ("parts", "facts", "reason"),
    [
        ({"preferences": {"local_only": True}}, {}, "local_only is set"),
        ({"preferences": {"no_network": True}}, {}, "no_network is set"),
        ({"privacy": {"remote": {"mode": "deny"}}}, {}, "privacy.remote.mode is deny"),
        ({}, {"barred": "the user said no"}, "the user said no"),
        (
            {
                "attachments": {"files": [file(".env", required=True)]},
                "privacy": {"restricted_paths": [".env"]},
            },
            {},
            ".env is required and restricted",
        ),
        (
            {
                "attachments": {"files": [file(".env", required=True)]},
                "privacy": {"remote": {"blocked_paths": [".env"]}},
            },
            {},
            "privacy.remote.blocked_paths",
        ),
    ],
)
def test_every_ground_of_locality_leads_to_a_local_model_and_is_inherited(
    parts: dict[str, Any], facts: dict[str, Any], reason: str
):
    taken = snapshot(request=request(routing=BOTH, **parts), models=(REMOTE, LOCAL), **facts)
    decision = decided(taken)
    assert decision.descriptor == LOCAL
    assert decision.routing.fallback_used
    assert reason in (decision.locality or "")
    assert decision.restricted_in_view
    only = snapshot(request=request(routing=REMOTE_ONLY, **parts), models=(REMOTE,), **facts)
    refusal = refused(only)
    assert refusal.error.code == "no_route"
    assert reason in refusal.error.message


def test_a_local_only_rule_restricts_its_fallbacks_and_its_paths():
    routing = {
        "rules": [
            rule("r", paths=["c/**"], local_only=True, model="ollama/gone", fallbacks=["openai/r"])
        ]
    }
    made = request(routing=routing, workspace={"referenced_paths": ["c/x"]})
    refusal = refused(snapshot(request=made, models=(REMOTE,)))
    assert [a.code for a in refusal.attempts] == ["unknown_model", "no_route"]


def test_a_local_only_rule_without_paths_leaves_no_mark():
    routing = {"rules": [rule("r", local_only=True, model="ollama/l")]}
    decision = decided(snapshot(request=request(routing=routing), models=(LOCAL,)))
    assert decision.locality == "rule 'r' is local_only"
    assert not decision.restricted_in_view


def test_a_local_only_rule_with_paths_leaves_a_mark():
    routing = {"rules": [rule("r", local_only=True, paths=["c/**"], model="ollama/l")]}
    made = request(routing=routing, workspace={"referenced_paths": ["c/x"]})
    assert decided(snapshot(request=made, models=(LOCAL,))).restricted_in_view


def test_denied_local_disclosure_bars_local_models():
    made = request(routing=BOTH, privacy={"local": {"mode": "deny"}})
    made_here = request(
        routing={"default": {"model": "ollama/l"}}, privacy={"local": {"mode": "deny"}}
    )
    assert decided(snapshot(request=made, models=(REMOTE, LOCAL))).descriptor == REMOTE
    assert (
        "privacy.local.mode" in refused(snapshot(request=made_here, models=(LOCAL,))).error.message
    )


@pytest.mark.parametrize(
    ("capability", "parts", "facts"),
    [
        ("tools", {}, {"command": TaskIntent.EDIT}),
        ("tools", {}, {"command": TaskIntent.SKILL}),
        (
            "tools",
            {},
            {
                "history": (
                    said("0", "hello", run_id="run"),
                    called("1", "read_file", "{}", run_id="run"),
                    answered("1", "x", run_id="run"),
                )
            },
        ),
        ("images", {"attachments": {"files": [file("p", "data:image/png;base64,AA")]}}, {}),
        ("reasoning", {"routing": {"rules": [rule("r", effort="high")]}}, {}),
        ("reasoning", {"routing": {"rules": [rule("r", effort="xhigh")]}}, {}),
        (
            "json_output",
            {"routing": {"rules": [rule("r", requires_capabilities={"json_output": True})]}},
            {},
        ),
    ],
)
def test_requirements_pass_over_models_that_lack_them(
    capability: str, parts: dict[str, Any], facts: dict[str, Any]
):
    routing = parts.pop("routing", REMOTE_ONLY)
    made = request(routing=routing, **parts)
    able = {"tools": True, "images": True, "reasoning": True, "json_output": True}
    lacking = Capabilities(**{**able, capability: False})
    models = (model("openai/r", capabilities=lacking),)
    refusal = refused(snapshot(request=made, models=models, **facts))
    assert refusal.error.code == "missing_capability"
    assert capability in refusal.error.message
    models = (model("openai/r", capabilities=Capabilities(**able)),)
    decided(snapshot(request=made, models=models, **facts))


def test_a_chat_needs_no_tools_and_offers_none_to_a_model_without():
    plain = model("ollama/small", capabilities=Capabilities())
    assert decided(snapshot(models=(plain,))).prompt.tools == ()


@pytest.mark.parametrize("effort", ["low", "medium"])
def test_effort_goes_only_to_models_that_reason(effort: str):
    routing = {"rules": [rule("r", effort=effort)]}
    for reasoning in (True, False):
        facts = model("openai/r", capabilities=Capabilities(reasoning=reasoning))
        decision = decided(snapshot(request=request(routing=routing), models=(facts,)))
        assert decision.prompt.effort == (Effort(effort) if reasoning else None)
        assert decision.routing.effort == Effort(effort)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("authentication", "provider_authentication"),
        ("missing_credentials", "missing_provider_credentials"),
        ("timeout", "request_timeout"),
        ("provider_unavailable", "provider_unavailable"),
        ("rate_limit", "rate_limited"),
        ("unknown", "provider_error"),
        ("something new", "provider_error"),
    ],
)
def test_a_provider_that_could_not_be_listed_says_why(reason: str, code: str):
    out = Unavailable(provider="openai", reason=reason)
    decision = decided(snapshot(request=request(routing=BOTH), models=(LOCAL,), unavailable=(out,)))
    assert [a.code for a in decision.attempts] == [code]
    assert decision.routing.fallback_used


def test_failures_of_different_kinds_exhaust_the_chain():
    routing = {"default": {"model": "openai/r", "fallbacks": ["ollama/unknown"]}}
    taken = snapshot(request=request(routing=routing), models=(REMOTE,), credentials=frozenset())
    refusal = refused(taken)
    assert refusal.error.code == "fallback_exhausted"
    assert [a["code"] for a in refusal.error.details["attempts"]] == [
        "missing_provider_credentials",
        "unknown_model",
    ]
    assert refusal.primary == ModelRef("openai", "r")


def test_the_same_failure_of_every_candidate_is_that_failure():
    made = request(routing=BOTH, attachments={"files": [file("big", "x" * 1_000, required=True)]})
    models = tuple(m.model_copy(update={"max_context_tokens": 100}) for m in (REMOTE, LOCAL))
    assert refused(snapshot(request=made, models=models)).error.code == "context_window_exceeded"


def test_a_larger_window_down_the_chain_serves():
    made = request(routing=BOTH, attachments={"files": [file("big", "x" * 1_000, required=True)]})
    small = REMOTE.model_copy(update={"max_context_tokens": 100})
    decision = decided(snapshot(request=made, models=(small, LOCAL)))
    assert decision.descriptor == LOCAL
    assert decision.attempts[0].code == "context_window_exceeded"


def test_the_window_may_be_filled_to_the_last_token():
    made = request(attachments={"files": [file("f", "x" * 196, required=True)]})
    fits = model("ollama/small", max_context_tokens=100)
    exact = snapshot("y" * 4, request=made, models=(fits,))
    assert decided(exact).descriptor == fits
    over = snapshot("y" * 5, request=made, models=(fits,))
    assert refused(over).error.code == "context_window_exceeded"


def test_an_override_has_no_fallbacks_and_holds_for_restricted_content():
    made = request(
        routing=BOTH,
        input={"explicit_model": "openai/r"},
        attachments={"files": [file(".env", required=True)]},
        privacy={"restricted_paths": [".env"]},
    )
    refusal = refused(snapshot(request=made, models=(REMOTE, LOCAL)))
    assert refusal.error.code == "override_not_allowed"
    assert refusal.override_used


def test_an_override_of_an_unlisted_remote_model_is_refused_for_locality_first():
    made = request(input={"explicit_model": "openai/x"}, preferences={"local_only": True})
    assert refused(snapshot(request=made)).error.code == "override_not_allowed"


def test_an_override_of_a_provider_that_is_down_is_exhausted():
    made = request(input={"explicit_model": "openai/x"})
    out = Unavailable(provider="openai", reason="provider_unavailable")
    refusal = refused(snapshot(request=made, unavailable=(out,)))
    assert refusal.error.code == "fallback_exhausted"
    assert refusal.attempts[0].code == "provider_unavailable"


def test_a_live_fallback_is_judged_and_finalised_anew():
    history = (said("1", "MARK", Role.ASSISTANT, restricted=True),)
    routing = {"default": {"model": "ollama/l", "fallbacks": ["openai/r"]}}
    taken = snapshot(request=request(routing=routing), models=(REMOTE, LOCAL), history=history)
    assert "MARK" in [m.text for m in decided(taken).prompt.messages]
    down = Attempt(model=LOCAL.ref, code="provider_unavailable", reason="503")
    again = decided(
        snapshot(
            request=request(routing=routing),
            models=(REMOTE, LOCAL),
            history=history,
            failed=(down,),
        )
    )
    assert again.descriptor == REMOTE
    assert "MARK" not in [m.text for m in again.prompt.messages]


def test_a_claude_family_means_its_newest_model():
    names = ("claude-3-5-sonnet-20241022", "claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929")
    models = tuple(model(f"anthropic/{name}") for name in (*names, "claude-opus-9"))
    made = request(routing={"rules": [rule("r", model="anthropic/claude-sonnet")]})
    routing = decided(snapshot(request=made, models=models)).routing
    assert routing.model == "claude-sonnet-4-5-20250929"
    assert routing.matched_rule == "r -> anthropic/claude-sonnet"


def test_a_failed_family_model_is_passed_over_under_its_real_name():
    models = (model("anthropic/claude-sonnet-4"), LOCAL)
    routing = {"default": {"model": "anthropic/claude-sonnet", "fallbacks": ["ollama/l"]}}
    down = Attempt(model=models[0].ref, code="timeout", reason="slow")
    taken = snapshot(request=request(routing=routing), models=models, failed=(down,))
    assert decided(taken).descriptor == LOCAL


def test_ollama_is_the_local_instance_where_it_is_listed_and_says_when_it_is_not():
    cloud = model("ollama/l", local=False)
    made = request(routing={"default": {"model": "ollama/l"}})
    keys = frozenset({"ollama"})
    here = decided(snapshot(request=made, models=(cloud, LOCAL), credentials=keys))
    assert here.descriptor.local
    away = decided(snapshot(request=made, models=(cloud,), credentials=keys))
    assert "Ollama Cloud" in away.routing.reason
    barred = snapshot(request=made, models=(cloud,), credentials=keys, barred="no")
    assert refused(barred).error.code == "no_route"


def test_a_bad_pattern_of_a_local_only_rule_matches_nothing_but_restricts_everything():
    routing = {
        "default": {"model": "openai/r"},
        "rules": [rule("r", paths=["a["], local_only=True, model="ollama/l")],
    }
    made = request(routing=routing, attachments={"files": [file("README", "MARK")]})
    decision = decided(snapshot(request=made, models=(REMOTE, LOCAL)))
    assert decision.routing.matched_rule is None
    assert [i.label for i in decision.excluded] == ["README"]
