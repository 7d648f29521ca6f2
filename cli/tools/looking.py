"""The tools `list_files` and `search_files`: what they are asked, and asking it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trio

from cli.files import Unusable
from cli.finding import MAX_LIMIT, Scope, check_pattern, list_files, search_files
from cli.surroundings import Surroundings
from cli.tools.arguments import know, number, string
from cli.tools.calls import Looking, Outcome, Prepared
from cli.tools.places import is_inside, locate
from smista.core.events import ToolRequest
from smista.core.globs import Globs, compile_globs, problem
from smista.core.privacy import Guard


def prepare_looking(
    request: ToolRequest, here: Surroundings, *, agreed: Path | None, guard: Guard | None
) -> Prepared:
    """Return what will be looked through. Raises Unusable and Outside."""
    searches = request.name == "search_files"
    arguments = {name: value for name, value in request.arguments.items() if value is not None}
    know(arguments, *(["pattern"] if searches else []), "path", "glob", "limit")
    pattern = string(arguments, "pattern") if searches else None
    if pattern is not None:
        check_pattern(pattern)
    given, real = locate({"path": arguments.get("path", ".")}, here, agreed=agreed)
    scope = Scope(
        top=real,
        root=here.root.resolve(),
        glob=_glob(arguments),
        guard=guard,
        limit=min(number(arguments, "limit", 1) if "limit" in arguments else 200, MAX_LIMIT),
    )
    return Prepared(
        title=f"{request.name} {given}",
        shown=" ".join(str(arguments[n]) for n in ("pattern", "glob") if n in arguments),
        action=Looking(scope=scope, pattern=pattern),
        confined=is_inside(real, here),
    )


async def look(looking: Looking, here: Surroundings) -> Outcome:
    try:
        if looking.pattern is None:
            found = await trio.to_thread.run_sync(list_files, looking.scope, here)
        else:
            found = await search_files(looking.pattern, looking.scope, here)
    except Unusable as fault:
        return Outcome(content=str(fault), is_error=True, paths=())
    return Outcome(content=found.text, paths=found.paths)


def _glob(arguments: Mapping[str, Any]) -> Globs | None:
    if "glob" not in arguments:
        return None
    glob = string(arguments, "glob")
    if fault := problem(glob):
        raise Unusable(f"`glob` cannot be read: {fault}")
    return compile_globs((glob,))
