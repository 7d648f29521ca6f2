"""Text of others reaches a terminal through one function, wherever it is printed."""

import ast
import re
from pathlib import Path

import pytest

from cli.main import _fail
from tests.cli.test_command_line import POLICY, Home
from tests.sdk.router import (
    BODY_OF_COMPLETED,
    CONTINUE,
    EXECUTE,
    SESSION,
    FakeRouter,
    Reply,
    asks_tool,
    completed,
    stream,
    turn,
)

CLI = Path(__file__).parents[2] / "cli"
OURS = re.compile("\x1b\\[(0|1|2|31|32|36)m")
UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\U000e0000-\U000e007f]"
EVIL = "A\x1b]0;PWNED\x07\x1b[35mB\x1b]52;c;cHduZWQ=\x07\x9b2J\x7f\u202eC\u200b\U000e0041\x08\x00D"
WORD = EVIL.replace("\0", "")
SHOWN = "A␛]0;PWNED␇␛[35mB"


def printed_by_itself(tree):
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="echo", value=ast.Name(id="click"))):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="write", value=ast.Attribute(attr=name))):
                if name in {"stdout", "stderr"}:
                    yield node.lineno
            case ast.Call(func=ast.Name(id="print")):
                yield node.lineno


@pytest.mark.parametrize(
    "module", sorted(CLI.rglob("*.py")), ids=lambda path: str(path.relative_to(CLI))
)
def test_nothing_is_printed_past_the_one_function(module):
    # The search writes to a pipe of ours, as JSON.
    if module.name not in ("visible.py", "search_child.py"):
        assert list(printed_by_itself(ast.parse(module.read_text()))) == []


@pytest.fixture
async def router(nursery):
    return await FakeRouter().start(nursery)


@pytest.fixture
def home(tmp_path, router):
    return Home(tmp_path, router.url)


def harmless(shown):
    text = OURS.sub("", shown.replace("\r\n", "\n"))
    return not re.search(UNSAFE, text)


async def at_a_terminal(home, *words, answers=(b"n\n",) * 3):
    code, shown = await home.run_at_a_terminal(*words, answers=list(answers))
    assert harmless(shown), shown
    return code, shown


@pytest.mark.parametrize("flags", [[], ["--no-stream"], ["--json"]])
async def test_answer_model_and_rule(home, router, flags):
    data = {**BODY_OF_COMPLETED, "message": {"role": "assistant", "content": EVIL}}
    data["routing"] = {"provider": EVIL, "model": EVIL, "matched_rule": EVIL}
    data["classification"] = {"intent": EVIL, "source": "inferred", "reason": EVIL}
    data["usage"] = {"actual_cost": EVIL, "currency": EVIL}
    end = turn("completed", data)
    said = stream(end, {"type": "text_delta", "delta": EVIL})
    router.answer("POST", EXECUTE, Reply(end) if flags == ["--no-stream"] else said)
    _, shown = await at_a_terminal(home, *flags, "hello")
    if flags != ["--json"]:
        assert shown.count(SHOWN) >= 5


async def test_errors_and_what_was_tried(home, router):
    attempts = [{"model": EVIL, "code": EVIL, "reason": EVIL + "!"}]
    error = {"code": EVIL, "message": EVIL, "details": {"attempts": attempts}}
    router.answer("POST", EXECUTE, stream(turn("error", {"error": error})))
    _, shown = await at_a_terminal(home, "hello")
    assert shown.count(SHOWN) == 5
    router.answer("POST", EXECUTE, Reply({"error": error}, 400))
    _, shown = await at_a_terminal(home, "hello")
    assert SHOWN in shown


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (EVIL, {}),
        ("shell", {"command": WORD}),
        ("write_file", {"path": WORD, "content": EVIL}),
        ("write_file", {"path": "../" + WORD, "content": EVIL}),
        ("edit_file", {"path": WORD, "old": EVIL, "new": "x"}),
        ("read_file", {"path": WORD}),
        ("read_file", {"path": "a", EVIL: 1}),
    ],
)
async def test_tool_names_paths_commands_and_faults(home, router, name, arguments):
    router.answer("POST", EXECUTE, stream(asks_tool(name, arguments)))
    router.answer("POST", CONTINUE, stream(completed()))
    _, shown = await at_a_terminal(home, "hello")
    assert SHOWN in shown


