"""Context selection: what is required, what it is worth, what merges, what fits, in which order."""

import itertools
from typing import Any

import pytest

from smista.core.candidates import PROMPT_LABEL, Kind, candidates, split_git_diff, task_paths
from smista.core.decision import Decision, Item
from smista.core.exchanges import exchanges
from smista.core.history import Role
from smista.core.rank import recency
from smista.core.secret import Envelope
from smista.core.snapshot import Fact
from smista.core.tokens import effective_budget, reply_reserve, sealed_tokens, text_tokens
from tests.core.builders import (
    ROOT,
    answered,
    called,
    decided,
    file,
    model,
    prompt_text,
    refused,
    request,
    said,
    snapshot,
)

DIFF = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-old {0}\n+new {0}\n"
REMOTE = {"default": {"model": "openai/m"}}


def item(decision: Decision, label: str) -> Item:
    return next(item for item in decision.items if item.label == label)


def remote(**parts: Any) -> dict[str, Any]:
    return {"request": request(routing=REMOTE, **parts), "models": (model("openai/m"),)}


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_text_weighs_a_quarter_of_its_characters(text: str, tokens: int):
    assert text_tokens(text) == tokens


def test_a_character_is_a_character_whatever_its_bytes():
    assert text_tokens("äöü😀") == 1


def test_a_sealed_text_weighs_its_ciphertext_without_the_tag():
    envelope = Envelope(version=1, algorithm="x", key_id="k", nonce="n", ciphertext="A" * 48)
    assert sealed_tokens(envelope) == 5  # 36 bytes less 16, a quarter of it


@pytest.mark.parametrize(
    ("window", "output", "reserve"),
    [(100_000, 8192, 8192), (100_000, None, 4096), (6_000, None, 3_000), (6_000, 5_000, 3_000)],
)
def test_the_reply_gets_its_room_but_never_more_than_half(
    window: int, output: int | None, reserve: int
):
    facts = model("openai/m", max_context_tokens=window, max_output_tokens=output)
    assert reply_reserve(facts) == reserve
    assert effective_budget(facts) == window - reserve


@pytest.mark.parametrize(
    ("index", "count", "bonus"), [(0, 1, 0), (0, 5, 0), (4, 5, 499), (2, 5, 249), (1, 4, 166)]
)
def test_newer_messages_are_worth_more(index: int, count: int, bonus: int):
    assert recency(index, count) == bonus


@pytest.mark.parametrize(
    ("parts", "label", "reason"),
    [
        ({"attachments": {"files": [file("a", required=True)]}}, "a", "required"),
        (
            {
                "attachments": {"files": [file("src/a")]},
                "workspace": {"referenced_paths": [f"{ROOT}/src/a"]},
            },
            "src/a",
            "referenced",
        ),
        (
            {"attachments": {"files": [file("src/a")]}, "workspace": {"active_file": "./src/a"}},
            "src/a",
            "active file",
        ),
        (
            {
                "attachments": {"files": [file("src/a")]},
                "routing": {"rules": [{"name": "r", "paths": ["src/**"], "model": "ollama/small"}]},
            },
            "src/a",
            "'src/**' of rule 'r'",
        ),
        (
            {"attachments": {"instructions": [{"source": "AGENTS.md", "content": "be kind"}]}},
            "AGENTS.md",
            "instruction",
        ),
        (
            {"attachments": {"invoked_skills": [{"name": "s", "content": "do it"}]}},
            "skill s",
            "invoked",
        ),
    ],
)
def test_required_context(parts: dict[str, Any], label: str, reason: str):
    found = item(decided(snapshot(request=request(**parts))), label)
    assert found.required
    assert found.included
    assert reason in found.reason


def test_everything_else_is_discardable():
    made = request(
        attachments={
            "files": [file("a")],
            "available_skills": [{"name": "s", "content": "a skill"}],
        },
        workspace={"git_diff": DIFF.format("b")},
    )
    fact = Fact(id="1", scope="user", text="likes tea", key="drinks")
    taken = snapshot(request=made, memory=(fact,), history=(said("1", "before"),))
    kinds = {i.kind for i in decided(taken).items if not i.required}
    assert kinds == {Kind.FILE, Kind.DIFF, Kind.SKILL, Kind.MEMORY, Kind.MESSAGE}


