"""What holds for every decision, whatever the policy, the attachments and the history."""

import json
import random
from dataclasses import asdict, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smista.core.decision import Decision, Refusal
from smista.core.history import Message, Role
from smista.core.intents import TaskIntent
from smista.core.model_ref import Capabilities
from smista.core.pipeline import decide
from smista.core.request import ExecuteRequest
from smista.core.snapshot import Attempt, Fact, Snapshot
from smista.core.tokens import effective_budget
from tests.core.builders import answered, called, file, model, prompt_text, request, said

PATHS = st.sampled_from(
    [
        "src/a.rs",
        "src/auth/b.rs",
        ".env",
        "deep/.env",
        "secrets/key.pem",
        "SECRETS/Key.PEM",
        "README",
    ]
)
GLOBS = st.sampled_from([".env", "*.pem", "secrets/**", "src/auth/**", "README", "a[", "src/**"])
MODELS = st.sampled_from(["openai/big", "openai/small", "ollama/here", "anthropic/no-key"])
INTENTS = st.sampled_from([intent.value for intent in TaskIntent])
MODES = st.sampled_from(["allow", "ask", "deny"])
FILLER = st.integers(0, 300).map(lambda n: "x" * n)
LISTS = st.lists(GLOBS, max_size=3)

RULES = st.lists(
    st.fixed_dictionaries(
        {"model": MODELS, "fallbacks": st.lists(MODELS, max_size=2)},
        optional={
            "intent": INTENTS,
            "paths": st.lists(GLOBS, min_size=1, max_size=2),
            "priority": st.integers(0, 3),
            "local_only": st.booleans(),
            "effort": st.sampled_from(["low", "high"]),
        },
    ),
    max_size=4,
).map(lambda rules: [{"name": f"r{n}", **rule} for n, rule in enumerate(rules)])


@st.composite
def diffs(draw: st.DrawFn) -> str:
    names = draw(st.lists(PATHS, max_size=3, unique=True))
    return "".join(
        f"diff --git a/{n} b/{n}\n--- a/{n}\n+++ b/{n}\n@@ -0,0 +1 @@\n+DIFF<{n}>\n" for n in names
    )


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    files = [
        file(path, f"FILE<{path}>{n}{draw(FILLER)}", required=draw(st.booleans()))
        for n, path in enumerate(draw(st.lists(PATHS, max_size=4)))
    ]
    instructions = [
        {"source": path, "content": f"INSTRUCTION<{path}>{n}"}
        for n, path in enumerate(draw(st.lists(PATHS, max_size=1)))
    ]
    skills = [
        {"name": f"s{n}", "content": f"SKILL<{path}>{n}", "path": path}
        for n, path in enumerate(draw(st.lists(PATHS, max_size=2)))
    ]
    return {
        "input": draw(st.just({}) | st.fixed_dictionaries({"explicit_model": MODELS})),
        "classification": {"rules": [{"intent": "edit", "keywords": ["hello"]}]},
        "routing": {
            "rules": draw(RULES),
            "default": {"model": draw(MODELS), "fallbacks": draw(st.lists(MODELS, max_size=2))},
        },
        "tools": {"permissions": draw(st.dictionaries(st.sampled_from(["shell", "git"]), MODES))},
        "privacy": {
            "restricted_paths": draw(LISTS),
            "remote": {"mode": draw(MODES), "blocked_paths": draw(LISTS)},
        },
        "workspace": {
            "git_diff": draw(diffs()),
            "git_diff_restricted": draw(st.booleans()),
            "referenced_paths": draw(st.lists(PATHS, max_size=2)),
        },
        "preferences": {"local_only": draw(st.booleans())},
        "attachments": {
            "files": files,
            "instructions": instructions,
            "available_skills": skills,
        },
    }


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    made: list[Message] = []
    for n in range(draw(st.integers(0, 5))):
        run = {"run_id": draw(st.sampled_from(["old", "run"]))}
        path = draw(PATHS)
        match draw(st.sampled_from(["said", "result", "pathless", "orphan", "unanswered"])):
            case "said":
                restricted = draw(st.booleans())
                text = f"SAID<{'restricted' if restricted else 'free'}>{n}"
                made.append(said(f"{n}", text, restricted=restricted, **run))
            case "result":
                asked = json.dumps({"path": path})
                made.append(called(f"{n}", "read_file", asked, **run))
                made.append(answered(f"{n}", f"RESULT<{path}>{draw(FILLER)}", **run))
            case "pathless":
                made.append(called(f"{n}", "search_files", '{"pattern":"x"}', **run))
                made.append(answered(f"{n}", "LISTING<>", **run))
            case "orphan":
                made.append(answered(f"{n}", "ORPHAN", **run))
            case _:
                made.append(called(f"{n}", "shell", "{}", **run))
    return tuple(made)


