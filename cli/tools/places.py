"""Where a path of a call leads: inside the project or out of it, and to what needs care."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cli.files import Unusable
from cli.surroundings import Surroundings
from cli.tools.arguments import string
from cli.tools.calls import Outside
from cli.workspace import is_ours, relative
from smista.core.events import ToolRequest
from smista.core.tools import LISTING_TOOLS

_CAREFUL_FOLDERS: Final = frozenset({".smista", ".agents", ".vscode", ".github"})
_CAREFUL_NAMES: Final = frozenset({"agents.md", ".envrc"})

MAX_PATH: Final = 4096
"""Bytes; whoever goes folder by folder could make longer ones, and nobody else could open them."""

Place = tuple[str, Path]
"""A path as given, and the real one."""


def locate(arguments: Mapping[str, Any], here: Surroundings, *, agreed: Path | None) -> Place:
    """Return the path as given and the real path of what it names, all links followed.

    Raises Outside, before anything there is looked at, unless the user *agreed* to that place.
    """
    given = string(arguments, "path")
    if not given or "\0" in given:
        raise Unusable("`path` is empty or holds a NUL")
    plain = Path(os.path.normpath(here.root / given))
    if max(len(given.encode()), len(os.fsencode(plain))) >= MAX_PATH:
        raise Unusable("`path` is too long")
    if is_ours(plain, here):
        raise Unusable(f"{given} belongs to smista itself and is closed to tools")
    if agreed is None and not (plain.is_relative_to(here.root) or is_inside(plain, here)):
        raise Outside
    real = _real(given, here, agreed=agreed)
    if agreed is None and not is_inside(real, here):
        raise Outside
    if agreed is not None and real != agreed:
        raise Unusable(f"{given} leads somewhere else by now")
    if is_ours(real, here):
        raise Unusable(f"{given} belongs to smista itself and is closed to tools")
    return given, real


def _real(given: str, here: Surroundings, *, agreed: Path | None) -> Path:
    try:
        return (here.root / given).resolve()
    except (OSError, RuntimeError) as error:
        # It may be a link out of the project, and what is wrong with it, wrong there.
        if agreed is None:
            raise Outside from None
        raise Unusable(f"{given} does not lead anywhere") from error


def leads_to(request: ToolRequest, here: Surroundings) -> Path:
    """Return where the path of *request* leads, for the eyes of the user alone. Blocks."""
    plain = here.root / str(request.arguments.get("path", ".")).replace("\0", "")
    try:
        return plain.resolve()
    except (OSError, RuntimeError):
        return Path(os.path.normpath(plain))


def touched(request: ToolRequest, here: Surroundings) -> tuple[str, ...] | None:
    """Return the given and the real path that *request* names, also if it cannot be done.

    None for one outside the project: where its links lead is nobody's business.
    """
    if request.name in LISTING_TOOLS:
        return ()  # a call that was not done has read nothing
    try:
        return both(*locate(request.arguments, here, agreed=None), here)
    except (Unusable, Outside):
        return None


def is_inside(real: Path, here: Surroundings) -> bool:
    return real.is_relative_to(here.root.resolve())


def needs_care(real: Path, here: Surroundings) -> bool:
    """Return whether other programs obey what stands in *real*."""
    inside = real.relative_to(here.root.resolve()) if is_inside(real, here) else real
    parts = [part.casefold() for part in inside.parts]
    return (
        not _CAREFUL_FOLDERS.isdisjoint(parts)
        or parts[-1:] in ([name] for name in _CAREFUL_NAMES)
        or any("hook" in part for part in parts)
    )


def both(given: str, real: Path, here: Surroundings) -> tuple[str, ...]:
    """Return the path as given and the real one as requests name them."""
    as_given = relative(Path(os.path.normpath(here.root / given)), here.root)
    return tuple(dict.fromkeys((as_given, relative(real, here.root.resolve()))))