def test_the_ranking_keeps_files_then_diff_then_history_then_memory_then_skills():
    filler = "x" * 400
    made = request(
        attachments={
            "files": [file("f", "file" + filler)],
            "available_skills": [{"name": "s", "content": "skill" + filler}],
        },
        workspace={"git_diff": DIFF.format("d") + filler.replace("x", " ")},
    )
    fact = Fact(id="1", scope="user", text="fact" + filler, key="k")
    history = (said("1", "old" + filler), said("2", "new" + filler, Role.ASSISTANT))
    kept: list[list[str]] = []
    for window in range(20, 2_000, 20):
        facts = model("ollama/small", max_context_tokens=window)
        taken = snapshot("hi", request=made, memory=(fact,), history=history, models=(facts,))
        kept.append([i.label for i in decided(taken).included])
    orders = [labels for n, labels in enumerate(kept) if n == 0 or labels != kept[n - 1]]
    assert orders[0] == [PROMPT_LABEL]
    gained = [next(iter(set(b) - set(a))) for a, b in itertools.pairwise(orders)]
    assert gained[0] == "f"
    assert gained[-1] == "skill s (on offer)"
    assert gained.index("message 2 (assistant)") < gained.index("message 1 (user)")
    assert gained.index("message 1 (user)") < gained.index("user memory k")


def test_path_affinity_breaks_ties_between_files_of_a_diff():
    diff = DIFF.format("a.rs") + DIFF.format("b.rs")
    made = request(workspace={"git_diff": diff, "referenced_paths": ["b.rs"]})
    size = text_tokens(DIFF.format("b.rs"))
    facts = model("ollama/small", max_context_tokens=2 * (size + 2))
    decision = decided(snapshot("hi", request=made, models=(facts,)))
    assert [i.label for i in decision.included if i.kind == Kind.DIFF] == ["current git diff: b.rs"]


def test_one_that_does_not_fit_makes_room_for_a_smaller_one():
    files = [file("big", "x" * 4_000), file("small", "y" * 40)]
    facts = model("ollama/small", max_context_tokens=100)
    made = request(attachments={"files": files})
    decision = decided(snapshot("hi", request=made, models=(facts,)))
    assert not item(decision, "big").included
    assert "does not fit" in item(decision, "big").reason
    assert item(decision, "small").included


def test_bytes_are_a_second_budget():
    files = [file("wide", "ä" * 60), file("narrow", "b" * 60)]
    made = request(attachments={"files": files})
    decision = decided(snapshot("hi", request=made, max_context_bytes=100))
    assert [i.label for i in decision.included] == ["narrow", PROMPT_LABEL]


def test_required_context_that_does_not_fit_is_an_error_not_a_cut():
    made = request(attachments={"files": [file("big", "x" * 4_000, required=True)]})
    facts = model("ollama/small", max_context_tokens=100)
    refusal = refused(snapshot("hi", request=made, models=(facts,)))
    assert refusal.error.code == "context_window_exceeded"
    assert all(not i.included for i in refusal.items)


@pytest.mark.parametrize(
    ("parts", "count"),
    [
        ({"files": [file("a", "1"), file("./a", "2", required=True)]}, 1),
        ({"files": [file("a", "same"), file("b", "same")]}, 1),
        ({"files": [file("a", "1"), file("b", "2"), file("b", "1")]}, 1),
        ({"files": [file("a", ""), file("b", "")]}, 2),
        (
            {
                "files": [file("AGENTS.md", "x")],
                "instructions": [{"source": "AGENTS.md", "content": "x"}],
            },
            1,
        ),
    ],
)
def test_twins_are_merged(parts: dict[str, Any], count: int):
    decision = decided(snapshot(request=request(attachments=parts)))
    assert len([i for i in decision.items if i.label != PROMPT_LABEL]) == count


