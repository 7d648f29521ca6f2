"""An untrusted project never yields a decision with more models, bytes or permissions."""

from pathlib import Path
from typing import Any

import tomlkit
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smista.core.decision import Decision
from smista.core.intents import Mode, TaskIntent
from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.core.permissions import mode_of
from smista.core.pipeline import decide
from smista.core.request import Attachments, ContextFile, ExecuteRequest, TaskInput, Workspace
from smista.core.snapshot import Fact, Snapshot
from smista.core.tools import TOOLS
from smista.local.config_files import ConfigFile, Configuration, configuration, own_configuration
from smista.local.config_layers import layer_of
from smista.local.toml_source import parse_source

NAMES = ("ollama/small", "openai/big", "anthropic/other", "openai-compat:house/near")
LOCAL = ("ollama/small", "openai-compat:house/near")
PATHS = ("src/a.py", "src/b.py", ".env", "notes/x.md")
GLOBS = st.lists(st.sampled_from(["src/**", "*.py", "notes/", "/src/a.py", "b.*"]), max_size=2)
MODES = st.sampled_from(["allow", "ask", "deny"])
# Few names, so that both files often speak of the same thing.
TOOL_KEYS = ("shell", "file_read", "read_file", "memory")
PERMISSIONS = st.dictionaries(st.sampled_from(TOOL_KEYS), MODES, min_size=1)
MODEL = st.sampled_from(NAMES)
CHAIN = st.lists(MODEL, min_size=1, max_size=4, unique=True)
LIMIT = st.sampled_from(["0", "0.01", "5"])


@st.composite
def chains(draw: st.DrawFn) -> dict[str, Any]:
    model, *fallbacks = draw(CHAIN)
    return {"model": model, "fallbacks": fallbacks}


@st.composite
def rules(draw: st.DrawFn) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for name in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
        optional = {
            "intent": st.sampled_from(["plan", "edit"]),
            "paths": GLOBS,
            "local_only": st.booleans(),
            "cost_limit": LIMIT,
            "effort": st.sampled_from(["low", "high"]),
            "required_permissions": st.fixed_dictionaries({"permissions": PERMISSIONS}),
        }
        rule = draw(st.fixed_dictionaries({}, optional=optional))
        priority = draw(st.integers(0, 5)) * 10 + len(made)
        made.append({"name": name, "priority": priority, **draw(chains()), **rule})
    return made


@st.composite
def files(draw: st.DrawFn, *, project: bool = False) -> dict[str, Any]:
    """Return the tables of a valid file; a project's may also say anything about the rest."""
    providers = {name.partition("/")[0]: {} for name in NAMES}
    routing = {"default": draw(chains())}
    if draw(st.booleans()):
        routing["rules"] = draw(rules())
    data: dict[str, Any] = {"routing": routing}
    optional = {
        "privacy": st.fixed_dictionaries(
            {},
            optional={
                "restricted_paths": GLOBS,
                "remote": st.fixed_dictionaries(
                    {}, optional={"mode": MODES, "blocked_paths": GLOBS}
                ),
                "local": st.fixed_dictionaries({}, optional={"mode": MODES}),
            },
        ),
        "tools": st.fixed_dictionaries({"permissions": PERMISSIONS}),
        "local_preferences": st.dictionaries(
            st.sampled_from(["auto_apply", "local_only", "no_network", "encrypt_sessions"]),
            st.booleans(),
        ),
        "classification": st.fixed_dictionaries(
            {"default_intent": st.sampled_from(["edit", "plan", "review"])}
        ),
    }
    if project:
        optional["router"] = st.fixed_dictionaries(
            {"url": st.just("http://127.0.0.1:1"), "auto_start": st.booleans()}
        )
        optional["providers"] = st.just({"openai": {"api_key": "${secret:OTHER_KEY}"}})
    else:
        data["providers"] = providers
    return {**data, **draw(st.fixed_dictionaries({}, optional=optional))}


@st.composite
def situations(draw: st.DrawFn) -> dict[str, Any]:
    attached = tuple(
        ContextFile(
            path=path,
            content=f"content of {path}",
            content_hash=path,
            required=draw(st.booleans()),
            restricted=draw(st.sampled_from([None, True])),
        )
        for path in draw(st.lists(st.sampled_from(PATHS), unique=True))
    )
    remembered = tuple(
        Fact(id=str(n), scope="user", text=f"fact {n}", restricted=draw(st.booleans()))
        for n in range(draw(st.integers(0, 2)))
    )
    return {
        "attached": attached,
        "memory": remembered,
        "command": draw(st.sampled_from([None, TaskIntent.PLAN, TaskIntent.EDIT])),
        "models": draw(st.just(NAMES) | st.lists(st.sampled_from(NAMES), unique=True)),
    }


