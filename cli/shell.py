"""One shell command in a session of its own: bounded in time and output, killed as a whole."""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Final

import trio

from cli.surroundings import Surroundings

DEFAULT_SECONDS: Final = 60.0
MAX_SECONDS: Final = 600.0
MAX_OUTPUT: Final = 64 * 1024
"""Bytes; of more, the first and the last half are kept."""

_SECRET_ENDINGS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


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
    line: str, here: Surroundings, *, seconds: float, hidden: frozenset[str] = frozenset()
) -> Ran:
    """Run *line* with `/bin/sh` in the project root and return what it said.

    After *seconds*, and when cancelled, the whole process group is killed.
    """
    process = await trio.lowlevel.open_process(
        ["/bin/sh", "-c", line],
        cwd=here.root,
        env=_environment(here.environ, hidden),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
        umask=here.umask,
    )
    output = _Output()
    try:
        with trio.move_on_after(seconds) as limit:
            await _follow(process, output)
    finally:
        with trio.CancelScope(shield=True):
            _kill_group(process.pid)
            await process.wait()
    if limit.cancelled_caught:
        note = f"[killed: it ran for more than {seconds:g} s]"
        return Ran(text=f"{output.text()}\n{note}", failed=True)
    code = process.returncode
    return Ran(text=f"{output.text()}\n[exit code {code}]", failed=code != 0)


async def _follow(process: trio.Process, output: _Output) -> None:
    stdout = process.stdout
    assert stdout is not None  # it was opened as a pipe

    async def read() -> None:
        async with stdout:
            async for piece in stdout:
                output.take(bytes(piece))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await process.wait()
        # What it left behind in the background would hold the pipe open.
        _kill_group(process.pid)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _environment(environ: Mapping[str, str], hidden: frozenset[str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name not in hidden and not name.upper().endswith(_SECRET_ENDINGS)
    }
