"""An explanation is the decision itself, with every rule and every model accounted for."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smista.core.decision import Decision, Refusal
from smista.core.explain import explain
from smista.core.intents import TaskIntent
from smista.core.pipeline import decide
from tests.core.builders import file, model, request, snapshot

MODELS = ("ollama/small", "openai/big", "anthropic/other")
INTENTS = (None, "plan", "edit", "review")
CHAIN = st.lists(st.sampled_from(MODELS), min_size=1, max_size=3, unique=True)


@st.composite
def rules(draw: st.DrawFn) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 4))):
        chosen, *fallbacks = draw(CHAIN)
        intent = draw(st.sampled_from(INTENTS))
        rule = {
            "name": f"rule {number}",
            "priority": draw(st.integers(0, 3)),
            "paths": draw(st.sampled_from([[], ["src/**"], ["docs/**"]])),
            "model": chosen,
            "fallbacks": fallbacks,
        }
        made.append(rule if intent is None else {**rule, "intent": intent})
    return made


@given(
    rules(),
    st.sampled_from([None, "openai/big"]),
    st.sampled_from(["plan", "edit", "chat"]),
    st.lists(st.sampled_from(MODELS), unique=True),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_every_rule_and_every_model_is_accounted_for(
    made: list[dict[str, Any]],
    asked: str | None,
    intent: str,
    listed: list[str],
    default: bool,
    local_only: bool,
) -> None:
    routing: dict[str, Any] = {"rules": made}
    if default:
        routing["default"] = {"model": "ollama/small", "fallbacks": ["openai/big"]}
    taken = snapshot(
        request=request(
            routing=routing,
            input={"explicit_model": asked} if asked else {},
            preferences={"local_only": local_only},
            attachments={"files": [file("src/a.py")]},
        ),
        models=tuple(map(model, listed)),
        command=TaskIntent(intent),
    )
    told = explain(taken)
    decided = decide(taken)
    if isinstance(decided, Refusal) and isinstance(told.outcome, Refusal):
        assert str(told.outcome.error) == str(decided.error)
        decided = replace(decided, error=told.outcome.error)  # errors are equal by identity only
    assert told.outcome == decided
    assert sorted(rule.number for rule in told.rules) == list(range(len(made)))
    chosen = [rule for rule in told.rules if rule.chosen]
    assert len(chosen) <= 1
    matching = [rule for rule in told.rules if rule.matched]
    if asked is None:
        assert chosen == matching[:1]
        assert bool(chosen or default) == bool(told.chain)
    else:
        assert chosen == []
        assert [str(judged.model) for judged in told.chain] == [asked]
    served = [judged for judged in told.chain if judged.serves]
    assert len(served) == isinstance(told.outcome, Decision)
    assert all(judged.reason for judged in told.chain)
    assert all(rule.reason for rule in told.rules)
