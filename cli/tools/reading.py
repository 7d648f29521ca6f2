"""The tool `read_file`: a text file, or some lines of it, as much as a model takes at once."""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

from cli.files import Unusable, decode, lines_of, read_file
from cli.surroundings import Surroundings
from cli.tools.arguments import number
from cli.tools.calls import Prepared, Reading
from cli.tools.places import Place, both, is_inside

MAX_RESULT: Final = 64 * 1024
"""Characters of a file that a model is given at once: half the window of a small model."""


def prepare_read(arguments: Mapping[str, Any], place: Place, here: Surroundings) -> Prepared:
    given, real = place
    count = None if arguments.get("line_count") is None else number(arguments, "line_count", 1)
    reading = Reading(real=real, first=number(arguments, "start_line", 1), count=count)
    return Prepared(
        title=f"read_file {given}",
        shown="",
        action=reading,
        paths=both(given, real, here),
        confined=is_inside(real, here),
    )


def read(reading: Reading) -> str:
    """Return the lines asked for. Blocks. Raises Unusable."""
    content = read_file(reading.real)
    if content is None:
        raise Unusable("there is no such file")
    lines = lines_of(decode(content, reading.real.name))
    last = None if reading.count is None else reading.first - 1 + reading.count
    return _cut(lines[reading.first - 1 : last], reading.first, len(lines))


def _cut(lines: list[str], first: int, total: int) -> str:
    """Return as many *lines* as a model is given at once, and where to go on."""
    text = "".join(lines)
    if len(text) <= MAX_RESULT:
        return text
    ends = list(accumulate(map(len, lines)))
    fit = bisect_right(ends, MAX_RESULT)
    if fit == 0:
        return f"{text[:MAX_RESULT]}\n[the rest of line {first} is left out; it is too long]"
    last = first + fit - 1
    note = f"[lines {first} to {last} of {total}; go on with start_line={last + 1}]"
    return f"{text[: ends[fit - 1]]}{note}"
