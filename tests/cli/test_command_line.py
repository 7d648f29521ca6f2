"""The command itself, as a process: start-up, exit codes, one-shot runs against a router."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from smista.net import create_client
from tests.sdk.router import (
    CONTINUE,
    DETAIL,
    EXECUTE,
    SECRET,
    SESSION,
    FakeRouter,
    Reply,
    asks_tool,
    completed,
    stream,
    turn,
)

ROOT = Path(__file__).parents[2]
POLICY = """
[router]
url = "{url}"
auth_source = "env"
[providers."openai-compat:demo"]
[routing.default]
model = "openai-compat:demo/m"
[local_preferences]
encrypt_sessions = false
[tools.permissions]
file_read = "allow"
"""


class Home:
    """A user with a project and a configuration."""

    def __init__(self, tmp_path, url):
        self.path = tmp_path / "a home"
        self.project = self.path / "my project"
        self.project.mkdir(parents=True)
        self.smista = self.path / "smista"
        self.smista.mkdir()
        (self.smista / "run").mkdir(mode=0o700)
        (self.smista / "run" / "router.secret").write_text(SECRET)
        self.url = url
        self.write(POLICY.format(url=url))

    def write(self, policy):
        (self.smista / "config.toml").write_text(policy)

    @property
    def environ(self):
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "SMISTA_HOME": str(self.smista),
            "SMISTA_API_KEY": "sk-canary",
            "PYTHONPATH": str(ROOT),
        }

    def command(self, *words):
        return [sys.executable, "-P", "-m", "smista", *words]

    async def run(self, *words, stdin=b""):
        return await trio.run_process(
            self.command(*words),
            cwd=self.project,
            env=self.environ,
            stdin=stdin,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )

    async def run_at_a_terminal(self, *words, answers):
        """Run with a terminal of its own; give the next of *answers* at each question."""
        master, slave = pty.openpty()
        process = await trio.lowlevel.open_process(
            self.command(*words),
            cwd=self.project,
            env=self.environ,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        shown, left = b"", list(answers)
        async with trio.lowlevel.FdStream(master) as terminal:
            try:
                async for piece in terminal:
                    shown += piece
                    if left and shown.count(b"[y/N]") > len(answers) - len(left):
                        await terminal.send_all(left.pop(0))
            except trio.BrokenResourceError:
                pass  # how a terminal says that its last user has left
            await process.wait()
        return process.returncode, shown.decode()


@pytest.fixture
async def router(nursery):
    return await FakeRouter().start(nursery)


@pytest.fixture
def home(tmp_path, router):
    return Home(tmp_path, router.url)


@pytest.fixture
def lonely(tmp_path):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield Home(tmp_path, f"http://127.0.0.1:{reserved.getsockname()[1]}")


def imports_of(*words, home=None, code=0):
    at = {} if home is None else {"SMISTA_HOME": str(home), "HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-P", "-m", "smista", *words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **at},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    return done.stdout, {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_said_before_anything_heavy_is_imported(flag):
    said, imported = imports_of(flag)
    assert said.startswith("smista ")
    assert not imported & {"trio", "asyncclick", "pydantic", "httpx", "logging", "cli.main"}


def test_help_lists_the_commands():
    said, imported = imports_of("--help")
    for word in ("start", "stop", "status", "login", "trace", "demo-model", "run --help"):
        assert word in said
    assert "run-prompt" not in said
    assert not imported & {"pydantic", "httpx", "keyring", "rich", "prompt_toolkit", "actors"}


def test_the_help_of_a_prompt_teaches_and_imports_little():
    said, imported = imports_of("run", "--help")
    for word in ("--json", "--yes", "--model", "--skill", "--plan", "git diff | smista"):
        assert word in said
    assert not imported & {"httpx", "keyring", "rich", "prompt_toolkit", "surrealdb", "actors"}


def test_the_status_imports_no_more_than_it_takes(tmp_path):
    _, imported = imports_of("stop", home=tmp_path, code=3)
    assert not imported & {"pydantic", "httpx", "keyring", "rich", "prompt_toolkit", "actors"}
    _, imported = imports_of("status", "--url", "http://127.0.0.1:1", home=tmp_path, code=3)
    heavy = {"keyring", "rich", "prompt_toolkit", "surrealdb", "quart", "nacl", "h2", "actors"}
    assert not imported & heavy
    assert len(imported) < 900


async def test_a_module_planted_in_the_current_folder_is_not_imported(home):
    for name in ("trio.py", "cli.py", "smista.py", "asyncclick.py"):
        (home.project / name).write_text("raise SystemExit(99)")
    assert (await home.run("status")).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["start", "--bogus"], "--bogus"),
        (["status", "extra"], "extra"),
        (["statsu"], "status"),
        (["-l", "loud", "status"], "loud"),
        (["--enforce-keyring", "status"], "keyring"),
        (["--yes", "--deny-tools", "hello"], "exclude"),
        (["--yes=shell", "--deny-tools", "hello"], "exclude"),
        (["--yes=everything", "hello"], "everything"),
        (["trace", "nonsense"], "no session id"),
        (["--session", "nonsense", "hello"], "no session id"),
        (["--continue", "--session", "x", "hello"], "exclude"),
        (["demo-model", "--script", "bad.toml"], "bad.toml"),
        (["demo-model", "--script", "gone.toml"], "gone.toml"),
        (["--model", "nomodel", "hello"], "provider/model"),
        (["--intent", "dance", "hello"], "dance"),
        ([], "no prompt"),
    ],
)
async def test_bad_usage_is_two(lonely, words, said):
    (lonely.project / "bad.toml").write_text("surprise = 1\n")
    done = await lonely.run(*words)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert "run-prompt" not in done.stderr.decode()
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr


async def test_a_bad_configuration_is_two_and_all_of_it_is_said(lonely):
    lonely.write("[routing]\nsurprise = 1\n[router]\nauto_start = 'maybe'\n")
    done = await lonely.run("hello")
    assert done.returncode == 2
    assert b"routing.surprise" in done.stderr
    assert b"router.auto_start" in done.stderr


@pytest.mark.parametrize("words", [["status"], ["login"], ["hello"], ["trace"]])
async def test_without_a_router_it_is_three(lonely, words):
    lonely.write(POLICY.format(url=lonely.url).replace('auth_source = "env"', ""))
    done = await lonely.run(*words)
    assert done.returncode == 3
    assert lonely.url.encode() in done.stderr


async def test_stopping_nothing_is_three(lonely):
    done = await lonely.run("stop")
    assert done.returncode == 3
    assert b"no router is running" in done.stderr


async def test_status_says_version_and_whether_new_sessions_are_encrypted(home):
    done = await home.run("status")
    assert done.returncode == 0
    assert b"9.9.9" in done.stdout
    assert b"encryption: off" in done.stdout
    home.write(POLICY.format(url=home.url).replace("encrypt_sessions = false", ""))
    assert b"encryption: new sessions are encrypted" in (await home.run("status")).stdout


async def test_a_broken_configuration_hides_no_router(home):
    home.write(POLICY.format(url=home.url) + "[unknown]\n")
    done = await home.run("status")
    assert done.returncode == 0
    assert b"unknown" in done.stderr
    assert b"smista config check" in done.stderr
    assert (await home.run("stop")).returncode == 3
    assert (await home.run("config", "check", "global")).returncode == 2
    assert (await home.run("hello")).returncode == 2


async def test_status_says_whose_router_answers(home, router):
    router.secret = "somebody else's"
    done = await home.run("status")
    assert done.returncode == 3
    assert b"9.9.9" in done.stdout
    assert b"did not prove that it is your router" in done.stderr


@pytest.mark.parametrize("words", [["hello"], ["login"], ["apikey", "new"], ["trace"]])
async def test_no_key_and_no_prompt_goes_to_somebody_elses_router(home, router, words):
    router.secret = None
    done = await home.run(*words, stdin=b"some content")
    assert done.returncode == 3
    assert b"smista start" in done.stderr
    assert {asked.path for asked in router.asked} == {"/status"}
    assert "canary" not in str(router.asked)
    assert "content" not in str(router.asked[0].body)


async def test_login_keeps_the_key_and_does_so_once(home, router):
    home.write(POLICY.format(url=home.url).replace('auth_source = "env"', ""))
    answer = {"user_id": "u-1", "api_key": "sk-new-canary"}
    router.answer("POST", "/api/v1/auth/bootstrap", Reply(answer, 201))
    first, second = await home.run("login"), await home.run("login")
    assert (first.returncode, second.returncode) == (0, 0)
    assert b"u-1" in first.stdout
    assert b"already logged in" in second.stdout
    assert "/api/v1/auth/sign-in" in [asked.path for asked in router.asked]
    assert b"canary" not in first.stdout + first.stderr + second.stdout + second.stderr
    assert "sk-new-canary" in (home.project / ".smista" / "secrets").read_text()


async def test_a_key_that_the_router_does_not_know_is_replaced_when_asked(home, router):
    home.write(POLICY.format(url=home.url).replace('auth_source = "env"', ""))
    for key in ("sk-old", "sk-new"):
        answer = Reply({"user_id": "u", "api_key": key}, 201)
        router.answer("POST", "/api/v1/auth/bootstrap", answer)
    unknown = Reply({"error": {"code": "invalid_api_key", "message": "m"}}, 401)
    await home.run("login")
    router.answer("POST", "/api/v1/auth/sign-in", unknown)
    refused = await home.run("login")
    assert refused.returncode == 2
    assert b"login --again" in refused.stderr
    assert (await home.run("login", "--again")).returncode == 0
    assert "sk-new" in (home.project / ".smista" / "secrets").read_text()


async def test_a_run_that_fails_ends_its_line_and_names_its_session(home, router):
    said = [{"type": "text_delta", "delta": "half"}]
    router.answer("POST", EXECUTE, *[Reply(events=said)] * 9)
    done = await home.run("hello")
    assert done.returncode == 3
    assert done.stdout == b"half\n"
    assert SESSION["id"].encode() in done.stderr


async def test_an_empty_answer_is_said(home, router):
    router.answer("POST", EXECUTE, stream(completed("")))
    assert b"the answer is empty" in (await home.run("hello")).stderr


async def test_a_pipe_that_does_not_end_is_worth_a_word(lonely):
    process = await opened(lonely, "hello", stdin=subprocess.PIPE)
    async with process.stdin, process.stderr:
        with trio.fail_after(20):
            said = await process.stderr.receive_some()
        process.send_signal(signal.SIGTERM)
        await process.wait()
    assert b"waiting for the end of stdin" in said


async def test_before_login_the_user_is_told_to_log_in(home):
    home.write(POLICY.format(url=home.url).replace('auth_source = "env"', ""))
    done = await home.run("hello")
    assert done.returncode == 2
    assert b"smista login" in done.stderr


async def test_a_prompt_puts_the_answer_on_stdout_and_all_else_on_stderr(home, router):
    (home.project / "a.py").write_text("x = 1\n")
    delta = {"type": "text_delta", "delta": "hello\u2028\x1b"}
    router.answer("POST", EXECUTE, stream(completed(), delta))
    done = await home.run("look", "at", "@a.py", stdin=b"and this\n")
    assert done.returncode == 0
    assert done.stdout.decode() == "hello\u2028\x1b\n"
    assert "rule all -> demo/m" in done.stderr.decode()
    assert "attached: a.py" in done.stderr.decode()
    (asked,) = router.to(EXECUTE)
    assert asked.body["input"] == {"text": "look at @a.py\n\nand this"}
    assert asked.body["attachments"]["files"][0]["content"] == "x = 1\n"
    assert asked.body["policy"]["routing"]["default"]["model"] == "openai-compat:demo/m"
    assert asked.body["workspace"]["root"] == str(home.project)
    created = router.to("/api/v1/sessions")[0].body
    assert created == {"title": "look at @a.py", "scope": str(home.project)}


async def test_the_token_of_a_command_is_revoked_at_its_end(home, router):
    router.answer("POST", EXECUTE, stream(completed()))
    router.answer("POST", "/api/v1/auth/sign-out", Reply({"revoked": True}))
    assert (await home.run("hello")).returncode == 0
    assert router.asked[-1].path == "/api/v1/auth/sign-out"


async def test_a_prompt_that_is_no_text_is_bad_usage(lonely):
    done = await lonely.run(b"hello \xff")
    assert done.returncode == 2
    assert b"not valid text" in done.stderr


async def test_a_key_that_is_no_key_is_not_quoted(home, monkeypatch):
    monkeypatch.setattr(Home, "environ", {**home.environ, "SMISTA_API_KEY": "sk-canary-é"})
    done = await home.run("hello")
    assert done.returncode == 2
    assert b"SMISTA_API_KEY" in done.stderr
    assert b"canary" not in done.stderr


async def test_without_any_stdin_the_words_are_the_prompt(home, router):
    router.answer("POST", EXECUTE, stream(completed()))
    closed = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *home.command("hello")]
    done = await trio.run_process(closed, cwd=home.project, env=home.environ, check=False)
    assert done.returncode == 0
    assert router.to(EXECUTE)[0].body["input"] == {"text": "hello"}


async def test_run_is_the_same_in_full(home, router):
    router.answer("POST", EXECUTE, stream(completed()))
    assert (await home.run("run", "--intent", "edit", "hello")).returncode == 0
    assert router.to(EXECUTE)[0].body["input"] == {"text": "hello", "command": "edit"}


async def test_a_named_file_goes_along_once(home, router):
    (home.project / "my file").write_text("x")
    (home.project / "a.py").write_text("y")
    router.answer("POST", EXECUTE, stream(completed()))
    done = await home.run("--file", "my file", "--file", "./a.py", "see @a.py")
    assert done.returncode == 0
    files = router.to(EXECUTE)[0].body["attachments"]["files"]
    assert [(file["path"], file["required"]) for file in files] == [
        ("my file", True),
        ("a.py", True),
    ]
    assert b"attached: my file, a.py" in done.stderr


@pytest.mark.parametrize("name", ["gone", "binary", ".", ".smista/secrets"])
async def test_a_named_file_that_cannot_go_along_is_wrong_usage(home, router, name):
    (home.project / "binary").write_bytes(b"\xff")
    (home.project / ".smista").mkdir()
    (home.project / ".smista" / "secrets").write_text("router = 'canary'")
    done = await home.run("--file", name, "hello")
    assert done.returncode == 2
    assert name.encode() in done.stderr
    assert router.to(EXECUTE) == []


async def test_what_is_piped_in_attaches_nothing_and_neither_do_paths_outside(home, router):
    (home.project / "mine.txt").write_text("mine")
    (home.project / "secret.txt").write_text("canary")
    (home.path / "private.txt").write_text("canary")
    router.answer("POST", EXECUTE, stream(completed()))
    words = ("read", "@mine.txt", "@../private.txt")
    done = await home.run(*words, stdin=b"and now send @secret.txt please")
    assert done.returncode == 0
    sent = router.to(EXECUTE)[0].body
    assert [file["path"] for file in sent["attachments"]["files"]] == ["mine.txt"]
    assert "canary" not in str(sent)
    assert f"not attached: {home.path}/private.txt, secret.txt" in done.stderr.decode()


async def test_at_a_terminal_a_path_outside_is_asked_about(home, router):
    (home.path / "private.txt").write_text("theirs")
    for typed, sent in ((b"y\n", ["theirs"]), (b"\n", [])):
        router.answer("POST", EXECUTE, stream(completed()))
        _, shown = await home.run_at_a_terminal("read @../private.txt", answers=[typed])
        assert "attach these files?" in shown
        files = router.to(EXECUTE)[-1].body["attachments"]["files"]
        assert [file["content"] for file in files] == sent


OLDER = "018f9c3e-0000-7c4d-8e5f-1a2b3c4d5e6f"


async def test_a_session_goes_on(home, router):
    router.answer("POST", EXECUTE.replace(SESSION["id"], OLDER), stream(completed()))
    found = Reply({"session": {**DETAIL, "id": OLDER}})
    router.answer("GET", f"/api/v1/sessions/{OLDER}", found, found)
    done = await home.run("--session", OLDER, "and now?")
    assert done.returncode == 0
    assert router.to("/api/v1/sessions") == []  # the id was given in full
    assert OLDER.encode() in done.stderr


async def test_the_newest_session_of_the_project_goes_on(home, router):
    archived = {**SESSION, "id": OLDER, "archived": True}
    router.answer("GET", "/api/v1/sessions", Reply({"sessions": [archived, SESSION]}))
    router.answer("POST", EXECUTE, stream(completed()))
    done = await home.run("--continue", "and now?")
    assert done.returncode == 0
    (listed,) = router.to("/api/v1/sessions")
    assert listed.method == "GET"
    assert "scope=" in listed.query
    assert b"going on in: t" in done.stderr


async def test_the_beginning_of_an_id_will_do_if_it_is_the_only_one(home, router):
    router.answer(
        "GET", "/api/v1/sessions", *[Reply({"sessions": [SESSION, SESSION | {"id": OLDER}]})] * 3
    )
    router.answer("POST", EXECUTE, stream(completed()))
    assert (await home.run("--session", "018F9C3E-7a2b", "and now?")).returncode == 0
    several = await home.run("--session", "018f9c3e", "and now?")
    assert several.returncode == 2
    assert f"  {OLDER}  t" in several.stderr.decode()
    assert (await home.run("--session", "018f9c3f", "and now?")).returncode == 2


def waiting(router, name="write_file", **arguments):
    paused = asks_tool(name, arguments)
    run = {"run_id": "r", **paused}
    detail = {**DETAIL, "metadata": {"run": run}}
    router.answer("GET", f"/api/v1/sessions/{SESSION['id']}", Reply({"session": detail}))
    router.answer("GET", "/api/v1/sessions", Reply({"sessions": [SESSION]}))


async def test_what_a_lost_run_waits_for_is_answered_first(home, router):
    waiting(router, path="a", content="x")
    router.answer("POST", CONTINUE, stream(completed("mended")))
    router.answer(
        "POST", EXECUTE, stream(completed("more"), {"type": "text_delta", "delta": "more"})
    )
    done = await home.run("--continue", "--yes", "and now?")
    assert (done.returncode, done.stdout) == (0, b"more\n")
    assert b"waits for an answer" in done.stderr
    assert (home.project / "a").read_text() == "x"
    posted = [asked.path for asked in router.asked if asked.path in (CONTINUE, EXECUTE)]
    assert posted == [CONTINUE, EXECUTE]


async def test_without_words_a_lost_run_is_seen_through(home, router):
    waiting(router, path="a", content="x")
    router.answer("POST", CONTINUE, stream(completed()))
    assert (await home.run("--continue", "--yes")).returncode == 0
    assert router.to(EXECUTE) == []


async def test_without_words_and_without_a_lost_run_there_is_nothing_to_do(home, router):
    router.answer("GET", "/api/v1/sessions", Reply({"sessions": [SESSION]}))
    done = await home.run("--continue")
    assert done.returncode == 2
    assert b"write a prompt" in done.stderr


async def test_a_plan_is_asked_for_by_a_flag(home, router):
    router.answer("POST", EXECUTE, stream(completed()))
    assert (await home.run("--plan", "split it")).returncode == 0
    assert router.to(EXECUTE)[0].body["input"] == {"text": "split it", "command": "plan"}
    assert (await home.run("--plan", "--intent", "edit", "split it")).returncode == 2


async def test_a_skill_is_invoked_by_name_and_the_others_are_offered(home, router):
    for name in ("release", "review"):
        folder = home.project / ".agents" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\ndo {name}\n")
    router.answer("POST", EXECUTE, stream(completed()))
    assert (await home.run("--skill", "release", "go")).returncode == 0
    sent = router.to(EXECUTE)[0].body["attachments"]
    assert [skill["name"] for skill in sent["invoked_skills"]] == ["release"]
    assert [skill["name"] for skill in sent["available_skills"]] == ["release", "review"]
    unknown = await home.run("--skill", "relase", "go")
    assert unknown.returncode == 2
    assert b"release" in unknown.stderr


async def test_in_a_hook_of_git_all_is_as_elsewhere(home, router, monkeypatch):
    git = partial(subprocess.run, cwd=home.project, check=True)
    git(["git", "init", "-q", "-b", "main"])
    git(
        [
            "git",
            "-c",
            "user.name=n",
            "-c",
            "user.email=e",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "m",
        ]
    )
    (home.project / "a.txt").write_text("x\n")
    inside = {"GIT_DIR": ".git", "GIT_INDEX_FILE": "elsewhere", "GIT_WORK_TREE": "/"}
    monkeypatch.setattr(Home, "environ", {**home.environ, **inside})
    router.answer("POST", EXECUTE, stream(asks_tool("git", {"arguments": ["status", "--short"]})))
    router.answer("POST", CONTINUE, stream(completed()))
    done = await home.run("--yes=git", "hello")
    assert done.returncode == 0
    workspace = router.to(EXECUTE)[0].body["workspace"]
    assert workspace["git_branch"] == "main"
    assert "+++ b/a.txt" in workspace["git_diff"]
    assert "?? a.txt" in router.to(CONTINUE)[0].body["data"]["results"][0]["content"]


async def test_without_a_session_there_is_nothing_to_go_on_in(home, router):
    router.answer("GET", "/api/v1/sessions", Reply({"sessions": []}))
    done = await home.run("--continue", "and now?")
    assert done.returncode == 1
    assert b"no session" in done.stderr


async def test_denied_tools_are_denied_to_the_router_and_here(home, router):
    (home.project / "a").write_text("x")
    router.answer("POST", EXECUTE, stream(asks_tool("read_file", {"path": "a"}, "allow")))
    router.answer("POST", CONTINUE, stream(completed()))
    done = await home.run("--deny-tools", "hello")
    assert done.returncode == 4
    permissions = router.to(EXECUTE)[0].body["policy"]["tools"]["permissions"]
    assert set(permissions.values()) == {"deny"}
    assert {"file_read", "file_write", "shell", "git", "network", "memory"} <= set(permissions)
    assert router.to(CONTINUE)[0].body["data"]["results"][0]["is_error"]


async def test_json_prints_the_envelope_and_nothing_else(home, router):
    router.answer("POST", EXECUTE, stream(completed(), {"type": "text_delta", "delta": "x"}))
    done = await home.run("--json", "--model", "openai-compat:demo/m", "--intent", "edit", "hello")
    assert json.loads(done.stdout) == completed()
    assert router.to(EXECUTE)[0].body["input"] == {
        "text": "hello",
        "command": "edit",
        "explicit_model": "openai-compat:demo/m",
    }


async def test_without_stream_the_answer_comes_whole(home, router):
    router.answer("POST", EXECUTE, Reply(completed("all at once")))
    done = await home.run("--no-stream", "hello")
    assert (done.returncode, done.stdout) == (0, b"all at once\n")
    assert router.to(EXECUTE)[0].headers["accept"] == "application/json"


@pytest.mark.parametrize(("code", "left"), [("no_route", 1), ("override_not_allowed", 4)])
async def test_a_run_that_ends_in_an_error_says_its_code(home, router, code, left):
    error = {"error": {"code": code, "message": "m"}}
    router.answer("POST", EXECUTE, stream(turn("error", error)))
    done = await home.run("hello")
    assert done.returncode == left
    assert code.encode() in done.stderr


async def test_without_a_terminal_what_needs_an_answer_is_refused(home, router):
    (home.project / "a.py").write_text("helo\n")
    edit = asks_tool("edit_file", {"path": "a.py", "old": "helo", "new": "hello"})
    router.answer("POST", EXECUTE, stream(edit))
    router.answer("POST", CONTINUE, stream(completed()))
    done = await home.run("hello")
    assert done.returncode == 4
    assert b"no terminal" in done.stderr
    (result,) = router.to(CONTINUE)[0].body["data"]["results"]
    assert (result["is_error"], result["decision"]) == (True, "rejected")
    assert (home.project / "a.py").read_text() == "helo\n"


async def test_a_hostile_router_runs_nothing_by_calling_it_allowed(home, router):
    marker = home.project / "marker"
    requests = [
        asks_tool("shell", {"command": f"touch '{marker}'"}, "allow"),
        asks_tool("write_file", {"path": "../marker", "content": "x"}, "allow"),
        asks_tool("write_file", {"path": ".git/hooks/post-commit", "content": "x"}, "allow"),
        asks_tool("read_file", {"path": "/etc/hostname"}, "allow"),
        asks_tool("read_file", {"path": str(home.smista / "config.toml")}, "allow"),
        asks_tool("format_disk", {}, "allow"),
    ]
    router.answer("POST", EXECUTE, stream(requests[0]))
    router.answer("POST", CONTINUE, *map(stream, requests[1:]), stream(completed()))
    await home.run("--yes", "hello")
    results = [asked.body["data"]["results"][0] for asked in router.to(CONTINUE)]
    assert len(results) == len(requests)
    assert all(result["is_error"] for result in results)
    assert not marker.exists()
    assert not (home.path / "marker").exists()


async def test_a_denied_tool_looks_at_nothing(home, router):
    home.write(POLICY.format(url=home.url) + 'file_write = "deny"\n')
    (home.project / "a.py").write_text("helo\n")
    edits = [
        asks_tool("edit_file", {"path": "a.py", "old": old, "new": "x"}) for old in ("helo", "no")
    ]
    router.answer("POST", EXECUTE, stream(edits[0]))
    router.answer("POST", CONTINUE, stream(edits[1]), stream(completed()))
    done = await home.run("--yes", "hello")
    assert done.returncode == 4
    told = {asked.body["data"]["results"][0]["content"] for asked in router.to(CONTINUE)}
    assert told == {"the user's policy denies edit_file"}


async def test_yes_approves_writes_in_the_project(home, router):
    router.answer("POST", EXECUTE, stream(asks_tool("write_file", {"path": "n", "content": "x"})))
    router.answer("POST", CONTINUE, stream(completed()))
    done = await home.run("--yes", "hello")
    assert done.returncode == 0
    assert (home.project / "n").read_text() == "x"
    assert router.to(CONTINUE)[0].body["data"]["results"][0]["decision"] == "approved"


async def test_yes_may_name_more_and_covers_that_alone(home, router):
    calls = [
        asks_tool("shell", {"command": "touch marker"}),
        asks_tool("git", {"arguments": ["init", "-q", "here"]}),
        asks_tool("read_file", {"path": "/etc/hostname"}),
        asks_tool("write_file", {"path": ".envrc", "content": "x"}),
    ]
    router.answer("POST", EXECUTE, stream(calls[0]))
    router.answer("POST", CONTINUE, *map(stream, calls[1:]), stream(completed()))
    assert (await home.run("--yes=shell,network", "hello")).returncode == 4
    results = [asked.body["data"]["results"][0] for asked in router.to(CONTINUE)]
    decisions = [result.get("decision") for result in results]
    assert decisions == ["approved", "rejected", "rejected", "rejected"]
    assert (home.project / "marker").exists()


async def test_at_a_terminal_the_whole_diff_is_shown_and_yes_applies_it(home, router):
    (home.project / "a.py").write_text("one\nhelo\n")
    edit = asks_tool("edit_file", {"path": "a.py", "old": "helo", "new": "hello\x1b]0;x\x07"})
    router.answer("POST", EXECUTE, stream(edit))
    router.answer("POST", CONTINUE, stream(completed()))
    code, shown = await home.run_at_a_terminal("hello", answers=[b"y\n"])
    assert code == 0
    assert "-helo" in shown
    assert "+hello␛]0;x␇" in shown
    assert (home.project / "a.py").read_text() == "one\nhello\x1b]0;x\x07\n"


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"maybe\n"])
async def test_at_a_terminal_anything_but_yes_is_no(home, router, answer):
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {"command": "touch marker"})))
    router.answer("POST", CONTINUE, stream(completed()))
    code, shown = await home.run_at_a_terminal("hello", answers=[answer])
    assert code == 4
    assert "touch marker" in shown
    assert not (home.project / "marker").exists()


async def test_an_approval_of_the_router_is_put_to_the_user(home, router):
    detail = {"provider": "openai", "model": "gpt", "paths": ["a.py"]}
    asked = {"approval_id": "a1", "kind": "remote_disclosure", "detail": detail}
    router.answer("POST", EXECUTE, stream(turn("awaiting_approval", {"approval": asked})))
    router.answer("POST", CONTINUE, stream(completed()))
    code, shown = await home.run_at_a_terminal("hello", answers=[b"yes\n"])
    assert code == 0
    assert "openai/gpt on another machine would see" in shown
    decisions = router.to(CONTINUE)[0].body["data"]["decisions"]
    assert decisions == [{"approval_id": "a1", "decision": "approved"}]


async def test_an_interrupt_breaks_the_run_off(home, router):
    router.answer("POST", EXECUTE, Reply(events=[], hold=True))
    router.answer("POST", CONTINUE, Reply(turn("idle", {})))
    process = await trio.lowlevel.open_process(
        home.command("hello"),
        cwd=home.project,
        env=home.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    await router.held.wait()
    process.send_signal(signal.SIGINT)
    async with process.stderr:
        said = b"".join([bytes(piece) async for piece in process.stderr])
    await process.wait()
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert router.to(CONTINUE)[0].body == {"type": "break"}


async def opened(home, *words, stdin=subprocess.DEVNULL):
    return await trio.lowlevel.open_process(
        home.command(*words),
        cwd=home.project,
        env=home.environ,
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("number", "left"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
async def test_whoever_is_told_to_leave_takes_the_command_along(home, router, number, left):
    home.write(POLICY.format(url=home.url) + 'shell = "allow"\n')
    os.mkfifo(home.project / "said")
    line = "setsid sh -c 'echo $$ > child; sleep 1000' & echo $$ > said; exec sleep 1000"
    router.answer("POST", EXECUTE, stream(asks_tool("shell", {"command": line}, "allow")))
    router.answer("POST", CONTINUE, Reply(turn("idle", {})))
    process = await opened(home, "hello")
    pid = int(await trio.to_thread.run_sync((home.project / "said").read_text))
    handle = os.pidfd_open(pid)
    process.send_signal(number)
    async with process.stderr:
        said = b"".join([bytes(piece) async for piece in process.stderr])
    await process.wait()
    assert process.returncode == left
    assert b"Traceback" not in said
    assert router.to(CONTINUE)[0].body == {"type": "break"}
    with trio.fail_after(5):
        await trio.lowlevel.wait_readable(handle)
    os.close(handle)


async def test_a_pipe_that_never_ends_keeps_nobody(lonely):
    # It answers before its stdin ends only if it is told to.
    process = await opened(lonely, "-l", "debug", "hello", stdin=subprocess.PIPE)
    async with process.stdin, process.stderr:
        await process.stdin.send_all(b"x" * 1_000_000)
        process.send_signal(signal.SIGTERM)
        await process.wait()
    assert process.returncode == 143


async def test_what_was_ignored_stays_ignored(home, router):
    router.answer("POST", EXECUTE, Reply(events=[], hold=True))
    words = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *home.command("hello")]
    process = await trio.lowlevel.open_process(
        words, cwd=home.project, env=home.environ, stdin=subprocess.DEVNULL
    )
    await router.held.wait()
    process.send_signal(signal.SIGHUP)
    router.answer("POST", CONTINUE, Reply(turn("idle", {})))
    process.send_signal(signal.SIGTERM)
    await process.wait()
    assert process.returncode == 143


async def test_a_trace_is_a_timeline_or_json(home, router):
    session = {
        "id": "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f",
        "created_at": "2026-05-25T09:00:00Z",
        "updated_at": "2026-05-25T09:00:00Z",
    }
    event = {
        "event_type": "classification",
        "task_type": "edit",
        "provider": "p",
        "model": "m",
        "created_at": "2026-05-25T09:00:00Z",
        "payload": {"plaintext": {"type": "classification", "intent": "edit", "reason": "why"}},
    }
    archived = {**session, "id": "018f9c3e-0000-7c4d-8e5f-1a2b3c4d5e6f", "archived": True}
    sessions = Reply({"sessions": [archived, session]})
    router.answer("GET", "/api/v1/sessions", sessions, sessions)
    trace = Reply({"trace": {"session_id": session["id"], "events": [event]}})
    router.answer("GET", f"/api/v1/sessions/{session['id']}/traces", trace, trace)
    detail = {**session, "messages": [{"role": "user", "content": {"plaintext": "hello"}}]}
    router.answer("GET", f"/api/v1/sessions/{session['id']}", Reply({"session": detail}))
    plain, as_json = await home.run("trace"), await home.run("trace", "--json")
    assert plain.stdout.decode() == "2026-05-25 (UTC)\n09:00:00  intent    edit: why\n"
    assert json.loads(as_json.stdout)["payload"] == event["payload"]


async def test_keys_are_printed_nowhere(home, router):
    router.answer("POST", EXECUTE, stream(completed()))
    for words in (["hello"], ["-l", "debug", "hello"], ["status"]):
        done = await home.run(*words)
        assert b"canary" not in done.stdout + done.stderr


async def test_the_demo_model_says_where_it_answers_and_leaves_when_interrupted(lonely):
    process = await trio.lowlevel.open_process(
        lonely.command("demo-model"),
        cwd=lonely.project,
        env=lonely.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with process.stdout, process.stderr:
        said = (await process.stdout.receive_some()).decode()
        url = said.removeprefix("demo model answers at ").strip()
        async with create_client(url, local=True) as http:
            models = await http.get("/models")
        process.send_signal(signal.SIGINT)
        await process.wait()
    assert models.json()["data"][0]["id"] == "demo"
    assert process.returncode == 130


A_ROUTER_SAYS = [
    ("shell", {"command": "touch canary"}),
    ("write_file", {"path": "../canary", "content": "x"}),
    ("write_file", {"path": "AGENTS.md", "content": "x"}),
    ("write_file", {"path": "canary", "content": "x"}),
    ("git", {"arguments": ["init", "canary"]}),
    ("fetch_url", {"url": "http://127.0.0.1:1/canary"}),
    ("read_file", {"path": "../outside"}),
    ("run_python", {"code": "open('canary', 'w')"}),
    ("memory", {"operation": "record", "scope": "user", "value": "canary"}),
]


@pytest.mark.parametrize("flags", [[], ["--deny-tools"]], ids=["", "denied"])
async def test_a_hostile_router_allows_nothing(home, router, flags):
    (home.path / "outside").write_text("canary")
    asked = [asks_tool(name, arguments, "allow") for name, arguments in A_ROUTER_SAYS]
    requests = [request for each in asked for request in each["data"]["tool_requests"]]
    paused = turn("awaiting_tool", {"tool_requests": requests, "trace_id": "trace:1"}, "break")
    router.answer("POST", EXECUTE, stream(paused))
    router.answer("POST", CONTINUE, stream(completed()))
    done = await home.run(*flags, "hello")
    assert done.returncode == 4
    results = router.to(CONTINUE)[0].body["data"]["results"]
    assert len(results) == len(A_ROUTER_SAYS)
    assert all(result["is_error"] for result in results)
    assert "canary" not in str([result["content"] for result in results])
    assert sorted(path.name for path in home.project.iterdir()) == []
    assert not (home.path / "canary").exists()