def test_the_required_twin_wins_and_names_the_other():
    files = [file("a", "same"), file("b", "same", required=True)]
    decision = decided(snapshot(request=request(attachments={"files": files})))
    assert item(decision, "b").required
    assert "File: b, a\n" in prompt_text(decision)


def test_the_strictest_mark_of_twins_stays():
    made = request(
        attachments={"files": [file("free", "same"), file(".env", "same")]},
        privacy={"restricted_paths": [".env"]},
    )
    assert item(decided(snapshot(request=made)), "free").restricted


def test_a_file_quoted_in_history_is_shown_once():
    made = request(attachments={"files": [file("a", "the same words")]})
    decision = decided(snapshot(request=made, history=(said("1", "the same words"),)))
    assert prompt_text(decision).count("the same words") == 1


def test_a_diff_is_not_merged_with_its_file_nor_are_two_equal_messages():
    made = request(
        attachments={"files": [file("a", "x")]}, workspace={"git_diff": DIFF.format("a")}
    )
    history = (said("1", "yes"), said("2", "no", Role.ASSISTANT), said("3", "yes"))
    decision = decided(snapshot(request=made, history=history))
    assert len(decision.items) == 6


def test_a_call_and_its_result_stay_or_go_together():
    history = (called("1", "read_file", '{"path":"a"}'), answered("1", "x" * 4_000, paths=("a",)))
    facts = model("ollama/small", max_context_tokens=200)
    decision = decided(snapshot("hi", history=history, models=(facts,)))
    assert [m.text for m in decision.prompt.messages] == ["hi"]


def test_orphaned_results_and_unanswered_calls_reach_no_model():
    history = (
        answered("0", "orphan"),
        called("1", "read_file", "{}"),
        called("2", "read_file", "{}"),
        answered("2", "fine"),
    )
    decision = decided(snapshot(history=history))
    shown = decision.prompt.messages
    assert [m.uuid for m in shown] == ["2", "2-result", ""]
    excluded = {i.label: i.reason for i in decision.excluded}
    assert "not part of the history" in excluded["message 1 (tool)"]
    assert "never answered" in excluded["message 2 (assistant)"]


def test_a_partly_answered_message_keeps_what_was_answered():
    both = called("1", "read_file", "{}")
    two = (*both.calls, called("9", "shell", "{}").calls[0])
    asking = said("1", "let me look", Role.ASSISTANT, calls=two)
    (unit,) = exchanges((asking, answered("1", "found")))
    assert [call.call_id for call in unit.messages[0].calls] == ["call-1"]
    assert len(unit.messages) == 2


def test_this_runs_exchanges_are_required_and_come_after_the_files():
    history = (
        said("0", "earlier"),
        said("1", "hello", run_id="run"),
        called("2", "read_file", '{"path": "a"}', run_id="run"),
        answered("2", "body", run_id="run", paths=("a",)),
    )
    made = request(attachments={"files": [file("f", "file text")]})
    decision = decided(snapshot(request=made, history=history))
    earlier, shown, prompt, asked, result = decision.prompt.messages
    assert (earlier.text, prompt.text, asked.uuid, result.text) == ("earlier", "hello", "2", "body")
    assert "file text" in shown.text
    assert all(i.required for i in decision.items if i.reason == "part of this run")


def test_an_inject_is_the_newest_text_and_keeps_its_place():
    history = (
        said("0", "first", run_id="run"),
        said("1", "partial", Role.ASSISTANT, run_id="run", interrupted=True),
    )
    decision = decided(snapshot("second", history=history))
    assert [m.text for m in decision.prompt.messages] == ["first", "partial", "second"]
    assert [i.label for i in decision.items] == [
        "message 1 (user)",
        "message 2 (assistant)",
        PROMPT_LABEL,
    ]


