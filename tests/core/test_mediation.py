"""Tool calls: permissions, narrowing, plan mode, restricted paths, and arguments nobody trusts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.arguments import parse_arguments
from smista.core.decision import Refusal
from smista.core.errors import PermissionExpansion
from smista.core.git_calls import git_network, git_writes
from smista.core.history import Role
from smista.core.intents import Mode
from smista.core.mediation import Verdict, announced, mediate, touched_paths
from smista.core.permissions import check_permissions, mode_of, narrowed
from smista.core.pipeline import decide
from smista.core.snapshot import Snapshot
from smista.core.tools import BY_NAME, CLIENT_TOOLS, TOOLS
from tests.core.builders import decided, model, refused, request, said, snapshot

MODES = st.sampled_from(["allow", "ask", "deny"])
KEYS = ("file_read", "file_write", "shell", "network", "git", "memory", "skill")


def verdict(name: str, arguments: dict[str, Any], taken: Snapshot) -> Verdict:
    return mediate(name, arguments, decided(taken), taken)


def with_modes(**modes: str) -> Snapshot:
    return snapshot(request=request(tools={"permissions": modes}))


TABLE = {
    "read_file": ("file_read", ["path"], ["start_line", "line_count"]),
    "list_files": ("file_read", [], ["path", "glob", "limit"]),
    "search_files": ("file_read", ["pattern"], ["path", "glob", "limit"]),
    "write_file": ("file_write", ["path", "content"], []),
    "edit_file": ("file_write", ["path", "old", "new"], ["replace_all"]),
    "shell": ("shell", ["command"], ["timeout_ms"]),
    "git": ("git", ["arguments"], []),
    "fetch_url": ("network", ["url"], []),
    "memory": ("memory", ["operation", "scope"], ["key", "value"]),
    "use_skill": ("skill", ["name"], []),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_tools(name: str):
    permission, required, optional = TABLE[name]
    tool = BY_NAME[name]
    assert tool.permission == permission
    assert tool.parameters["required"] == required
    assert set(tool.parameters["properties"]) == {*required, *optional}
    assert len(TOOLS) == len(TABLE)


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ({}, Mode.ASK),
        ({"file_write": "allow"}, Mode.ALLOW),
        ({"file_write": "allow", "write_file": "ask"}, Mode.ASK),
        ({"file_write": "deny", "write_file": "allow"}, Mode.DENY),
        ({"write_file": "allow"}, Mode.ALLOW),
        ({"shell": "deny"}, Mode.ASK),
    ],
)
def test_the_stricter_of_own_name_and_key_wins(modes: dict[str, str], expected: Mode):
    assert verdict("write_file", {}, with_modes(**modes)).mode is expected


@pytest.mark.parametrize("name", ["memory", "use_skill"])
def test_memory_and_skills_are_allowed_unless_set(name: str):
    assert mode_of(BY_NAME[name], {}) is Mode.ALLOW
    assert mode_of(BY_NAME[name], {BY_NAME[name].permission: Mode.DENY}) is Mode.DENY


def test_denied_tools_are_not_offered_and_refused_when_called():
    taken = with_modes(shell="deny", fetch_url="deny")
    offered = {tool.name for tool in decided(taken).prompt.tools}
    assert offered == CLIENT_TOOLS - {"shell", "fetch_url"}
    assert verdict("shell", {"command": "ls"}, taken).mode is Mode.DENY


def test_a_tool_the_client_lacks_is_neither_offered_nor_allowed():
    taken = snapshot(offered_tools=frozenset({"read_file"}))
    assert announced(decided(taken)) == {"read_file"}
    assert verdict("shell", {"command": "ls"}, taken).mode is Mode.DENY


def test_an_unknown_tool_is_denied_with_the_names_there_are():
    found = verdict("rm_rf", {}, snapshot())
    assert found.mode is Mode.DENY
    assert "read_file" in found.reason


@pytest.mark.parametrize(
    ("name", "arguments", "mode"),
    [
        ("write_file", {"path": "a", "content": ""}, Mode.DENY),
        ("edit_file", {"path": "a", "old": "", "new": ""}, Mode.DENY),
        ("shell", {"command": "ls"}, Mode.DENY),
        ("git", {"arguments": ["commit"]}, Mode.DENY),
        ("git", {"arguments": ["status"]}, Mode.ALLOW),
        ("read_file", {"path": "a"}, Mode.ALLOW),
    ],
)
def test_plan_mode_changes_nothing(name: str, arguments: dict[str, Any], mode: Mode):
    allowed = dict.fromkeys(KEYS, "allow")
    made = request(tools={"permissions": allowed})
    taken = snapshot(request=made, plan_mode=True)
    assert verdict(name, arguments, taken).mode is mode
    assert not {"write_file", "edit_file", "shell"} & announced(decided(taken))


@pytest.mark.parametrize(
    ("name", "arguments", "mode"),
    [
        ("shell", {"command": "ls"}, Mode.ASK),
        ("fetch_url", {"url": "https://x"}, Mode.ASK),
        ("git", {"arguments": ["push"]}, Mode.ASK),
        ("git", {"arguments": ["diff"]}, Mode.ALLOW),
        ("read_file", {"path": "a"}, Mode.ALLOW),
    ],
)
def test_restricted_content_in_view_raises_what_could_carry_it_away(
    name: str, arguments: dict[str, Any], mode: Mode
):
    made = request(tools={"permissions": dict.fromkeys(KEYS, "allow")})
    history = (said("1", "secret", Role.ASSISTANT, restricted=True),)
    taken = snapshot(request=made, history=history)
    found = verdict(name, arguments, taken)
    assert found.mode is mode
    assert found.restricted_in_view
    free = verdict(name, arguments, snapshot(request=made))
    assert (free.mode, free.restricted_in_view) == (Mode.ALLOW, False)


def test_no_network_denies_the_network_tools_and_network_git():
    made = request(
        tools={"permissions": dict.fromkeys(KEYS, "allow")}, preferences={"no_network": True}
    )
    taken = snapshot(request=made)
    assert "fetch_url" not in announced(decided(taken))
    assert verdict("fetch_url", {"url": "https://x"}, taken).mode is Mode.DENY
    assert verdict("git", {"arguments": ["fetch"]}, taken).mode is Mode.DENY
    assert verdict("git", {"arguments": ["log"]}, taken).mode is Mode.ALLOW


RESTRICTED_CALLS = [
    ("read_file", {"path": ".env"}),
    ("read_file", {"path": "x/../.ENV"}),
    ("list_files", {"path": "secrets"}),
    ("search_files", {"pattern": "x", "glob": "**/.env"}),
    ("shell", {"command": "cat .env"}),
    ("shell", {"command": "A=.env;cat $A"}),
    ("shell", {"command": 'c""at ".e"nv'}),
    ("shell", {"command": "dd if=secrets/x"}),
    ("git", {"arguments": ["show", "HEAD:.env"]}),
    ("git", {"arguments": ["blame", "--", "secrets/x"]}),
    ("fetch_url", {"url": "file:///project/.env"}),
]


@pytest.mark.parametrize(("name", "arguments"), RESTRICTED_CALLS)
def test_a_call_for_a_restricted_path_goes_out_only_where_a_local_model_can_go_on(
    name: str, arguments: dict[str, Any]
):
    privacy = {"restricted_paths": [".env", "secrets/**"]}
    there = {"default": {"model": "openai/r"}}
    both = {"default": {"model": "openai/r", "fallbacks": ["ollama/small"]}}
    models = (model("openai/r"), model("ollama/small"))
    alone = snapshot(request=request(routing=there, privacy=privacy), models=models)
    assert verdict(name, arguments, alone).mode is Mode.DENY
    backed = snapshot(request=request(routing=both, privacy=privacy), models=models)
    found = verdict(name, arguments, backed)
    assert found.mode is Mode.ASK
    assert found.local_from_now
    local = snapshot(request=request(privacy=privacy))
    assert verdict(name, arguments, local).mode is Mode.ASK


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("git", {"arguments": ["show", "HEAD~1"]}),
        ("git", {"arguments": ["diff", "main~12..HEAD", "--", "src/a"]}),
        ("shell", {"command": "cargo test --all -- --nocapture && ls ./src"}),
        ("fetch_url", {"url": "https://example.org/environment"}),
    ],
)
def test_ordinary_calls_name_nothing_restricted(name: str, arguments: dict[str, Any]):
    made = request(privacy={"restricted_paths": [".env", "*.pem", "secrets/**"]})
    assert verdict(name, arguments, snapshot(request=made)).local_from_now is None


def test_listing_the_whole_tree_is_judged_by_its_result():
    made = request(
        routing={"default": {"model": "openai/r"}}, privacy={"restricted_paths": [".env"]}
    )
    taken = snapshot(request=made, models=(model("openai/r"),))
    assert verdict("list_files", {"path": "."}, taken).mode is Mode.ASK


def test_a_command_that_names_too_much_to_check_counts_as_restricted():
    made = request(privacy={"restricted_paths": [".env"]})
    command = " ".join(f"f{n}" for n in range(5_000))
    found = verdict("shell", {"command": command}, snapshot(request=made))
    assert "too many" in (found.local_from_now or "")


@pytest.mark.parametrize(
    ("arguments", "writes", "network"),
    [
        (["status"], False, False),
        (["--no-pager", "log", "-p"], False, False),
        (["branch"], False, False),
        (["branch", "-D", "x"], True, False),
        (["branch", "new"], True, False),
        (["tag", "-l"], False, False),
        (["tag", "v1"], True, False),
        (["stash"], True, False),
        (["stash", "list"], False, False),
        (["remote", "-v"], False, False),
        (["remote", "update"], True, True),
        (["diff", "--output=x"], True, False),
        (["diff", "--outp=x"], True, False),
        (["diff", "--", "x"], False, False),
        (["log", "--oneline"], False, False),
        (["grep", "-O", "x"], True, False),
        (["log", "--ext-diff"], True, False),
        (["commit", "-m", "x"], True, False),
        (["push"], True, True),
        (["fetch"], True, True),
        (["-C", "x", "status"], True, True),
        (["-c", "alias.x=!sh", "x"], True, True),
        (["anything"], True, True),
        ([], True, True),
    ],
)
def test_what_git_may_do(arguments: list[str], writes: bool, network: bool):
    assert (git_writes(arguments), git_network(arguments)) == (writes, network)


def test_a_rule_tightens_and_adds_but_never_loosens():
    rules = [
        {
            "name": "r",
            "model": "ollama/small",
            "required_permissions": {"permissions": {"shell": "deny", "git": "ask"}},
        }
    ]
    made = request(
        routing={"rules": rules}, tools={"permissions": {"shell": "ask", "file_read": "allow"}}
    )
    decision = decided(snapshot(request=made))
    assert decision.permissions == {"file_read": "allow", "git": "ask", "shell": "deny"}


def test_a_rule_that_loosens_is_refused_naming_tool_and_rule():
    rules = [
        {
            "name": "r",
            "model": "ollama/small",
            "required_permissions": {"permissions": {"shell": "allow"}},
        }
    ]
    made = request(routing={"rules": rules}, tools={"permissions": {"shell": "deny"}})
    refusal = refused(snapshot(request=made))
    assert refusal.error.code == "permission_expansion"
    assert refusal.error.details == {"tool": "shell", "rule": "r"}
    with pytest.raises(PermissionExpansion):
        check_permissions(made.policy)


@given(st.dictionaries(st.sampled_from(KEYS), MODES), st.dictionaries(st.sampled_from(KEYS), MODES))
def test_narrowing_never_widens(base: dict[str, str], tightened: dict[str, str]):
    rule = {
        "name": "r",
        "model": "ollama/small",
        "required_permissions": {"permissions": tightened},
    }
    policy = request(routing={"rules": [rule]}, tools={"permissions": base}).policy
    modes = narrowed(policy, policy.routing.rules[0])
    for key, mode in policy.tools.permissions.items():
        assert modes[key].strictness >= mode.strictness
    assert set(modes) == {*base, *tightened}
    loosened = any(
        k in base and Mode(m).strictness < Mode(base[k]).strictness for k, m in tightened.items()
    )
    made = snapshot(request=request(routing={"rules": [rule]}, tools={"permissions": base}))
    assert isinstance(decide(made), Refusal) == loosened


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("list_files", "", {}),
        ("list_files", "null", {}),
        ("list_files", " {} ", {}),
        ("read_file", '{"path":"a","start_line":3}', {"path": "a", "start_line": 3}),
        ("git", '{"arguments":["log"]}', {"arguments": ["log"]}),
        ("edit_file", '{"path":"a","old":"b","new":"c","replace_all":true}', None),
    ],
)
def test_good_arguments(name: str, text: str, found: dict[str, Any] | None):
    assert parse_arguments(name, text) == (json.loads(text) if found is None else found)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("read_file", "", "missing 'path'"),
        ("read_file", "{", "not valid JSON"),
        ("read_file", "[1]", "one JSON object"),
        ("read_file", '{"path":NaN}', "not valid JSON"),
        ("read_file", "[" * 100_000, "nested too deeply"),
        ("read_file", '{"path":1}', "'path' must be a string"),
        ("read_file", '{"path":"a","start_line":"1"}', "an integer"),
        ("read_file", '{"path":"a","start_line":0}', "at least 1"),
        ("read_file", '{"path":"a","start_line":true}', "an integer"),
        ("read_file", '{"path":"a","mode":"x"}', "unknown 'mode'"),
        ("git", '{"arguments":"log"}', "a list of strings"),
        ("git", '{"arguments":["log",1]}', "a list of strings"),
        ("edit_file", '{"path":"a","old":"b","new":"c","replace_all":1}', "true or false"),
        ("memory", '{"operation":"burn","scope":"user"}', "one of record, update, forget"),
        ("nonsense", "{}", "there is no tool 'nonsense'"),
    ],
)
def test_bad_arguments_become_a_text_for_the_model(name: str, text: str, says: str):
    found = parse_arguments(name, text)
    assert isinstance(found, str)
    assert says in found


@given(st.sampled_from(sorted(BY_NAME)), st.text() | st.just("{}"))
def test_any_text_is_arguments_or_an_error(name: str, text: str):
    assert isinstance(parse_arguments(name, text), dict | str)


def test_only_file_tools_touch_paths():
    assert touched_paths("edit_file", {"path": "a"}) == ("a",)
    assert touched_paths("list_files", {"path": "a"}) == ()
    assert touched_paths("read_file", {"path": 1}) == ()
