"""A user's way through the command line, against a real router, store and model server."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.house import AFTER, BEFORE, PATIENCE, POLICY, House, Router, smista
from tests.e2e.reading import said_in_sealed

MENDED = "I will mend it. \nMended.\n"
FIX = "fix the typo in @hello.txt"


@pytest.fixture(autouse=True)
def _as_it_was(shared: House) -> None:
    shared.hello.write_text(BEFORE)
    shared.write_policy(POLICY)


def newest(house: House) -> dict[str, Any]:
    """Return the newest session of the user, as the API shows it."""
    key = (house.project / ".smista" / "secrets").read_text().split('"')[1]
    url = f"{house.url}/api/v1"
    with httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE) as http:
        token = http.post("/auth/sign-in", headers={"X-Smista-Api-Key": key}).json()["token"]
        http.headers["Authorization"] = f"Bearer {token}"
        found = http.get("/sessions").json()["sessions"][0]["id"]
        return http.get(f"/sessions/{found}").json()["session"]


def trace_of(house: House) -> list[dict]:
    done = house.run("trace", "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_router_says_that_it_is_there_and_a_second_login_changes_nothing(
    shared: House,
) -> None:
    said = shared.run("status")
    assert said.returncode == 0
    assert f"url: {shared.url}" in said.stdout
    assert "status" not in said.stderr
    secrets = shared.project / ".smista" / "secrets"
    before = secrets.read_bytes()
    again = shared.run("login")
    assert (again.returncode, secrets.read_bytes()) == (0, before)
    assert "already logged in" in again.stdout


def test_an_approved_edit_is_made_and_the_trace_tells_the_whole_way(shared: House) -> None:
    code, screen = shared.type(FIX, answer="y")
    assert code == 0, screen
    assert shared.hello.read_text() == AFTER
    asked = screen.index("[y/N]")
    assert screen.index("-Helo, world!") < screen.index("+Hello, world!") < asked
    assert "rule edits stay here" in screen
    said = said_in_sealed(shared, newest(shared))
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant"]
    assert said[-1] == ("assistant", "Mended.")
    events = trace_of(shared)
    kinds = [event["event_type"] for event in events]
    for kind in ("message", "classification", "routing_decision", "context_selection", "cost"):
        assert kind in kinds
    payloads = {event["event_type"]: event["payload"]["plaintext"] for event in reversed(events)}
    assert payloads["classification"]["intent"] == "edit"
    assert payloads["routing_decision"]["model"] == "demo"
    assert {event["matched_rule"] for event in events if "matched_rule" in event} == {
        "edits stay here -> openai-compat:demo/demo"
    }
    chosen = [e["payload"]["plaintext"] for e in events if e["event_type"] == "context_selection"]
    assert next(c["included"] for c in chosen if c.get("path") == "hello.txt") is True
    calls = [e["payload"]["plaintext"] for e in events if e["event_type"] == "tool_call"]
    assert [(c["tool_name"], c["status"]) for c in calls] == [
        ("edit_file", "pending"),
        ("edit_file", "completed"),
    ]
    assert payloads["approval"]["decision"] == "approved"
    costs = [e["payload"]["plaintext"] for e in events if e["event_type"] == "cost"]
    assert len(costs) == 2
    assert all(float(cost["cost"]) > 0 for cost in costs)


def test_enter_alone_approves_nothing(shared: House) -> None:
    code, screen = shared.type(FIX, answer="")
    assert code == 4, screen
    assert shared.hello.read_text() == BEFORE
    assert "Then not." in screen


def test_without_a_terminal_nobody_approves(shared: House) -> None:
    done = shared.run(FIX)
    assert (done.returncode, shared.hello.read_text()) == (4, BEFORE)
    assert "no terminal" in done.stderr


def test_a_denied_tool_does_not_run(shared: House) -> None:
    done = shared.run("run the command")
    assert "ran" not in done.stdout
    statuses = [
        event["payload"]["plaintext"]["status"]
        for event in trace_of(shared)
        if event["event_type"] == "tool_call"
    ]
    assert statuses[-1:] == ["failed"]


def test_approved_in_advance_the_answer_alone_is_on_stdout_and_plain(shared: House) -> None:
    done = shared.run("--yes", FIX)
    assert (done.returncode, done.stdout) == (0, MENDED)
    assert shared.hello.read_text() == AFTER
    assert "\x1b" not in done.stdout + done.stderr


def test_what_is_piped_in_is_part_of_the_prompt(shared: House) -> None:
    done = shared.run("say", "it", typed="from the pipe\n")
    assert (done.returncode, done.stdout) == (0, "You wrote: say it\n\nfrom the pipe\n")


def test_a_prompt_that_is_refused_is_an_envelope_too(shared: House) -> None:
    done = shared.run("--json", "--model", "openai-compat:demo/nobody", "hello there")
    envelope = json.loads(done.stdout)
    assert (done.returncode, envelope["status"]) == (1, "error")
    assert envelope["data"]["error"]["code"] == "unknown_model"
    assert "nobody" in done.stderr


def test_json_is_the_last_turn_and_nothing_else(shared: House) -> None:
    done = shared.run("--json", "hello there")
    assert done.returncode == 0
    turn = json.loads(done.stdout)
    assert turn["status"] == "completed"
    assert turn["data"]["message"]["content"] == "You wrote: hello there"
    assert turn["data"]["routing"]["model"] == "demo"


def test_an_answer_may_come_in_one_piece(shared: House) -> None:
    done = shared.run("--no-stream", "hello there")
    assert (done.returncode, done.stdout) == (0, "You wrote: hello there\n")


def test_a_model_server_that_is_down_is_named_and_fails_the_command(shared: House) -> None:
    shared.extra["KEYED_KEY"] = "k" * 20
    done = shared.run("--model", "openai-compat:keyed/demo", "look at it")
    del shared.extra["KEYED_KEY"]
    assert done.returncode == 1
    assert "error: fallback_exhausted:" in done.stderr
    assert "openai-compat:keyed/demo: provider_unavailable" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words",
    [[], ["--no-such-option", "hello"], ["--model", "x", "hello"]],
)
def test_wrong_usage_is_said_without_a_traceback(shared: House, words: list[str]) -> None:
    done = shared.run(*words)
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_policy_is_wrong_configuration_and_says_where(shared: House) -> None:
    shared.write_policy(POLICY.replace('file_write = "ask"', 'file_write = "perhaps"'))
    done = shared.run("hello")
    assert done.returncode == 2
    line = POLICY.split("\n").index('file_write = "ask"') + 1
    assert f"config.toml:{line}:1: tools.permissions.file_write" in done.stderr


def test_without_a_router_every_command_says_how_to_start_one(tmp_path: Path) -> None:
    house = House(folder=tmp_path, model="http://127.0.0.1:9/v1")
    secrets = house.home / "secrets"
    secrets.write_text('router = "key"\n')
    secrets.chmod(0o600)
    house.write_policy(f'{POLICY}\n[router]\nurl = "{house.url}"\n')
    for words in (["status"], ["stop"]):
        done = house.run(*words)
        assert done.returncode == 3, words
        assert "error: no router" in done.stderr
    asked = house.run("hello")
    assert asked.returncode == 3
    assert asked.stderr.endswith(f"{house.url} (no connection); run: smista start\n")


@pytest.mark.parametrize(
    ("redirection", "code", "answer", "complaint"),
    [
        ("<&-", 0, "You wrote: hello\n", ""),
        (">&-", 0, "", ""),
        (">/dev/full", 1, "", "error: [Errno 28] No space left on device\n"),
    ],
)
def test_a_stream_that_is_closed_or_full_is_no_fault_of_ours(
    shared: House, redirection: str, code: int, answer: str, complaint: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *smista("hello")],
        cwd=shared.project,
        env=shared.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, answer), done.stderr
    assert done.stderr.endswith(complaint)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_an_interrupted_command_breaks_its_run_off_and_what_was_said_is_kept(
    shared: House,
) -> None:
    with shared.begun("never end", mark="it begins") as command:
        command.send_signal(signal.SIGINT)
        assert command.wait(PATIENCE) == 130
    session = newest(shared)
    assert session["metadata"] == {}
    assert said_in_sealed(shared, session)[-1] == ("assistant", "it begins ")
    assert session["messages"][-1]["interrupted"] is True


def test_a_router_that_stands_still_is_reported_in_time(router: Router) -> None:
    house = router.house
    house.write_policy(f"{POLICY}\n[router]\nrequest_timeout_ms = 1\n")
    router.process.send(signal.SIGSTOP)
    try:
        silent = house.run("hello")
    finally:
        router.process.send(signal.SIGCONT)
    assert silent.returncode == 3
    assert f"no router answers at {house.url} (it is silent)" in silent.stderr
    assert house.run("status").returncode == 0
