"""The router as a background process: hold its lock, start it, find it, stop it. POSIX only.

The lock the daemon holds for life is the truth; the text in it only says who holds it. So no
stale file can claim that a router runs. Everything here blocks: call it in a thread.
"""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smista.local.paths import Places, open_private, private_directory, write_all, write_private

READY_FD: Final = "SMISTA_READY_FD"
PIDFILE: Final = "SMISTA_ROUTER_PIDFILE"
_PASSED_ON: Final = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "SMISTA_HOME",
        "SMISTA_ROUTER_LOG_FILTER",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    ]
)

_INSTANT: Final = 0.01
_PATIENCE: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Seconds: until a started router answers, until a stopped one is gone, then is killed."""

    start: float = 60.0
    stop: float = 20.0
    kill: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """The live router; *url* is None while it starts."""

    pid: int
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """*said* is what a new router wrote to its log before it answered."""

    daemon: Daemon
    new: bool
    said: str = ""


class AlreadyRunning(Exception):
    """A router holds the lock."""

    def __init__(self, daemon: Daemon) -> None:
        where = f" at {daemon.url}" if daemon.url else ""
        super().__init__(f"a router is already running (process {daemon.pid}{where})")
        self.daemon = daemon


class StartFailed(Exception):
    """The router did not come up; the message names its log."""


class StopFailed(Exception):
    """The router is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonFiles:
    """The pidfile and, beside it, the two locks."""

    pidfile: Path
    log: Path

    @property
    def lock(self) -> Path:
        return self.pidfile.with_name(self.pidfile.name + ".lock")

    @property
    def start_lock(self) -> Path:
        return self.pidfile.with_name(self.pidfile.name + ".start")


def find_files(
    places: Places,
    environ: Mapping[str, str],
    *,
    pidfile: Path | None = None,
    log: Path | None = None,
) -> DaemonFiles:
    """Return where the router's files are, and make the directories that are ours."""
    chosen = pidfile or (Path(environ[PIDFILE]) if environ.get(PIDFILE) else None)
    if chosen is None:
        chosen = private_directory(places.runtime, real=True) / "router.pid"
    private_directory(places.config)
    return DaemonFiles(pidfile=chosen.absolute(), log=(log or places.log_file).absolute())


class Held:
    """The lock of a router that is being served by this process."""

    def __init__(self, files: DaemonFiles, lock: int) -> None:
        self._files = files
        self._lock = lock

    def announce(self, url: str) -> None:
        """Say that the router answers at *url*: in the lock, the pidfile and to who waits."""
        entry = json.dumps({"pid": os.getpid(), "url": url}).encode()
        # The new entry is the longer one, so a reader in between sees one of the two.
        os.pwrite(self._lock, entry, 0)
        os.ftruncate(self._lock, len(entry))
        write_private(self._files.pidfile, b"%d\n" % os.getpid())
        ready = os.environ.pop(READY_FD, None)
        if ready is not None:
            write_all(int(ready), entry + b"\n")
            os.close(int(ready))


@contextmanager
def hold(files: DaemonFiles) -> Generator[Held]:
    """Be the router until the body ends. Raises AlreadyRunning."""
    lock = open_private(files.lock, os.O_RDWR | os.O_CREAT)
    try:
        if not _take(lock):
            raise AlreadyRunning(_holder(lock))
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps({"pid": os.getpid(), "url": None}).encode(), 0)
        yield Held(files, lock)
    finally:
        with suppress(FileNotFoundError):
            if files.pidfile.read_bytes() == b"%d\n" % os.getpid():
                files.pidfile.unlink()
        os.close(lock)


def running(files: DaemonFiles) -> Daemon | None:
    """Return the live router, or None. Waits an instant at most, for one that is just starting."""
    try:
        lock = open_private(files.lock, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(lock)
    else:
        return None
    finally:
        os.close(lock)


def start(
    files: DaemonFiles, command: Sequence[str], *, durations: Durations = Durations()
) -> Started:
    """Return the router that runs, starting *command* detached if none does.

    Only one of many callers starts it; the others get its result. Raises StartFailed.
    """
    with _only_starter(files):
        daemon = running(files)
        if daemon is not None:
            return Started(daemon=daemon, new=False)
        return _launch(files, command, durations)


def stop(files: DaemonFiles, *, durations: Durations = Durations()) -> bool:
    """End the router and wait until it is gone; False if there was none. Raises StopFailed."""
    daemon = running(files)
    if daemon is None:
        return False
    with _open_process(daemon.pid, files) as process:
        # Asked again with the process in hand: its number cannot have passed to another.
        now = running(files)
        if process is None or now is None or now.pid != daemon.pid:
            return now is None
        process.signal(signal.SIGTERM)
        if not process.wait_gone(durations.stop):
            process.signal(signal.SIGKILL)
            if not process.wait_gone(durations.kill):
                raise StopFailed(f"process {daemon.pid} does not end; see {files.log}")
    return True


def router_command(*options: str) -> list[str]:
    """Return how to run the router in the foreground with the interpreter of this process.

    `-P`: a module of the same name in the current directory is never imported.
    """
    return [sys.executable, "-P", "-m", "smista", "start", "--foreground", *options]


def _take(lock: int) -> bool:
    # Whoever looks if a router runs holds the lock for an instant; that is not a router.
    for _ in range(_PATIENCE):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_INSTANT)
    return False