def test_the_preamble_holds_instructions_skills_memory_and_offers_in_order():
    made = request(
        attachments={
            "files": [],
            "instructions": [{"source": "AGENTS.md", "content": "INSTRUCTION"}],
            "invoked_skills": [{"name": "i", "content": "INVOKED"}],
            "available_skills": [{"name": "o", "content": "OFFERED"}],
        }
    )
    fact = Fact(id="1", scope="user", text="MEMORY")
    system = decided(snapshot(request=made, memory=(fact,))).prompt.system
    places = [system.index(w) for w in ("smista", "INSTRUCTION", "INVOKED", "MEMORY", "OFFERED")]
    assert places == sorted(places)


SKILL = "---\nname: s\ndescription: Writes changelogs\n---\nLONG BODY"


def test_an_offered_skill_enters_as_one_line_where_the_model_can_ask_for_it():
    made = request(attachments={"available_skills": [{"name": "s", "content": SKILL}]})
    tools = frozenset({"use_skill"})
    decision = decided(snapshot(request=made, offered_tools=tools))
    assert "s: Writes changelogs" in decision.prompt.system
    assert "LONG BODY" not in decision.prompt.system
    assert item(decision, "skill s (on offer)").tokens == text_tokens("s: Writes changelogs")


def test_an_offered_skill_enters_whole_where_the_model_cannot_ask():
    made = request(attachments={"available_skills": [{"name": "s", "content": SKILL}]})
    decision = decided(snapshot(request=made))
    assert "LONG BODY" in decision.prompt.system
    assert item(decision, "skill s (on offer)").tokens == text_tokens(SKILL)


def test_images_weigh_a_fixed_amount_and_travel_as_images():
    picture = file("p.png", "data:image/png;base64,AAAA", required=True)
    decision = decided(snapshot(request=request(attachments={"files": [picture]})))
    assert item(decision, "p.png").tokens == 1500
    (image,) = decision.prompt.images
    assert (image.media_type, image.data) == ("image/png", "AAAA")
    assert "AAAA" not in "".join(m.text for m in decision.prompt.messages)


def test_no_file_can_end_its_own_block():
    made = request(attachments={"files": [file("a.md", "```\n````\nout\n")]})
    (shown, _) = decided(snapshot(request=made)).prompt.messages
    assert shown.text.startswith("File: a.md\n`````\n")
    assert shown.text.endswith("\n`````")


def test_task_paths_come_from_every_source_once():
    made = request(
        workspace={"referenced_paths": ["r"], "active_file": "a", "git_diff": DIFF.format("d")},
        attachments={"files": [file("f"), file("r")]},
    )
    taken = snapshot(request=made, touched_paths=("t", "f"))
    diff = split_git_diff(made.workspace)
    assert task_paths(taken, diff) == ("r", "a", "f", "d", "t")


def test_plan_mode_is_told_to_the_model():
    assert "plan mode" in decided(snapshot(plan_mode=True)).prompt.system
    assert "plan mode" not in decided(snapshot()).prompt.system


def test_a_restricted_file_in_a_diff_leaves_the_rest_of_it():
    diff = DIFF.format("src/a") + DIFF.format(".env")
    taken = snapshot(**remote(workspace={"git_diff": diff}, privacy={"restricted_paths": [".env"]}))
    decision = decided(taken)
    assert "new src/a" in prompt_text(decision)
    assert "new .env" not in prompt_text(decision)
    assert "'.env'" in item(decision, "current git diff: .env").reason


