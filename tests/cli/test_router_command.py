"""`smista start`, `stop`, `status` with the real router, as a user calls them."""

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Machine:
    """A user whose router has a port of its own."""

    def __init__(self, tmp_path, port):
        self.home = tmp_path / "smista home"
        self.project = tmp_path / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.port = port
        self.configure(f"[router]\nport = {port}\n")

    def configure(self, text):
        (self.home / "router.toml").write_text(text)

    def run(self, *words):
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "SMISTA_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.run(
            [sys.executable, "-P", "-m", "smista", *words],
            cwd=self.project,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            umask=0,  # whatever the user's shell says, what is kept is tight
        )

    def pid(self):
        return int((self.home / "run" / "router.pid").read_text())


@pytest.fixture
def machine(tmp_path):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    machine = Machine(tmp_path, port)
    yield machine
    machine.run("stop")


def test_a_router_is_started_used_and_stopped(machine):
    started = machine.run("start")
    assert started.returncode == 0, started.stderr
    assert f"http://127.0.0.1:{machine.port}" in started.stdout

    again = machine.run("start")
    assert again.returncode == 1
    assert "already running" in again.stderr

    status = machine.run("status")
    assert status.returncode == 0
    assert f"http://127.0.0.1:{machine.port}" in status.stdout

    assert machine.run("login").returncode == 0
    assert machine.run("trace").returncode == 1  # no session yet

    assert machine.run("stop").returncode == 0
    assert machine.run("stop").returncode == 3
    assert machine.run("status").returncode == 3


def test_a_router_with_a_pidfile_of_its_own_is_stopped_by_it(machine, tmp_path):
    pidfile = tmp_path / "own.pid"
    assert machine.run("start", "--pidfile", str(pidfile)).returncode == 0
    assert int(pidfile.read_text()) > 1
    assert machine.run("stop").returncode == 3
    assert machine.run("stop", "--pidfile", str(pidfile)).returncode == 0
    assert not pidfile.exists()


def test_a_router_that_was_killed_leaves_no_trace_that_it_runs(machine):
    assert machine.run("start").returncode == 0
    os.kill(machine.pid(), signal.SIGKILL)
    assert machine.run("start").returncode == 0


def test_what_is_kept_is_for_its_owner_alone(machine):
    assert machine.run("start").returncode == 0
    for path in [machine.home, *machine.home.rglob("*")]:
        if path.name != "router.toml":  # the user's own file
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_taken_port_is_explained(machine):
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", machine.port))
        squatter.listen()
        started = machine.run("start")
    assert started.returncode == 1
    assert "port" in started.stderr
    assert "router.log" in started.stderr


def test_a_bad_configuration_is_said_before_anything_starts(machine):
    machine.configure("[router]\nport = 0\n[router.limits]\nrequest_timeout_ms = 0\n")
    started = machine.run("start")
    assert started.returncode == 2
    assert "router.port" in started.stderr
    assert "router.limits.request_timeout_ms" in started.stderr


def test_a_warning_of_the_new_router_reaches_the_user(machine):
    providers = '[router.providers.openai]\nbase_url = "http://127.0.0.1:9"\n'
    machine.configure(f"[router]\nport = {machine.port}\n{providers}")
    started = machine.run("start")
    assert started.returncode == 0
    assert started.stderr.startswith("warning: ")
    assert "base_url" in started.stderr


def test_a_missing_router_is_started_when_configured_so(machine):
    (machine.home / "config.toml").write_text("[router]\nauto_start = true\n")
    asked = machine.run("hello")
    assert asked.returncode == 2
    assert "smista login" in asked.stderr
    assert machine.run("status").returncode == 0


def test_a_key_the_router_does_not_know_is_explained(machine):
    assert machine.run("start").returncode == 0
    assert machine.run("login", "--global").returncode == 0
    secrets = machine.home / "secrets"
    key = secrets.read_text()
    secrets.write_text(key[:-10] + "0" * 8 + key[-2:])
    asked = machine.run("hello")
    assert asked.returncode == 2
    assert "smista login --again" in asked.stderr
    assert machine.run("login", "--global", "--again").returncode == 0
    assert secrets.read_text() != key
    assert machine.run("trace").returncode == 1  # known again; no session yet
