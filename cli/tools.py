"""The tools that run on the user's machine, in two steps: say what will be done, then do it.

`prepare` reads and changes nothing, so that a person can be shown all of it; `perform` does
exactly what was shown, or refuses. What is allowed is decided elsewhere.
"""

import os
import shlex
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import trio

from cli.files import (
    MAX_FILE,
    Unusable,
    decode,
    is_crlf,
    lines_of,
    read_file,
    replace_file,
)
from cli.finding import MAX_LIMIT, Scope, check_pattern, list_files, search_files
from cli.git_tool import GitCall, prepare_git, run_git
from cli.shell import DEFAULT_SECONDS, MAX_SECONDS, run_shell
from cli.surroundings import Surroundings
from cli.workspace import is_ours, relative
from smista.core.events import ToolRequest
from smista.core.globs import Globs, compile_globs, problem
from smista.core.privacy import Guard
from smista.core.proposals import unified
from smista.core.tools import LISTING_TOOLS
from smista.sdk.errors import NotFetched
from smista.sdk.fetching import check_url, fetch_url

PERMISSIONS: Final[Mapping[str, str]] = {
    "read_file": "file_read",
    "write_file": "file_write",
    "edit_file": "file_write",
    "shell": "shell",
    "list_files": "file_read",
    "search_files": "file_read",
    "git": "git",
    "fetch_url": "network",
}
"""Tool → the permission key that governs it. There are no other tools here."""

MAX_RESULT: Final = 64 * 1024
"""Characters of a file that a model is given at once: half the window of a small model."""

_CAREFUL_FOLDERS: Final = frozenset({".smista", ".agents", ".vscode", ".github"})
_CAREFUL_NAMES: Final = frozenset({"agents.md", ".envrc"})