async def test_what_a_command_said_when_it_failed(home, router):
    home.write(POLICY.format(url=home.url) + 'shell = "allow"\n')
    line = "printf '\\033]0;PWNED\\007'; exit 3"
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {"command": line}, "allow")))
    router.answer("POST", CONTINUE, stream(completed()))
    _, shown = await at_a_terminal(home, "hello")
    assert "␛]0;PWNED␇" in shown


@pytest.mark.parametrize("kind", ["remote_disclosure", "cost_limit", "plan", EVIL])
async def test_approvals(home, router, kind):
    detail = {"provider": EVIL, "model": EVIL, "paths": [EVIL], "content": EVIL, "path": EVIL}
    detail |= {"estimated_cost": EVIL, "spent": EVIL, "cost_limit": EVIL, EVIL: {EVIL: EVIL}}
    asked = {"approval_id": "a1", "kind": kind, "detail": detail}
    router.answer("POST", EXECUTE, stream(turn("awaiting_approval", {"approval": asked})))
    router.answer("POST", CONTINUE, stream(completed()))
    _, shown = await at_a_terminal(home, "hello")
    assert SHOWN in shown


async def test_session_ids_and_attached_names(home, router):
    name = WORD
    (home.project / name).write_text("x")
    (home.project / "AGENTS.md").write_bytes(b"\xff")
    router.answer("POST", EXECUTE, stream(completed()))
    router.answer("POST", "/api/v1/sessions", Reply({"session": SESSION}, 201))
    _, shown = await at_a_terminal(home, f"look at @{name}")
    assert f"attached: {SHOWN}" in shown


@pytest.mark.parametrize("flags", [[], ["--json"]])
async def test_a_trace(home, router, flags):
    kinds = ["classification", "routing_decision", "context_selection", "tool_call", "approval"]
    names = "intent reason path kind decision target_type provider model cost role error tool_name"
    payload = {"plaintext": dict.fromkeys(names.split(), EVIL)}
    events = [
        {
            "event_type": kind,
            "task_type": EVIL,
            "provider": EVIL,
            "model": EVIL,
            "matched_rule": EVIL,
            "created_at": "2026-05-25T09:00:00Z",
            "payload": payload,
        }
        for kind in (*kinds, "cost", "message", EVIL)
    ]
    path = f"/api/v1/sessions/{SESSION['id']}/traces"
    said = [{"role": role, "content": {"plaintext": EVIL}} for role in ("user", EVIL)]
    detail = Reply({"session": SESSION | {"messages": said}})
    router.answer("GET", path.removesuffix("/traces"), detail)
    router.answer("GET", path, Reply({"trace": {"session_id": EVIL, "events": events}}))
    _, shown = await at_a_terminal(home, "trace", *flags, SESSION["id"])
    assert "PWNED" in shown


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--url", "http://127.0.0.1:1/" + WORD],
        ["trace", WORD],
        ["--model", WORD, "hello"],
        ["--intent", WORD, "hello"],
        ["-l", WORD, "hello"],
        ["status", WORD],
        ["status", "--" + WORD],
        ["credentials", "check", WORD],
        ["config", "--config", WORD, "path", "project"],
        ["config", "--config", WORD, "check"],
        ["start", "--config", WORD],
        ["demo-model", "--script", WORD],
    ],
)
async def test_words_and_names_of_files(home, words):
    _, shown = await at_a_terminal(home, *words)
    assert "PWNED" in shown


async def test_a_fault_of_ours_quotes_nothing_raw(capsys):
    assert _fail(RuntimeError(EVIL)) == 1
    said = capsys.readouterr().err
    assert "RuntimeError" in said
    assert SHOWN in said
    assert harmless(said)
