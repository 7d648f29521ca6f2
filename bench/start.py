"""Start-up: how long `smista` takes to say its version, and the router to be ready."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import trio

from bench.figures import Figure, in_turns
from bench.house import router_environment, settings_file
from bench.processes import free_port

ROUNDS = 40
STARTS = 6


async def measure() -> list[Figure]:
    """Return the waits beside an interpreter that does nothing; -P as the router is started."""
    samples = await in_turns(
        ROUNDS,
        {
            "bare": partial(_wait_for, "-c", ""),
            "version": partial(_wait_for, "-m", "smista", "--version"),
        },
    )
    version, bare = samples["version"], samples["bare"]
    starts = [await _start() for _ in range(STARTS)]
    return [
        Figure(name="smista --version", samples=version, baseline=bare, at_most=40),
        Figure(name="smista start, until ready", samples=starts, baseline=bare, at_most=800),
    ]


async def _start() -> float:
    """Return milliseconds until `smista start`, with a new store, said that the router answers."""
    with tempfile.TemporaryDirectory(prefix="smista-bench-") as place:
        file = settings_file(Path(place), free_port(), free_port())
        env = router_environment(Path(place))
        begun = time.perf_counter()
        try:
            await _wait_for("-m", "smista", "start", "--config", str(file), env=env)
            return (time.perf_counter() - begun) * 1000
        finally:
            with trio.move_on_after(20, shield=True):
                await _wait_for("-m", "smista", "stop", env=env)


async def _wait_for(*arguments: str, env: Mapping[str, str] | None = None) -> None:
    # A user's Python keeps its compiled files; one that may not would compile at every start.
    given = os.environ if env is None else env
    kept = {key: value for key, value in given.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", *arguments]
    await trio.run_process(command, stdout=subprocess.DEVNULL, env=kept)