def _holder(lock: int) -> Daemon:
    # Between taking the lock and signing it there is an instant too.
    for _ in range(_PATIENCE):
        with suppress(ValueError):
            entry = json.loads(os.pread(lock, 4096, 0))
            return Daemon(pid=entry["pid"], url=entry["url"])
        time.sleep(_INSTANT)
    raise StopFailed("something holds the router's lock and does not say who it is")


@contextmanager
def _only_starter(files: DaemonFiles) -> Generator[None]:
    # A starter holds this for its own time limit at most, so waiting for it is bounded.
    lock = open_private(files.start_lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _launch(files: DaemonFiles, command: Sequence[str], durations: Durations) -> Started:
    log = open_private(files.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    begin = os.fstat(log).st_size
    ready, write_end = os.pipe()
    try:
        process = subprocess.Popen(  # the router outlives us on purpose
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(write_end,),
            cwd="/",
            env=_environment(files, write_end),
            umask=0o077,
        )
    finally:
        os.close(write_end)
        os.close(log)
    try:
        daemon = _wait_ready(process, ready, files, begin, durations)
        return Started(daemon=daemon, new=True, said=_log_since(files, begin))
    finally:
        os.close(ready)


def _wait_ready(
    process: "subprocess.Popen[bytes]",
    ready: int,
    files: DaemonFiles,
    begin: int,
    durations: Durations,
) -> Daemon:
    said = b""
    deadline = time.monotonic() + durations.start
    while not said.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([ready], [], [], left)[0]:
            process.kill()
            process.wait()
            raise StartFailed(f"the router did not answer in {durations.start} s; see {files.log}")
        piece = os.read(ready, 4096)
        if not piece:
            raise StartFailed(_obituary(process, files, begin, durations))
        said += piece
    entry = json.loads(said)
    process.returncode = 0  # not ours to reap: without this, leaving warns about it
    return Daemon(pid=entry["pid"], url=entry["url"])


def _obituary(
    process: "subprocess.Popen[bytes]", files: DaemonFiles, begin: int, durations: Durations
) -> str:
    code = process.wait(durations.kill)
    lines = _log_since(files, begin).split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
    return f"the router ended at its start with code {code}: {last.strip()}; see {files.log}"


def _log_since(files: DaemonFiles, begin: int) -> str:
    with files.log.open("rb") as log:
        log.seek(begin)
        return log.read(65_536).decode(errors="replace")


def _environment(files: DaemonFiles, ready: int) -> dict[str, str]:
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith("LC_")
    }
    passed[READY_FD] = str(ready)
    passed[PIDFILE] = str(files.pidfile)
    package = Path(__file__).parents[1]
    if not (package / "_bundle").is_dir():
        # A checkout is not installed, and the child does not start in its folder.
        passed["PYTHONPATH"] = str(package.parent)
    return passed


class _Process:
    """A process we may signal and wait for. *handle* None: the system has no process handles."""

    def __init__(self, pid: int, handle: int | None, files: DaemonFiles) -> None:
        self._pid = pid
        self._handle = handle
        self._files = files

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._handle is None:
                os.kill(self._pid, number)
            else:
                signal.pidfd_send_signal(self._handle, number)

    def wait_gone(self, seconds: float) -> bool:
        if self._handle is not None:
            return bool(select.select([self._handle], [], [], seconds)[0])
        deadline = time.monotonic() + seconds
        while running(self._files) is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True


@contextmanager
def _open_process(pid: int, files: DaemonFiles) -> Generator[_Process | None]:
    if not hasattr(os, "pidfd_open"):
        yield _Process(pid, None, files)
        return
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield _Process(pid, handle, files)
    finally:
        os.close(handle)
