"""Starts the stand-in for a SurrealDB server."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STAND_IN = Path(__file__).with_name("stand_in.py")


@contextmanager
def serving(port: int = 0) -> Iterator[int]:
    """Run the stand-in and yield its port."""
    command = [sys.executable, "-W", "error", str(STAND_IN), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()
