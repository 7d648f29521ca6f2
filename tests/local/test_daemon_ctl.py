"""Starting, finding and stopping a background process, with a stand-in for the router."""

import json
import os
import signal
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smista.local.daemon_ctl import (
    AlreadyRunning,
    Daemon,
    DaemonFiles,
    Durations,
    StartFailed,
    find_files,
    hold,
    running,
    start,
    stop,
)
from smista.local.paths import NotOurs, find_places

STAND_IN = """
import json, os, signal, sys
from pathlib import Path
from smista.local.daemon_ctl import AlreadyRunning, DaemonFiles, hold

files = DaemonFiles(pidfile=Path(sys.argv[1]), log=Path(sys.argv[2]))
try:
    with hold(files) as held:
        {before}
        held.announce("http://127.0.0.1:1")
        while True:
            signal.pause()
except AlreadyRunning:
    sys.exit(3)
"""
QUICK = Durations(start=10, stop=10, kill=5)


class Ground:
    """Files of one stand-in, and the stand-in itself."""

    def __init__(self, tmp_path):
        self.tmp_path = tmp_path
        self.files = DaemonFiles(pidfile=tmp_path / "router.pid", log=tmp_path / "router.log")
        self.command = self.stand_in("pass")

    def stand_in(self, before):
        script = self.tmp_path / "stand_in.py"
        script.write_text(textwrap.dedent(STAND_IN.format(before=before)))
        files = self.files
        return [sys.executable, "-P", str(script), str(files.pidfile), str(files.log)]

    def start(self, durations=QUICK):
        return start(self.files, self.command, durations=durations)

    def stop(self, durations=QUICK):
        return stop(self.files, durations=durations)


@pytest.fixture
def ground(tmp_path):
    ground = Ground(tmp_path)
    yield ground
    daemon = running(ground.files)
    if daemon is not None:
        os.kill(daemon.pid, signal.SIGKILL)


def test_a_started_daemon_is_found_and_stopped(ground):
    started = ground.start()
    assert started.new
    assert started.daemon.url == "http://127.0.0.1:1"
    assert running(ground.files) == started.daemon
    assert ground.files.pidfile.read_text() == f"{started.daemon.pid}\n"
    assert ground.stop()
    assert running(ground.files) is None
    assert not ground.stop()


def test_a_second_start_finds_the_first(ground):
    first, second = ground.start(), ground.start()
    assert (second.new, second.daemon) == (False, first.daemon)


def test_twenty_starts_at_once_make_one_daemon(ground):
    with ThreadPoolExecutor(20) as pool:
        started = [future.result() for future in [pool.submit(ground.start) for _ in range(20)]]
    assert len({one.daemon.pid for one in started}) == 1
    assert [one.new for one in started].count(True) == 1


def test_after_kill_nine_nothing_runs_and_a_start_works(ground):
    killed = ground.start().daemon
    os.kill(killed.pid, signal.SIGKILL)
    os.waitpid(killed.pid, 0)
    assert running(ground.files) is None
    again = ground.start()
    assert again.new
    assert again.daemon.pid != killed.pid


def test_a_daemon_that_fails_at_its_start_is_explained(ground):
    ground.command = ground.stand_in("sys.exit('the port is taken')")
    with pytest.raises(StartFailed) as caught:
        ground.start()
    assert "the port is taken" in str(caught.value)
    assert "code 1" in str(caught.value)
    assert str(ground.files.log) in str(caught.value)


def test_only_what_this_start_said_is_reported(ground):
    ground.files.log.write_text("an old complaint\n")
    ground.command = ground.stand_in("os._exit(7)")
    with pytest.raises(StartFailed, match=r"code 7: it said nothing"):
        ground.start()


def test_a_daemon_that_never_answers_is_ended(ground):
    ground.command = ground.stand_in("signal.pause()")
    with pytest.raises(StartFailed, match="did not answer"):
        ground.start(Durations(start=0.5))
    assert running(ground.files) is None


def test_a_daemon_that_ignores_the_request_is_killed(ground):
    ground.command = ground.stand_in("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    ground.start()
    assert ground.stop(Durations(stop=0.2, kill=5))
    assert running(ground.files) is None


def test_the_daemon_is_alone_and_sees_little(ground, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    seen = ground.tmp_path / "seen.json"
    facts = "[dict(os.environ), os.getcwd(), os.getsid(0) == os.getpid(), os.umask(0)]"
    ground.command = ground.stand_in(f"Path({str(seen)!r}).write_text(json.dumps({facts}))")
    ground.start()
    environ, folder, leads, umask = json.loads(seen.read_text())
    assert "OPENAI_API_KEY" not in environ
    assert environ["LC_ALL"] == "C.UTF-8"
    assert (folder, leads, umask) == ("/", True, 0o077)
    assert ground.files.log.stat().st_mode & 0o777 == 0o600


def test_the_lock_is_given_back_with_the_pidfile(ground):
    with hold(ground.files) as held:
        assert running(ground.files) == Daemon(pid=os.getpid())
        held.announce("http://127.0.0.1:2")
        assert running(ground.files) == Daemon(pid=os.getpid(), url="http://127.0.0.1:2")
        with pytest.raises(AlreadyRunning, match=r"http://127\.0\.0\.1:2"), hold(ground.files):
            pytest.fail("two holders")
    assert running(ground.files) is None
    assert not ground.files.pidfile.exists()


def test_a_pidfile_of_another_process_is_left_alone(ground):
    with hold(ground.files) as held:
        held.announce("http://127.0.0.1:2")
        ground.files.pidfile.write_text("1\n")
    assert ground.files.pidfile.read_text() == "1\n"


def test_a_planted_lock_is_refused(ground):
    (ground.tmp_path / "theirs").write_text("{}")
    ground.files.lock.symlink_to(ground.tmp_path / "theirs")
    with pytest.raises(NotOurs):
        ground.start()
    ground.files.lock.unlink()


def test_a_planted_runtime_directory_is_refused(tmp_path):
    places = find_places({"SMISTA_HOME": str(tmp_path / "h")}, tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "run").symlink_to(tmp_path / "theirs")
    with pytest.raises(NotOurs, match="real directory"):
        find_files(places, {})


def test_the_pidfile_is_where_flag_or_variable_say(tmp_path):
    places = find_places({"SMISTA_HOME": str(tmp_path / "h")}, tmp_path)
    assert find_files(places, {}).pidfile == tmp_path / "h" / "run" / "router.pid"
    environ = {"SMISTA_ROUTER_PIDFILE": str(tmp_path / "v.pid")}
    assert find_files(places, environ).pidfile == tmp_path / "v.pid"
    flag = find_files(places, environ, pidfile=Path(tmp_path / "f.pid"))
    assert flag.pidfile == tmp_path / "f.pid"
