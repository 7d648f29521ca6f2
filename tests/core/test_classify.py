"""Classification: the worked examples, the tables, and the words that are no typos."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.classify import classify
from smista.core.context_kinds import KINDS, available_kinds
from smista.core.decision import Classification
from smista.core.intents import Confidence, IntentSource, TaskIntent
from smista.core.keywords import Wording, allowed_edits, words
from smista.core.policy import ClassificationConfig
from tests.core.builders import file, request, snapshot

REVIEW_ONLY = {
    "rules": [
        {
            "intent": "review",
            "priority": 10,
            "keywords": ["review", "audit"],
            "requires_any_context": ["git_diff"],
        }
    ]
}


def classified(
    text: str,
    config: dict[str, Any] = REVIEW_ONLY,
    kinds: frozenset[str] = frozenset(),
    command: TaskIntent | None = None,
) -> Classification:
    return classify(ClassificationConfig.model_validate(config), text, kinds, command)


def test_worked_example_explicit_command_whatever_the_prompt():
    made = classified("please review", kinds=frozenset({"git_diff"}), command=TaskIntent.EDIT)
    assert (made.intent, made.source) == (TaskIntent.EDIT, IntentSource.EXPLICIT)
    assert (made.matched_rule, made.confidence) == (None, None)


def test_worked_example_review_with_a_diff_at_hand():
    made = classified("Please review this.", kinds=frozenset({"git_diff"}))
    assert (made.intent, made.source) == (TaskIntent.REVIEW, IntentSource.INFERRED)
    assert (made.matched_rule, made.confidence) == (0, Confidence.HIGH)
    assert "'review'" in made.reason
    assert "'git_diff'" in made.reason
    assert "rule 0" in made.reason


def test_worked_example_review_without_a_diff_is_chat():
    made = classified("Please review this.")
    assert (made.intent, made.matched_rule) == (TaskIntent.CHAT, None)
    assert (made.source, made.confidence) == (IntentSource.INFERRED, Confidence.LOW)


def test_worked_example_a_question_that_fits_no_rule_is_chat():
    made = classified("What is a monad?", kinds=frozenset({"git_diff"}))
    assert (made.intent, made.confidence) == (TaskIntent.CHAT, Confidence.LOW)


@pytest.mark.parametrize(
    ("rule", "text", "confidence"),
    [
        ({"keywords": ["review"], "requires_any_context": ["git_diff"]}, "review", "high"),
        ({"keywords": ["review"], "requires_any_context": ["git_diff"]}, "reviwe", "medium"),
        ({"keywords": ["review"]}, "review", "medium"),
        ({"requires_any_context": ["git_diff"]}, "anything", "medium"),
        ({}, "anything", "low"),
    ],
)
def test_confidence_table(rule: dict[str, Any], text: str, confidence: str):
    config = {"rules": [{"intent": "review", **rule}]}
    made = classified(text, config, frozenset({"git_diff"}))
    assert (made.matched_rule, made.confidence) == (0, confidence)


@pytest.mark.parametrize(
    ("keyword", "edits"),
    [("edit", 0), ("audit", 1), ("refactor", 1), ("implement", 2), ("documentation", 2)],
)
def test_edits_allowed_by_keyword_length(keyword: str, edits: int):
    assert allowed_edits(keyword) == edits


@pytest.mark.parametrize(
    ("keyword", "text", "found"),
    [
        ("implement", "impelment it", True),
        ("implement", "impelmnet it", True),
        ("implement", "omplemanx that", False),
        ("review", "a preview please", False),
        ("preview", "a review please", False),
        ("review", "reviewer", False),
        ("edit", "audit", False),
        ("edit", "eidt", False),
        ("review", "REVIEW!", True),
        ("review", "re-view", False),
        ("pull request", "my Pull-Request here", True),
        ("pull request", "pull the request", False),
        ("pull request", "pul request", False),
        ("ünïcode", "the ÜNÏCODE case", True),
        ("fix_bug", "fix bug now", True),
        ("!!!", "!!!", False),
    ],
)
def test_keyword_matching(keyword: str, text: str, found: bool):
    assert (Wording(text).find((keyword,)) is not None) is found


def test_an_exact_keyword_wins_over_an_earlier_typo():
    hit = Wording("reviwe the audit").find(("review", "audit"))
    assert hit is not None
    assert (hit.keyword, hit.typo) == ("audit", None)


def test_rules_go_by_priority_then_by_order():
    rules = [
        {"intent": "edit", "priority": 20, "keywords": ["go"]},
        {"intent": "plan", "priority": 10, "keywords": ["go"]},
        {"intent": "review", "priority": 10, "keywords": ["go"]},
    ]
    made = classified("go", {"rules": rules})
    assert (made.intent, made.matched_rule) == (TaskIntent.PLAN, 1)


def test_the_configured_default_intent_is_used():
    assert classified("x", {"default_intent": "plan"}).intent is TaskIntent.PLAN


@pytest.mark.parametrize(
    ("text", "parts", "kind"),
    [
        ("x", {"workspace": {"git_diff": "diff --git a/x b/x\n"}}, "git_diff"),
        ("x", {"workspace": {"git_branch": "main"}}, "git_branch"),
        ("x", {"workspace": {"active_file": "a.py"}}, "active_file"),
        ("x", {"workspace": {"referenced_paths": ["a.py"]}}, "referenced_paths"),
        ("x", {"attachments": {"files": [file("a.py")]}}, "attachments"),
        ("x", {"attachments": {"invoked_skills": [{"name": "s", "content": ""}]}}, "invoked_skill"),
        ("see https://github.com/o/r/pull/12", {}, "pull_request"),
        ("see https://gitlab.com/g/r/-/merge_requests/3.", {}, "pull_request"),
    ],
)
def test_context_kinds_at_hand(text: str, parts: dict[str, Any], kind: str):
    assert available_kinds(snapshot(text, request=request(**parts))) == {kind}


def test_growing_kinds_come_with_the_run_and_blank_diffs_count_for_nothing():
    made = request(workspace={"git_diff": " \n"})
    grown = frozenset({"tool_results", "tool_error", "file_changes", "approved_plan"})
    assert available_kinds(snapshot(request=made, grown_kinds=grown)) == grown
    assert grown < KINDS


@given(st.text(), st.lists(st.text(min_size=1), max_size=5))
def test_a_hit_is_a_word_of_the_prompt(text: str, keywords: list[str]):
    hit = Wording(text).find(tuple(keywords))
    if hit is None:
        assert not any(len(words(k)) == 1 and words(k)[0] in words(text) for k in keywords)
    elif hit.typo is None:
        assert set(words(hit.keyword)) <= set(words(text))
    else:
        assert hit.typo in words(text)
