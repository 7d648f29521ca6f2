"""Start-up: how long `smista` takes to say its version, beside an interpreter that does nothing."""

import os
import subprocess
import sys
from functools import partial

import trio

from bench.figures import Figure, in_turns

ROUNDS = 40


async def measure() -> list[Figure]:
    """Return what a person waits for the shortest command; -P as the router itself is started."""
    samples = await in_turns(
        ROUNDS,
        {
            "bare": partial(_wait_for, "-c", ""),
            "version": partial(_wait_for, "-m", "smista", "--version"),
        },
    )
    version, bare = samples["version"], samples["bare"]
    return [Figure(name="smista --version", samples=version, baseline=bare, at_most=40)]


async def _wait_for(*arguments: str) -> None:
    # A user's Python keeps its compiled files; one that may not would compile at every start.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", *arguments]
    await trio.run_process(command, stdout=subprocess.DEVNULL, env=kept)
