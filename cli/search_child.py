"""Searches files for a pattern, in a process of its own that can be killed.

A pattern may take for ever, so it is never tried in the process of the user's terminal. Run as a
file, with nothing but the standard library. stdin: {"pattern", "limit", "files"}; stdout: one
JSON list [number of the file, line, text] a hit, then {"more": whether hits were left out}.
"""

import json
import os
import re
import sys
from collections.abc import Iterator

MAX_FILE = 2 * 1024 * 1024
MAX_TEXT = 300


def main() -> None:
    job = json.load(sys.stdin)
    hits = _hits(re.compile(job["pattern"]), job["files"])
    more = False
    for count, hit in enumerate(hits):
        if count == job["limit"]:
            more = True
            break
        sys.stdout.write(json.dumps(hit) + "\n")
    sys.stdout.write(json.dumps({"more": more}) + "\n")


def _hits(pattern: re.Pattern[str], files: list[str]) -> Iterator[tuple[int, int, str]]:
    for number, name in enumerate(files):
        for at, line in enumerate(_text(name).split("\n"), 1):
            if pattern.search(line):
                yield number, at, line[:MAX_TEXT]


def _text(name: str) -> str:
    """Return the text of a file, nothing if it is no text, too large or gone."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            content = file.read(MAX_FILE + 1)
    except OSError:
        return ""
    if len(content) > MAX_FILE or b"\0" in content:
        return ""
    return content.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
