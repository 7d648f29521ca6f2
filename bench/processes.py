"""Child processes that end with the block that opened them, and what /proc says of them."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, Literal

import trio

_READ: Final = 65_536
_UP: Final = 30.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_CPU_FIELDS: Final = slice(11, 13)
"""utime and stime, counted from behind the command's name in /proc/PID/stat."""


class NotUp(Exception):
    """A process of the bench ended, or said nothing, before it was ready."""


@asynccontextmanager
async def open_process(
    command: Sequence[str],
    *,
    channel: Literal["stdout", "stderr"],
    heard: Callable[[str], None],
    up_at: str,
    env: Mapping[str, str],
) -> AsyncGenerator[trio.Process]:
    """Lend the process once a line begins with *up_at*; *heard* gets every line of *channel*.

    Leaving ends it, by force if need be. Raises NotUp.
    """
    pipes = {"stdout": subprocess.DEVNULL, "stderr": None, channel: subprocess.PIPE}
    run = partial(
        trio.run_process, [*command], check=False, env=env, cwd="/", deliver_cancel=_end, **pipes
    )
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(run)
        lines = process.stdout if channel == "stdout" else process.stderr
        if lines is None:
            raise TypeError("a piped channel has a stream")
        up = False
        with trio.move_on_after(_UP):
            up = await nursery.start(_listen, lines, heard, up_at)
        if not up:
            nursery.cancel_scope.cancel()
            raise NotUp(f"{' '.join(command)} did not come up")
        yield process
        nursery.cancel_scope.cancel()


async def _end(process: trio.Process) -> None:
    """Ask twice, for a router lets its turns end at the first signal, then kill."""
    for patience in (0.2, 5):
        process.terminate()
        with trio.move_on_after(patience):
            await process.wait()
            return
    process.kill()


async def _listen(
    lines: trio.abc.ReceiveStream,
    heard: Callable[[str], None],
    up_at: str,
    *,
    task_status: trio.TaskStatus[bool] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Hand lines on; started with True at *up_at*, with False if they end before it."""
    rest, waiting = b"", True
    while piece := await lines.receive_some(_READ):
        *whole, rest = (rest + piece).split(b"\n")
        for raw in whole:
            line = raw.decode("utf-8", "replace")
            heard(line)
            if waiting and line.startswith(up_at):
                waiting = False
                task_status.started(True)
    if waiting:
        task_status.started(False)


@asynccontextmanager
async def until_sigterm() -> AsyncGenerator[None]:
    """Leave the block at SIGTERM, so that the processes and files opened in it go with it."""
    async with trio.open_nursery() as nursery:
        await nursery.start(_cancel_at_sigterm, nursery.cancel_scope)
        yield
        nursery.cancel_scope.cancel()


async def _cancel_at_sigterm(
    scope: trio.CancelScope, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def rss_mib(pid: int) -> float:
    """Return the memory that *pid* has in use, shared pages included."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def cpu_ms(pid: int) -> float:
    """Return the processor time that *pid* has used so far, all its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return sum(map(int, fields[_CPU_FIELDS])) * 1000 / _TICKS
