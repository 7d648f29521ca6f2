"""One command in a session of its own: bounded in time and output, killed as a whole."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Final

import trio

from cli.descendants import Hold, hold_descendants
from cli.surroundings import Surroundings
from cli.veil import PLAIN, Veil
from cli.watching import Output, Watching

DEFAULT_SECONDS: Final = 60.0
MAX_SECONDS: Final = 600.0
MAX_OUTPUT: Final = 64 * 1024
"""Bytes; of more, the first and the last half are kept."""

AFTERWARDS: Final = 0.5
"""Seconds in which the rest of the output may arrive once the command has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """*text* is the output with the exit code; *failed*: it did not end with 0."""

    text: str
    failed: bool


@dataclass(slots=True)
class _Output:
    """Keeps the beginning and the end of a stream of any length."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    dropped: int = 0

    def take(self, piece: bytes) -> None:
        half = MAX_OUTPUT // 2
        room = half - len(self.head)
        self.head += piece[:room]
        self.tail += piece[room:] if room > 0 else piece
        excess = len(self.tail) - half
        if excess > 0:
            self.dropped += excess
            del self.tail[:excess]

    def text(self) -> str:
        head, tail = (part.decode(errors="replace") for part in (self.head, self.tail))
        return f"{head}\n[{self.dropped} bytes left out]\n{tail}" if self.dropped else head + tail


async def run_shell(
    line: str,
    here: Surroundings,
    *,
    seconds: float,
    veil: Veil = PLAIN,
    output: Output | None = None,
) -> Ran:
    """Run *line* with `/bin/sh` in the project root and return what it said.

    *output* is given the same while it runs, as much of it as a person can follow. After *seconds*,
    and when cancelled, everything it started is killed. When it ends by itself, its process group
    is; what has left the group goes on, and that is said.
    """
    words = ["/bin/sh", "-c", line]
    return await run_program(words, here, seconds=seconds, veil=veil, output=output)


async def run_program(
    words: Sequence[str],
    here: Surroundings,
    *,
    seconds: float,
    veil: Veil = PLAIN,
    extra: Mapping[str, str] | None = None,
    output: Output | None = None,
) -> Ran:
    """Run a program as `run_shell` does, with the variables *extra* on top. Raises OSError."""
    with hold_descendants() as hold:
        process = await trio.lowlevel.open_process(
            words,
            cwd=here.root,
            env={**veil.over(here.environ), **(extra or {})},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,
            umask=here.umask,
        )
        running = _Running(process, hold, None if output is None else Watching(output))
        try:
            return await running.follow(seconds)
        except BaseException:
            with trio.CancelScope(shield=True):
                await running.kill()
            raise
        finally:
            hold.bury(process.pid)


class _Running:
    """A command that was started, and what it has said so far."""

    def __init__(self, process: trio.Process, hold: Hold, watching: Watching | None) -> None:
        self._process = process
        self._hold = hold
        self._watching = watching
        self._output = _Output()
        self._silent = trio.Event()

    async def follow(self, seconds: float) -> Ran:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            if self._watching is not None:
                nursery.start_soon(self._watching.show)
            with trio.move_on_after(seconds) as limit:
                await self._process.wait()
            if limit.cancelled_caught:
                await self.kill()
            _kill_group(self._process.pid)
            # What lives on in the background may hold the pipe open for ever.
            with trio.move_on_after(AFTERWARDS):
                await self._silent.wait()
            nursery.cancel_scope.cancel()
        if self._watching is not None:
            self._watching.flush()
        if limit.cancelled_caught:
            return self._ran(f"[killed: it ran for more than {seconds:g} s]", failed=True)
        code = self._process.returncode
        return self._ran(f"[exit code {code}]{self._left()}", failed=code != 0)

    async def kill(self) -> None:
        """Kill all that the command started, and the command."""
        _kill_group(self._process.pid)
        await self._hold.kill()
        await self._process.wait()

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None  # it was opened as a pipe
        async with stdout:
            async for piece in stdout:
                self._output.take(bytes(piece))
                if self._watching is not None:
                    self._watching.take(bytes(piece))
        self._silent.set()

    def _left(self) -> str:
        # The group was killed just now, and may take a moment to be gone.
        left = self._hold.living(outside=self._process.pid)
        if not left and self._silent.is_set():
            return ""
        names = f" (process {', '.join(map(str, left))})" if left else ""
        return f"\n[something it started goes on in the background{names}; its output is not shown]"

    def _ran(self, note: str, *, failed: bool) -> Ran:
        return Ran(text=f"{self._output.text()}\n{note}", failed=failed)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
