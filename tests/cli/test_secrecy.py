"""What others on this machine can get out of our processes, and programs out of our environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from cli.host import TerminalHost
from cli.own_keys import secret_names
from cli.veil import PLAIN, Veil
from smista.core.policy import ToolsConfig
from smista.local.config_model import ConfigFile
from tests.cli.ground import call, surroundings
from tests.cli.test_command_line import Home
from tests.cli.test_host import Person
from tests.e2e.house import free_port

ROOT = Path(__file__).parents[2]
LINUX = sys.platform == "linux"
KEYS = {
    "SMISTA_API_KEY": "marker-own",
    "OPENAI_API_KEY": "marker-1",
    "gh_token": "marker-2",
    "A_SECRET": "marker-3",
    "DB_PASSWORD": "marker-4",
    "NAMED": "marker-5",
}
CONFIG = {"providers": {"openai": {"api_key": "${secret:NAMED}"}}}


def veil(*passed):
    preferences = {"pass_variables": list(passed)}
    return secret_names(ConfigFile.model_validate({**CONFIG, "local_preferences": preferences}))


@pytest.mark.parametrize("tool", ["shell", "git"])
async def test_no_key_reaches_a_program_that_a_model_started(tmp_path, tool):
    environ = {**KEYS, "PATH": os.environ["PATH"], "HOME": str(tmp_path), "PLAIN": "kept"}
    here = surroundings(tmp_path, environ=environ)
    tools = ToolsConfig(permissions={"shell": "allow"})
    host = TerminalHost(here, tools, terminal=Person("y\n"), hidden=veil())
    asked = {
        "shell": call("shell", "allow", command="env; cat /proc/self/environ"),
        "git": call("git", arguments=["-c", "alias.show-it=!env", "show-it"]),
    }
    (result,) = await host.run_tools((asked[tool],))
    assert "PLAIN=kept" in result.content
    assert "marker" not in result.content


def test_the_user_may_let_some_through_but_never_our_own():
    seen = veil("OPENAI_API_KEY", "NAMED", "SMISTA_API_KEY").over(KEYS)
    assert set(seen) == {"OPENAI_API_KEY", "NAMED"}
    assert PLAIN.over({"PATH": "x", "MONKEY": "x", "KEY": "x"}) == {
        "PATH": "x",
        "MONKEY": "x",
        "KEY": "x",
    }
    assert Veil(shown=frozenset({"A_KEY"})).without(frozenset({"A_KEY"})).over({"A_KEY": "x"}) == {}


@pytest.mark.skipif(not LINUX, reason="Linux tells it")
def test_a_process_of_ours_leaves_no_core_and_shows_nothing_but_what_it_starts_may():
    program = (
        "import ctypes, resource, subprocess, sys\n"
        "from cli.secrecy import keep_memory_private\n"
        "keep_memory_private()\n"
        "child = 'import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))'\n"
        "subprocess.run([sys.executable, '-c', child], check=True)\n"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE)[0])\n"
    )
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.split()
    assert said == [b"1", b"0", b"0"]


@pytest.mark.skipif(not LINUX, reason="/proc tells it")
async def test_the_router_has_no_key_in_its_environment_and_leaves_no_core(tmp_path):
    home = Home(tmp_path, "http://127.0.0.1:9")
    (home.smista / "router.toml").write_text(f"[router]\nport = {free_port()}\n")
    started = await trio.run_process(
        home.command("start"),
        cwd=home.project,
        env={**home.environ, **KEYS},
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    try:
        assert started.returncode == 0, started.stderr
        pid = int((home.smista / "run" / "router.pid").read_text())
        environ, core, owner = facts(Path(f"/proc/{pid}"))
        assert b"SMISTA_HOME=" in environ
        assert b"marker" not in environ
        assert core == "0"
        assert owner == 0  # root's, since nobody else may look into it
    finally:
        assert (await home.run("stop")).returncode == 0


def facts(process):
    limits = (process / "limits").read_text().splitlines()
    (core,) = [line for line in limits if line.startswith("Max core file size")]
    environ = process / "environ"
    return environ.read_bytes(), core.split()[4], environ.stat().st_uid
