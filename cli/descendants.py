"""All processes that one of ours started, found and killed, whichever session they moved to.

On Linux whatever loses its parent is handed to us while a hold lasts, so nothing slips away;
elsewhere the hold knows of nothing, and its owner has the process group alone.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

_PR_SET_CHILD_SUBREAPER: Final = 36
_PASSES: Final = 100
_LINUX: Final = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    group: int
    dead: bool


@dataclass(frozen=True, slots=True)
class Hold:
    """Knows which children were there *before*; every later one belongs to the command."""

    before: frozenset[int]

    def living(self, *, outside: int | None = None) -> list[int]:
        """Return what was started since and lives, at any depth, but not in group *outside*."""
        found = self._descendants()
        return [each.pid for each in found if not each.dead and each.group != outside]

    async def kill(self) -> None:
        """Kill all of it; what is born meanwhile is killed by the next pass."""
        for _ in range(_PASSES):
            living = self.living()
            for pid in living:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not living:
                return
            await trio.lowlevel.checkpoint()

    def bury(self, own: int) -> None:
        """Take leave of the dead that were handed to us; *own* is awaited by its owner."""
        ours = os.getpid()
        for process in self._descendants():
            if process.dead and process.parent == ours and process.pid != own:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)

    def _descendants(self) -> list[Process]:
        processes = list(_processes())
        known = {os.getpid()}
        found: list[Process] = []
        while True:
            more = [
                process
                for process in processes
                if process.parent in known and process.pid not in known | self.before
            ]
            if not more:
                return found
            found += more
            known |= {process.pid for process in more}


@contextmanager
def hold_descendants() -> Generator[Hold]:
    """Have everything that is started from here on stay within reach until the end."""
    ours = os.getpid()
    before = frozenset(p.pid for p in _processes() if p.parent == ours)
    _adopt(True)
    try:
        yield Hold(before)
    finally:
        _adopt(False)


def _adopt(orphans: bool) -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0)


def _processes() -> Iterator[Process]:
    for entry in Path("/proc").iterdir() if _LINUX else ():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_bytes()
        except OSError:
            continue  # it ended while we looked
        # The name stands in parentheses and may hold anything.
        state, parent, group = stat.rpartition(b")")[2].split()[:3]
        yield Process(int(entry.name), int(parent), int(group), dead=state in {b"Z", b"X"})
