"""`python -m bench [section ...]` measures the sections named, or all, and prints one table."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import trio

from bench import start, turns
from bench.figures import Figure, table

SECTIONS: Final[Mapping[str, Callable[[], Awaitable[list[Figure]]]]] = {
    "start": start.measure,
    "turns": turns.measure,
}


async def run(names: list[str]) -> list[Figure]:
    """Measure one section after the other: two at once would measure each other."""
    figures: list[Figure] = []
    for name in names:
        figures += await SECTIONS[name]()
    return figures


def main(arguments: list[str]) -> int:
    unknown = [name for name in arguments if name not in SECTIONS]
    if unknown:
        print(f"no section {', '.join(unknown)}; there are: {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    print(table(trio.run(run, arguments or list(SECTIONS))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
