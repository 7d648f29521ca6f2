"""What a project's policy may change before it is trusted, one case each."""

from decimal import Decimal
from typing import Any

import pytest

from smista.core.intents import Mode
from smista.core.policy import Policy
from smista.core.request import LocalPreferences
from smista.core.tighten import tighten, tighten_preferences


def policy(**parts: Any) -> Policy:
    base: dict[str, Any] = {"classification": {}, "routing": {}, "tools": {}, "privacy": {}}
    return Policy.model_validate({"version": 1, "source": "merged", **base, **parts})


def chain(*models: str, **more: Any) -> dict[str, Any]:
    return {"model": models[0], "fallbacks": list(models[1:]), **more}


def rules(*models: str, **more: Any) -> dict[str, Any]:
    return {"rules": [chain(*models, name="a", **more)]}


def test_privacy_lists_grow_and_never_shrink() -> None:
    own = policy(privacy={"restricted_paths": ["a"], "remote": {"blocked_paths": ["b"]}})
    said = policy(privacy={"restricted_paths": ["c"], "remote": {"blocked_paths": []}})
    privacy = tighten(own, said).privacy
    assert privacy.restricted_paths == ("a", "c")
    assert privacy.remote.blocked_paths == ("b",)


@pytest.mark.parametrize(
    ("own", "said", "holds"),
    [("allow", "deny", "deny"), ("deny", "allow", "deny"), ("allow", None, "allow")],
)
def test_the_remote_mode_only_gets_stricter(own: str, said: str | None, holds: str) -> None:
    mine = policy(privacy={"remote": {"mode": own}})
    theirs = policy(privacy={"remote": {"mode": said}} if said else {})
    assert tighten(mine, theirs).privacy.remote.mode == holds


def test_local_models_are_not_taken_away_because_remote_ones_would_serve() -> None:
    theirs = policy(privacy={"local": {"mode": "deny"}})
    assert tighten(policy(), theirs).privacy.local.mode is Mode.ASK
    mine = policy(privacy={"local": {"mode": "deny"}})
    assert tighten(mine, policy()).privacy.local.mode is Mode.DENY


@pytest.mark.parametrize(
    ("own", "said", "holds"),
    [
        ({"shell": "deny"}, {"shell": "allow"}, {"shell": "deny"}),
        ({"shell": "allow"}, {"shell": "ask"}, {"shell": "ask"}),
        ({}, {"shell": "allow", "memory": "allow"}, {}),
        ({}, {"memory": "ask"}, {"memory": "ask"}),
        ({"file_read": "allow"}, {"read_file": "ask"}, {"file_read": "allow", "read_file": "ask"}),
    ],
)
def test_permissions_only_get_stricter(
    own: dict[str, str], said: dict[str, str], holds: dict[str, str]
) -> None:
    merged = tighten(policy(tools={"permissions": own}), policy(tools={"permissions": said}))
    assert merged.tools.permissions == holds


def test_a_users_rule_stays_valid_when_the_floor_below_it_rises() -> None:
    wanted = {"permissions": {"shell": "ask", "git": "allow"}}
    mine = policy(routing=rules("ollama/m", required_permissions=wanted))
    theirs = policy(tools={"permissions": {"shell": "deny"}})
    rule = tighten(mine, theirs).routing.rules[0]
    assert rule.required_permissions is not None
    assert rule.required_permissions.permissions == {"shell": Mode.DENY, "git": Mode.ALLOW}


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (["ollama/a", "ollama/b", "openai/c"], ["ollama/b", "openai/c"]),
        (["ollama/a", "ollama/b"], ["ollama/b"]),
        (["ollama/a", "openai/c"], []),  # c alone would serve where the user chose b
        (["ollama/b", "ollama/a"], ["ollama/b"]),
        (["openai/c"], ["ollama/b", "openai/c"]),  # nothing would be left
        (["ollama/a", "openai/new", "ollama/b"], ["ollama/b"]),
    ],
)
def test_chains_are_cut_short_and_never_reordered(said: list[str], left: list[str]) -> None:
    own = ("ollama/a", "ollama/b", "openai/c")
    for place in ("rule", "default"):
        shape = rules if place == "rule" else lambda *models: {"default": chain(*models)}
        merged = tighten(policy(routing=shape(*own)), policy(routing=shape(*said))).routing
        route = merged.rules[0] if place == "rule" else merged.default
        assert route is not None
        assert str(route.model) == "ollama/a"
        assert [str(ref) for ref in route.fallbacks] == left


@pytest.mark.parametrize(
    ("own", "said", "holds"), [("1", "2", "1"), ("2", "1", "1"), (None, "1", "1"), ("1", None, "1")]
)
def test_cost_limits_only_fall(own: str | None, said: str | None, holds: str) -> None:
    mine = policy(routing=rules("ollama/m", cost_limit=own))
    theirs = policy(routing=rules("ollama/m", cost_limit=said))
    assert tighten(mine, theirs).routing.rules[0].cost_limit == Decimal(holds)


def test_new_rules_other_intents_and_other_words_are_left_out() -> None:
    mine = policy(routing=rules("ollama/m"))
    said = policy(
        routing={
            "rules": [chain("openai/x", name="b"), chain("openai/x", name="a", intent="edit")]
        },
        classification={"default_intent": "plan"},
    )
    merged = tighten(mine, said)
    assert merged == mine


def test_switches_are_turned_on_and_writing_unasked_is_turned_off() -> None:
    mine = LocalPreferences(auto_apply=True, local_only=False, no_network=True)
    theirs = LocalPreferences(auto_apply=False, local_only=True, no_network=False)
    merged = tighten_preferences(mine, theirs)
    assert merged == LocalPreferences(auto_apply=False, local_only=True, no_network=True)
    back = tighten_preferences(theirs, mine)
    assert back == LocalPreferences(auto_apply=False, local_only=True, no_network=True)