def layer(data: dict[str, Any], name: str) -> Any:
    return layer_of(parse_source(tomlkit.dumps(data).encode(), name))


def both(own: dict[str, Any], project: dict[str, Any]) -> tuple[Configuration, Configuration]:
    alone = own_configuration(layer(own, "own"))
    assume(not alone.findings)
    theirs = layer(project, "project")
    together = configuration(layer(own, "own"), theirs, file=Path("p"), word=lambda _: None)
    return alone, together


def outcome(config: ConfigFile, case: dict[str, Any]) -> Any:
    # Windows far larger than anything that could go in: what is left out was not allowed in.
    models = tuple(
        ModelDescriptor(
            provider=name.partition("/")[0],
            model=name.partition("/")[2],
            local=name in LOCAL,
            auth="none" if name in LOCAL else "api_key",
            capabilities=Capabilities(tools=True, reasoning=True),
            max_context_tokens=1_000_000,
        )
        for name in case["models"]
    )
    request = ExecuteRequest(
        input=TaskInput(text="hello", command=case["command"]),
        workspace=Workspace(root="/w", referenced_paths=()),
        policy=config.policy(),
        local_preferences=config.local_preferences.travelling(),
        attachments=Attachments(files=case["attached"], instructions=()),
    )
    return decide(
        Snapshot(
            request=request,
            text="hello",
            run_id="r",
            command=case["command"],
            models=models,
            memory=case["memory"],
            credentials=frozenset({"openai", "anthropic"}),
        )
    )


@given(files(), files(project=True), situations())
@settings(max_examples=300, deadline=None)
def test_an_untrusted_project_file_adds_no_model_no_byte_and_no_permission(
    own: dict[str, Any], project: dict[str, Any], case: dict[str, Any]
) -> None:
    alone, together = both(own, project)
    before, after = outcome(alone.merged, case), outcome(together.merged, case)
    if not isinstance(after, Decision):
        return
    assert isinstance(before, Decision)
    assert after.routing.matched_rule == before.routing.matched_rule
    assert after.restricted_in_view or not before.restricted_in_view
    if not after.descriptor.local:
        assert after.descriptor == before.descriptor
        seen = {(item.kind, item.label) for item in before.included}
        assert {(item.kind, item.label) for item in after.included} <= seen
    for tool in TOOLS:
        least = mode_of(tool, before.permissions)
        assert mode_of(tool, after.permissions).strictness >= least.strictness
    offered = {tool.name for tool in before.prompt.tools}
    assert {tool.name for tool in after.prompt.tools} <= offered
    if before.cost_limit is not None:
        assert after.cost_limit is not None
        assert after.cost_limit <= before.cost_limit


@given(files(), files(project=True))
@settings(max_examples=150, deadline=None)
def test_an_untrusted_project_file_redirects_nothing(
    own: dict[str, Any], project: dict[str, Any]
) -> None:
    alone, together = both(own, project)
    before, after = alone.merged, together.merged
    assert (after.router, after.providers) == (before.router, before.providers)
    assert after.classification == before.classification
    assert [rule.name for rule in after.routing.rules] == [r.name for r in before.routing.rules]
    assert after.privacy.remote.mode.strictness >= before.privacy.remote.mode.strictness
    assert after.local_preferences.auto_apply <= before.local_preferences.auto_apply
    assert after.local_preferences.encrypt_sessions >= before.local_preferences.encrypt_sessions


@given(files(), files(project=True))
@settings(max_examples=150, deadline=None)
def test_what_is_put_before_the_user_is_all_that_trust_would_change(
    own: dict[str, Any], project: dict[str, Any]
) -> None:
    _, together = both(own, project)
    theirs = layer(project, "project")
    trusted = configuration(layer(own, "own"), theirs, file=Path("p"), word=lambda _: True)
    assert bool(together.withheld) == (together.merged != trusted.merged)
    assert together.withheld == trusted.withheld


@given(files())
@settings(max_examples=100, deadline=None)
def test_a_project_that_says_what_the_user_says_changes_nothing(own: dict[str, Any]) -> None:
    alone, together = both(own, own)
    assume(alone.merged.privacy.local.mode is not Mode.DENY)
    assert together.merged == alone.merged
    assert together.withheld == ()