Place = tuple[str, Path]
"""A path as given, and the real one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    real: Path
    first: int
    count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The whole file before (None: there was none) and after."""

    real: Path
    before: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    line: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """*pattern* None asks for names alone."""

    scope: Scope
    pattern: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A call as it will be done. *shown* is the whole diff or command.

    *paths*: the path as given and the real one. *confined*: nothing outside the root is
    touched and nothing that steers other programs is written.
    """

    title: str
    shown: str
    action: Reading | Change | Command | Looking | GitCall | Fetch
    paths: tuple[str, ...] | None = None
    confined: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """*paths* are known only afterwards where a call does not name its files."""

    content: str
    is_error: bool = False
    paths: tuple[str, ...] | None = None
    restricted: bool | None = None


class Outside(Exception):
    """A call leads out of the project, and nobody agreed yet to look there."""


def prepare(
    request: ToolRequest,
    here: Surroundings,
    *,
    agreed: Path | None = None,
    guard: Guard | None = None,
) -> Prepared:
    """Return what *request* would do. Blocks on files. Raises Unusable.

    Raises Outside, whatever is there and before it is looked at, unless the user *agreed* to the
    real path (`leads_to`).
    """
    arguments = request.arguments
    match request.name:
        case "read_file":
            _know(arguments, "path", "start_line", "line_count")
            return _prepare_read(arguments, _locate(arguments, here, agreed=agreed), here)
        case "write_file":
            _know(arguments, "path", "content")
            return _prepare_write(arguments, _locate(arguments, here, agreed=agreed), here)
        case "edit_file":
            _know(arguments, "path", "old", "new", "replace_all")
            return _prepare_edit(arguments, _locate(arguments, here, agreed=agreed), here)
        case "list_files" | "search_files":
            return _prepare_looking(request, here, agreed=agreed, guard=guard)
        case "shell":
            return _prepare_shell(arguments)
        case "fetch_url":
            _know(arguments, "url")
            return _prepare_fetch(_string(arguments, "url"))
        case "git":
            _know(arguments, "arguments")
            git = prepare_git(arguments.get("arguments"), here, guard)
            shown = shlex.join(["git", *git.arguments])
            return Prepared(title="git", shown=shown, action=git, confined=git.harmless)
        case _:
            raise Unusable(f"there is no tool {request.name!r} on this machine")


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
        return _both(*_locate(request.arguments, here, agreed=None), here)
    except (Unusable, Outside):
        return None


async def perform(
    prepared: Prepared, here: Surroundings, *, hidden: frozenset[str] = frozenset()
) -> Outcome:
    """Do what was prepared. *hidden* names variables that a command must not see."""
    match prepared.action:
        case Reading() as reading:
            work = partial(_read, reading)
        case Change() as change:
            work = partial(_write, change, here)
        case Command(line=line, seconds=seconds):
            ran = await run_shell(line, here, seconds=seconds, hidden=hidden)
            return Outcome(content=ran.text, is_error=ran.failed)
        case Looking() as looking:
            return await _look(looking, here)
        case GitCall() as git:
            return await _git(git, here, hidden)
        case Fetch(url=url):
            return await _fetch(url)
    try:
        return Outcome(content=await trio.to_thread.run_sync(work))
    except Unusable as fault:
        return Outcome(content=str(fault), is_error=True)


def _prepare_read(arguments: Mapping[str, Any], place: Place, here: Surroundings) -> Prepared:
    given, real = place
    count = None if arguments.get("line_count") is None else _number(arguments, "line_count", 1)
    reading = Reading(real=real, first=_number(arguments, "start_line", 1), count=count)
    return Prepared(
        title=f"read_file {given}",
        shown="",
        action=reading,
        paths=_both(given, real, here),
        confined=_inside(real, here),
    )


def _prepare_write(arguments: Mapping[str, Any], place: Place, here: Surroundings) -> Prepared:
    given, real = place
    text = _string(arguments, "content")
    before = read_file(real)
    if before is not None and is_crlf(before):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return _change("write_file", given, real, before, text.encode(), here)


def _prepare_edit(arguments: Mapping[str, Any], place: Place, here: Surroundings) -> Prepared:
    given, real = place
    old, new = _string(arguments, "old"), _string(arguments, "new")
    before = read_file(real)
    if before is None:
        raise Unusable(f"{given} does not exist; use write_file to create it")
    text = decode(before, given)
    if old not in text and is_crlf(before):
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    found = text.count(old) if old else 0
    if found == 0:
        raise Unusable(f"`old` does not occur in {given}; read the file and quote it exactly")
    if found > 1 and arguments.get("replace_all") is not True:
        raise Unusable(f"`old` occurs {found} times in {given}; quote more, or set replace_all")
    return _change("edit_file", given, real, before, text.replace(old, new).encode(), here)


def _prepare_looking(
    request: ToolRequest, here: Surroundings, *, agreed: Path | None, guard: Guard | None
) -> Prepared:
    searches = request.name == "search_files"
    arguments = {name: value for name, value in request.arguments.items() if value is not None}
    _know(arguments, *(["pattern"] if searches else []), "path", "glob", "limit")
    pattern = _string(arguments, "pattern") if searches else None
    if pattern is not None:
        check_pattern(pattern)
    given, real = _locate({"path": arguments.get("path", ".")}, here, agreed=agreed)
    scope = Scope(
        top=real,
        root=here.root.resolve(),
        glob=_glob(arguments),
        guard=guard,
        limit=min(_number(arguments, "limit", 1) if "limit" in arguments else 200, MAX_LIMIT),
    )
    return Prepared(
        title=f"{request.name} {given}",
        shown=" ".join(str(arguments[n]) for n in ("pattern", "glob") if n in arguments),
        action=Looking(scope=scope, pattern=pattern),
        confined=_inside(real, here),
    )


def _glob(arguments: Mapping[str, Any]) -> Globs | None:
    if "glob" not in arguments:
        return None
    glob = _string(arguments, "glob")
    if fault := problem(glob):
        raise Unusable(f"`glob` cannot be read: {fault}")
    return compile_globs((glob,))


async def _look(looking: Looking, here: Surroundings) -> Outcome:
    try:
        if looking.pattern is None:
            found = await trio.to_thread.run_sync(list_files, looking.scope, here)
        else:
            found = await search_files(looking.pattern, looking.scope, here)
    except Unusable as fault:
        return Outcome(content=str(fault), is_error=True, paths=())
    return Outcome(content=found.text, paths=found.paths)


def _prepare_fetch(text: str) -> Prepared:
    try:
        url = str(check_url(text))
    except NotFetched as fault:
        raise Unusable(str(fault)) from fault
    return Prepared(title="fetch_url", shown=url, action=Fetch(url=url))


async def _fetch(text: str) -> Outcome:
    try:
        return Outcome(content=await fetch_url(check_url(text)))
    except NotFetched as fault:
        return Outcome(content=str(fault), is_error=True)


async def _git(call: GitCall, here: Surroundings, hidden: frozenset[str]) -> Outcome:
    try:
        done = await run_git(call, here, hidden=hidden)
    except OSError as error:
        return Outcome(content=f"git cannot be started: {error.strerror}", is_error=True)
    return Outcome(
        content=done.ran.text, is_error=done.ran.failed, restricted=done.restricted or None
    )


def _prepare_shell(arguments: Mapping[str, Any]) -> Prepared:
    _know(arguments, "command", "timeout_ms")
    line = _string(arguments, "command")
    if "\0" in line or not line.strip():
        raise Unusable("`command` is empty or holds a NUL")
    asked = arguments.get("timeout_ms")
    seconds = DEFAULT_SECONDS if asked is None else _number(arguments, "timeout_ms", 1) / 1000
    command = Command(line=line, seconds=min(seconds, MAX_SECONDS))
    return Prepared(title="shell", shown=line, action=command, confined=False)


def _change(
    tool: str, given: str, real: Path, before: bytes | None, after: bytes, here: Surroundings
) -> Prepared:
    if len(after) > MAX_FILE:
        raise Unusable(f"more than {MAX_FILE} bytes are not written at once")
    if any(part.casefold() == ".git" for part in real.parts):
        raise Unusable(f"{given}: nothing below .git is ever written")
    old = None if before is None else decode(before, given)
    return Prepared(
        title=f"{tool} {given}",
        shown=unified(given, old, after.decode()),
        action=Change(real=real, before=before, after=after),
        paths=_both(given, real, here),
        confined=_inside(real, here) and not _careful(real, here),
    )


def _read(reading: Reading) -> str:
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


def _write(change: Change, here: Surroundings) -> str:
    replace_file(change.real, change.before, change.after, here.umask)
    return f"written, {len(change.after)} bytes"


def _locate(arguments: Mapping[str, Any], here: Surroundings, *, agreed: Path | None) -> Place:
    """Return the path as given and the real path of what it names, all links followed."""
    given = _string(arguments, "path")
    if not given or "\0" in given:
        raise Unusable("`path` is empty or holds a NUL")
    plain = Path(os.path.normpath(here.root / given))
    if is_ours(plain, here):
        raise Unusable(f"{given} belongs to smista itself and is closed to tools")
    if agreed is None and not (plain.is_relative_to(here.root) or _inside(plain, here)):
        raise Outside
    real = _real(given, here, agreed=agreed)
    if agreed is None and not _inside(real, here):
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


def _inside(real: Path, here: Surroundings) -> bool:
    return real.is_relative_to(here.root.resolve())


def _careful(real: Path, here: Surroundings) -> bool:
    inside = real.relative_to(here.root.resolve()) if _inside(real, here) else real
    parts = [part.casefold() for part in inside.parts]
    return (
        not _CAREFUL_FOLDERS.isdisjoint(parts)
        or parts[-1] in _CAREFUL_NAMES
        or any("hook" in part for part in parts)
    )


def _both(given: str, real: Path, here: Surroundings) -> tuple[str, ...]:
    as_given = relative(Path(os.path.normpath(here.root / given)), here.root)
    return tuple(dict.fromkeys((as_given, relative(real, here.root.resolve()))))


def _know(arguments: Mapping[str, Any], *names: str) -> None:
    unknown = sorted(set(arguments) - set(names))
    if unknown:
        raise Unusable(f"unknown arguments {', '.join(unknown)}; there are {', '.join(names)}")


def _string(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise Unusable(f"`{name}` is missing or not a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Unusable(f"`{name}` is not valid text") from error
    return value


def _number(arguments: Mapping[str, Any], name: str, least: int) -> int:
    value = arguments.get(name, least)
    if value is None:
        return least
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Unusable(f"`{name}` should be an integer of {least} or more")
    return value
