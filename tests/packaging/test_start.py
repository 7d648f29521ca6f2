"""What a command does not load, because a person waits for it."""

import subprocess
import sys


def test_a_command_that_speaks_http_loads_no_command_line_of_the_http_client() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "smista", "status"]
    run = subprocess.run(
        [*command, "--url", "http://127.0.0.1:9"], capture_output=True, text=True, check=False
    )
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "httpx" in loaded
    assert loaded.isdisjoint({"rich", "pygments"})
