"""Draws the pages of docs/ that repeat what the code says, so that they cannot differ from it.

`python -m tools.docs` writes them; with `--check` it writes nothing and fails if one is stale.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from smista.core import errors
from smista.core.lifecycle import SERVING, WAITING, Lock, Pause, Step, Told

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
DRAWN: Final = (
    "<!-- Drawn from the code by tools/docs.py; edit the code and run `./dev docs`. -->\n\n"
)


LIFECYCLE: Final = """# The life of a run

Between turns a run rests at a pause, which is stored. While a turn is served the pause does not
matter, and the lock says what a message does. The table is `smista/core/lifecycle.py`; nothing
else decides what a session takes.
"""

ERRORS: Final = """# Error codes

A code is stable: programs may rely on it. The errors are in `smista/core/errors.py`.

| code | error | worth asking again |
| --- | --- | --- |
"""


def lifecycle_page() -> str:
    """Return every state of a run with the messages it takes and the messages it refuses."""
    waiting = (_state(pause, WAITING) for pause in Pause)
    serving = (_state(lock, SERVING) for lock in Lock if lock is not Lock.FREE)
    between = ["\n## Between turns\n", *waiting]
    during = ["\n## While a turn is served or settles\n", *serving]
    return "".join([LIFECYCLE, *between, *during])


def _state(state: StrEnum, table: Mapping[Any, Step]) -> str:
    steps = {told: table.get((state, told)) for told in Told}
    rows = [_row(told, step) for told, step in steps.items() if step is not None]
    refused = ", ".join(f"`{told}`" for told, step in steps.items() if step is None)
    head = "| told | next lock | what the actor does |\n| --- | --- | --- |\n"
    return f"\n### {state}\n\n{head}{''.join(rows)}\nRefused: {refused or 'nothing'}.\n"


def _row(told: Told, step: Step) -> str:
    return f"| `{told}` | {step.lock} | {', then '.join(step.acts) or 'nothing'} |\n"


def errors_page() -> str:
    """Return every error code with the errors that carry it."""
    kinds = sorted(_leaves(errors.SmistaError), key=lambda kind: kind.code)
    rows = (
        f"| `{kind.code}` | `{kind.__name__}` | {'yes' if kind.retryable else 'no'} |\n"
        for kind in kinds
    )
    return "".join([ERRORS, *rows])


def _leaves(kind: type[errors.SmistaError]) -> Iterator[type[errors.SmistaError]]:
    below = kind.__subclasses__()
    if not below:
        yield kind
    for child in below:
        yield from _leaves(child)


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "lifecycle.md": lifecycle_page,
    "errors.md": errors_page,
}


def main(arguments: list[str]) -> int:
    drawn = {DOCS / name: DRAWN + draw() for name, draw in PAGES.items()}
    stale = {path: text for path, text in drawn.items() if _read(path) != text}
    if "--check" in arguments:
        for path in stale:
            print(f"docs/{path.name} is not what the code says; run ./dev docs", file=sys.stderr)
        return bool(stale)
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote docs/{path.name}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