@pytest.mark.parametrize(
    "history",
    [
        (called("1", "read_file", '{"path":"sub/../.env"}'), answered("1", "MARK")),
        (called("1", "read_file", '{"path":"x"}'), answered("1", "MARK", paths=("x", ".env"))),
        (called("1", "search_files", '{"pattern":"x"}'), answered("1", "MARK")),
        (called("1", "list_files", "{}"), answered("1", "MARK")),
        (called("1", "shell", '{"command":"cat .env"}'), answered("1", "MARK")),
        (called("1", "shell", '{"command":"git show HEAD:.env"}'), answered("1", "MARK")),
        (called("1", "shell", '{"command":"x=$(cat \'.e\'nv);echo"}'), answered("1", "MARK")),
        (called("1", "git", '{"arguments":["log","-p","--",".env"]}'), answered("1", "MARK")),
        (called("1", "fetch_url", '{"url":"file:///home/u/.env"}'), answered("1", "MARK")),
        (called("1", "shell", '{"command":"cat .env"}'), answered("1", "MARK", paths=())),
        (called("1", "shell", '{"command":"cat ~/.ssh/id"}'), answered("1", "MARK")),
        (called("1", "shell", '{"command":"cat $HOME/.ssh/id"}'), answered("1", "MARK")),
        (called("1", "write_file", '{"path":".env","content":"MARK"}'), answered("1", "ok")),
        (said("1", "MARK", Role.ASSISTANT, restricted=True),),
    ],
)
def test_restricted_history_stays_with_local_models(history: tuple[Any, ...]):
    privacy = {"restricted_paths": [".env", ".ssh/**"]}
    there = decided(snapshot(history=history, **remote(privacy=privacy)))
    assert "MARK" not in prompt_text(there)
    assert any("restricted for remote" in i.reason for i in there.excluded)
    assert not there.restricted_in_view
    here = decided(snapshot(history=history, request=request(privacy=privacy)))
    assert "MARK" in prompt_text(here)
    assert here.restricted_in_view


def test_a_call_that_was_refused_holds_nothing_and_the_remote_model_hears_of_it():
    history = (
        said("0", "hello", run_id="run"),
        called("1", "read_file", '{"path":".env"}', run_id="run"),
        answered("1", "refused by policy", run_id="run", is_error=True, paths=()),
    )
    taken = snapshot(history=history, **remote(privacy={"restricted_paths": [".env"]}))
    assert "refused by policy" in prompt_text(decided(taken))


def test_a_restricted_result_of_this_run_needs_a_local_model_from_then_on():
    history = (
        said("0", "hello", run_id="run"),
        called("1", "read_file", '{"path":".env"}', run_id="run"),
        answered("1", "SECRET", run_id="run"),
    )
    taken = snapshot(history=history, **remote(privacy={"restricted_paths": [".env"]}))
    assert refused(taken).error.code == "no_route"


def test_listings_that_say_their_files_are_judged_by_them():
    history = (called("1", "list_files", "{}"), answered("1", "FREE", paths=("src/a",)))
    taken = snapshot(history=history, **remote(privacy={"restricted_paths": [".env"]}))
    assert "FREE" in prompt_text(decided(taken))


@pytest.mark.parametrize(
    "parts",
    [
        {"attachments": {"files": [file("copy", "MARK", restricted=True)]}},
        {"attachments": {"files": [file("link", "MARK", paths=["link", "/home/u/.ssh/k"])]}},
        {"workspace": {"git_diff": DIFF.format("MARK"), "git_diff_restricted": True}},
        {"workspace": {"git_diff": "cannot be read: MARK"}},
        {"attachments": {"available_skills": [{"name": "s", "content": "MARK", "path": ".env"}]}},
    ],
)
def test_flagged_and_linked_content_is_restricted(parts: dict[str, Any]):
    lists = {"restricted_paths": [".env", ".ssh/**"]}
    assert "MARK" not in prompt_text(decided(snapshot(**remote(privacy=lists, **parts))))


def test_restricted_instructions_need_a_local_model():
    parts = {"attachments": {"instructions": [{"source": ".ssh/id", "content": "MARK"}]}}
    taken = snapshot(**remote(privacy={"restricted_paths": [".ssh/**"]}, **parts))
    assert refused(taken).error.code == "no_route"


def test_restricted_memory_stays_here():
    fact = Fact(id="1", scope="session", text="MARK", restricted=True)
    assert "MARK" not in prompt_text(decided(snapshot(memory=(fact,), **remote())))


def test_candidates_are_all_in_the_outcome():
    made = request(attachments={"files": [file("a", "1"), file("b", "2")]})
    taken = snapshot(request=made)
    assert len(decided(taken).items) == len(candidates(taken, ()))
