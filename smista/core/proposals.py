"""The change that a file tool proposes, as a unified diff made from the call's arguments alone."""

import difflib
from collections.abc import Mapping
from typing import Any


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
    match tool:
        case "write_file":
            return path, _diff(path, known.get(path), str(arguments.get("content", "")))
        case "edit_file":
            old, new = str(arguments.get("old", "")), str(arguments.get("new", ""))
            before = known.get(path)
            if before is not None and before.count(old) == 1:
                return path, _diff(path, before, before.replace(old, new))
            return path, _diff(path, old, new)
        case _:
            return None


def _diff(path: str, before: str | None, after: str) -> str:
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        after.splitlines(keepends=True),
        "/dev/null" if before is None else f"a/{path}",
        f"b/{path}",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
