"""`python -m bench [section ...]` measures the sections named, or all, and prints one table."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import trio

from bench import (
    actors,
    cancel,
    decision,
    encrypted,
    looking_back,
    memory,
    providers,
    start,
    storage,
    streams,
    terminal,
    turns,
)
from bench.figures import Figure, table
from bench.house import SETTINGS
from bench.processes import until_sigterm

SECTIONS: Final[Mapping[str, Callable[[], Awaitable[list[Figure]]]]] = {
    "decision": decision.measure,
    "storage": storage.measure,
    "looking-back": looking_back.measure,
    "turns": turns.measure,
    "streams": streams.measure,
    "cancel": cancel.measure,
    "encrypted": encrypted.measure,
    "actors": actors.measure,
    "providers": providers.measure,
    "start": start.measure,
    "terminal": terminal.measure,
    "memory": memory.measure,
}
_ENOUGH: Final = 235.0
"""Seconds after which a bench on a machine that is too busy ends with what it has."""


@dataclass(slots=True)
class Measured:
    """Figures as they come in. *left_out*: sections for which there was no time."""

    left_out: list[str]
    figures: list[Figure] = field(default_factory=list[Figure])


async def run(names: list[str], *, enough: float = _ENOUGH) -> Measured:
    """Measure one section after the other: two at once would measure each other."""
    measured = Measured(left_out=list(names))
    with trio.move_on_after(enough):
        async with until_sigterm():
            for name in names:
                print(f"measuring {name} ...", file=sys.stderr)
                measured.figures += await SECTIONS[name]()
                measured.left_out.remove(name)
    return measured


def main(arguments: list[str]) -> int:
    unknown = [name for name in arguments if name not in SECTIONS]
    if unknown:
        print(f"no section {', '.join(unknown)}; there are: {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    settings = SETTINGS.format(port="PORT", model_port="PORT")
    print(f"The router.toml of every router measured here:\n\n{settings}")
    measured = trio.run(run, arguments or list(SECTIONS))
    print(table(measured.figures))
    if measured.left_out:
        print(f"no time was left for: {', '.join(measured.left_out)}", file=sys.stderr)
    return 1 if measured.left_out else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
