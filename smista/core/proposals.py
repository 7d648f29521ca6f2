"""The change that a file tool proposes, as a unified diff made from the call's arguments alone.

The cost is linear: what a model writes, or a file holds, must not hold anybody up. So lines are
compared one by one only where few are left between the equal beginning and the equal end.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

_COMPARED: Final = 40_000  # pairs of lines that may be compared one by one
_CONTEXT: Final = 3
_NO_NEWLINE: Final = "\\ No newline at end of file\n"


def proposed_change(
    tool: str, arguments: Mapping[str, Any], known: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return path and unified diff of a call of a file-writing tool, else None.

    *known* maps paths to the content the run was started with. `edit_file` is a hunk without its
    place in the file where that is not known.
    """
    path = arguments.get("path")
    if not isinstance(path, str):
        return None
    before = known.get(path)
    match tool:
        case "write_file":
            return path, unified(path, before, str(arguments.get("content", "")))
        case "edit_file":
            old, new = str(arguments.get("old", "")), str(arguments.get("new", ""))
            if old and before is not None and before.count(old) == 1:
                return path, unified(path, before, before.replace(old, new))
            return path, unified(path, old, new)
        case _:
            return None


def unified(path: str, before: str | None, after: str) -> str:
    """Return the unified diff of *path* from *before* (None: there is no file) to *after*.

    Empty if nothing changes. It applies as any other diff does; where much is changed in the
    middle, that is one block of lines out and one of lines in.
    """
    old, new = _lines(before or ""), _lines(after)
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    if head == len(old) == len(new):
        return ""
    names = f"--- {'/dev/null' if before is None else f'a/{path}'}\n+++ b/{path}\n"
    start, stop = max(head - _CONTEXT, 0), max(tail - _CONTEXT, 0)
    cut_old, cut_new = old[start : len(old) - stop], new[start : len(new) - stop]
    if len(cut_old) * len(cut_new) <= _COMPARED:
        return names + "".join(_compared(cut_old, cut_new, start))
    return names + "".join(_block(cut_old, cut_new, start, head - start, tail - stop))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def _shared(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many of the first lines are equal."""
    shortest = min(len(left), len(right))
    return next((n for n in range(shortest) if left[n] != right[n]), shortest)


def _compared(old: list[str], new: list[str], start: int) -> list[str]:
    groups = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT)
    hunks: list[str] = []
    for group in groups:
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        hunks.append(_head(start + i1, i2 - i1, start + j1, j2 - j1))
        for kind, a, b, c, d in group:
            if kind == "equal":
                hunks += _marked(" ", old[a:b])
            else:
                hunks += [*_marked("-", old[a:b]), *_marked("+", new[c:d])]
    return hunks


def _block(old: list[str], new: list[str], start: int, before: int, after: int) -> list[str]:
    """Return one hunk: *before* and *after* lines of context around all that differs."""
    return [
        _head(start, len(old), start, len(new)),
        *_marked(" ", old[:before]),
        *_marked("-", old[before : len(old) - after]),
        *_marked("+", new[before : len(new) - after]),
        *_marked(" ", old[len(old) - after :] if after else []),
    ]


def _head(old: int, old_count: int, new: int, new_count: int) -> str:
    return f"@@ -{_span(old, old_count)} +{_span(new, new_count)} @@\n"


def _span(start: int, count: int) -> str:
    # A range of no lines names the line before it; a range of one needs no count.
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"


def _marked(mark: str, lines: Sequence[str]) -> list[str]:
    return [
        f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n{_NO_NEWLINE}" for line in lines
    ]