CATALOG = (
    model("openai/big", max_context_tokens=100_000),
    model("openai/small", max_context_tokens=300, capabilities=Capabilities(tools=True)),
    model("ollama/here", max_context_tokens=600),
    model("anthropic/no-key"),
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    failing = draw(st.sampled_from([None, *CATALOG]))
    failed = (
        ()
        if failing is None
        else (Attempt(model=failing.ref, code="provider_unavailable", reason="503"),)
    )
    facts = tuple(
        Fact(id=f"{n}", scope="user", text=f"FACT<{'restricted' if r else 'free'}>", restricted=r)
        for n, r in enumerate(draw(st.lists(st.booleans(), max_size=2)))
    )
    return Snapshot(
        request=request(**draw(requests())),
        text="hello",
        run_id="run",
        history=draw(histories()),
        models=CATALOG,
        credentials=frozenset({"openai"}),
        memory=facts,
        failed=failed,
        barred=draw(st.sampled_from([None, None, "the user said no"])),
    )


def dumped(decided: Decision | Refusal) -> str:
    """Return all of *decided* as text; what has no order of its own is put into one."""
    fields = {name: value for name, value in asdict(decided).items() if name != "error"}
    if isinstance(decided, Refusal):
        fields["error"] = (decided.error.code, decided.error.message, decided.error.details)
    return repr(fields)


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, dict):
        entries = [(key, shuffled(part, order)) for key, part in value.items()]
        order.shuffle(entries)
        return dict(entries)
    return [shuffled(part, order) for part in value] if isinstance(value, list) else value


@given(snapshots(), st.randoms(use_true_random=False))
def test_the_same_input_gives_the_same_bytes_in_any_order_of_members(
    taken: Snapshot, order: random.Random
):
    body = json.loads(taken.request.model_dump_json())
    again = ExecuteRequest.model_validate(shuffled(body, order))
    first = dumped(decide(taken))
    assert dumped(decide(taken)) == first
    assert dumped(decide(replace(taken, request=again))) == first


@given(snapshots())
def test_a_required_item_is_never_dropped(taken: Snapshot):
    decided = decide(taken)
    if isinstance(decided, Decision):
        assert all(item.included for item in decided.items if item.required)


def secrets_of(taken: Snapshot) -> list[str]:
    """Return the marks that no remote model may see, judged by other means than the core's."""
    policy = taken.request.policy
    globs = [*policy.privacy.restricted_paths, *policy.privacy.remote.blocked_paths]
    globs += [glob for rule in policy.routing.rules if rule.local_only for glob in rule.paths]
    fits: dict[str, tuple[str, ...]] = {
        ".env": (".env", "deep/.env"),
        "*.pem": ("secrets/key.pem", "SECRETS/Key.PEM"),
        "secrets/**": ("secrets/key.pem", "SECRETS/Key.PEM"),
        "src/auth/**": ("src/auth/b.rs",),
        "src/**": ("src/a.rs", "src/auth/b.rs"),
        "README": ("README",),
    }
    everything = tuple({path for paths in fits.values() for path in paths})
    found = {path for glob in globs for path in fits.get(glob, everything)}
    marks = [
        f"{kind}<{path}>"
        for kind in ("FILE", "DIFF", "INSTRUCTION", "SKILL", "RESULT")
        for path in found
    ]
    marks += ["SAID<restricted>", "FACT<restricted>"]
    marks += ["LISTING<>"] if globs else []
    return marks + (["DIFF<"] if taken.request.workspace.git_diff_restricted else [])


@settings(max_examples=400)
@given(snapshots())
def test_nothing_restricted_is_ever_in_a_remote_models_prompt(taken: Snapshot):
    decided = decide(taken)
    if isinstance(decided, Refusal):
        return
    text = prompt_text(decided)
    present = [mark for mark in secrets_of(taken) if mark in text]
    if decided.descriptor.local:
        assert decided.restricted_in_view or not present
    else:
        assert not present


@given(snapshots())
def test_under_locality_only_local_models_serve(taken: Snapshot):
    decided = decide(taken)
    bound = (
        taken.request.local_preferences.local_only
        or taken.request.policy.privacy.remote.mode == "deny"
        or taken.barred is not None
    )
    if isinstance(decided, Decision) and bound:
        assert decided.descriptor.local
        assert decided.locality
        assert decided.restricted_in_view


@given(snapshots())
def test_included_and_excluded_are_all_candidates_and_fit_the_budget(taken: Snapshot):
    decided = decide(taken)
    if isinstance(decided, Refusal):
        assert not any(item.included for item in decided.items)
        return
    assert len(decided.included) + len(decided.excluded) == len(decided.items)
    assert sum(item.tokens for item in decided.included) <= effective_budget(decided.descriptor)
    assert all(item.reason for item in decided.items)


@given(snapshots())
def test_no_cut_orphans_a_tool_exchange(taken: Snapshot):
    decided = decide(taken)
    if isinstance(decided, Refusal):
        return
    waiting: set[str] = set()
    for message in decided.prompt.messages:
        if message.role is Role.TOOL:
            assert message.call_id in waiting
            waiting.discard(message.call_id or "")
        else:
            assert not waiting
            waiting = {call.call_id for call in message.calls}
    assert not waiting


@given(snapshots())
def test_every_rejected_candidate_has_a_reason_and_the_first_usable_one_serves(taken: Snapshot):
    decided = decide(taken)
    assert all(attempt.code and attempt.reason for attempt in decided.attempts)
    if isinstance(decided, Decision):
        assert decided.routing.fallback_used == bool(decided.attempts)
        failed = {attempt.model for attempt in taken.failed}
        assert decided.descriptor.ref not in failed
    elif decided.primary is not None:
        listed = decided.error.details.get("attempts", [])
        assert len(listed) == len(decided.attempts)
