"""The tools that run on the user's machine, in two steps: say what will be done, then do it.

`prepare` reads and changes nothing, so that a person can be shown all of it; `perform` does
exactly what was shown, or refuses. What is allowed is decided elsewhere.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import trio

from cli.files import Differs, Unusable
from cli.git_tool import GitCall
from cli.surroundings import Surroundings
from cli.tools.arguments import know
from cli.tools.calls import (
    Change,
    Command,
    Fetch,
    Looking,
    Outcome,
    Outside,
    Prepared,
    Reading,
)
from cli.tools.looking import look, prepare_looking
from cli.tools.places import leads_to, locate, touched
from cli.tools.reading import MAX_RESULT, prepare_read, read
from cli.tools.running import (
    fetch,
    prepare_fetch,
    prepare_git_call,
    prepare_shell,
    run_command,
    run_git_call,
)
from cli.tools.writing import prepare_edit, prepare_write, write
from cli.veil import PLAIN, Veil
from cli.watching import Output
from smista.core.events import ToolRequest
from smista.core.privacy import Guard

__all__ = [
    "MAX_RESULT",
    "PERMISSIONS",
    "Change",
    "Outcome",
    "Output",
    "Outside",
    "Prepared",
    "leads_to",
    "perform",
    "prepare",
    "touched",
]

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
            know(arguments, "path", "start_line", "line_count")
            return prepare_read(arguments, locate(arguments, here, agreed=agreed), here)
        case "write_file":
            know(arguments, "path", "content")
            return prepare_write(arguments, locate(arguments, here, agreed=agreed), here)
        case "edit_file":
            know(arguments, "path", "old", "new", "replace_all")
            return prepare_edit(arguments, locate(arguments, here, agreed=agreed), here)
        case "list_files" | "search_files":
            return prepare_looking(request, here, agreed=agreed, guard=guard)
        case "shell":
            return prepare_shell(arguments)
        case "fetch_url":
            return prepare_fetch(arguments)
        case "git":
            return prepare_git_call(arguments, here, guard)
        case _:
            raise Unusable(f"there is no tool {request.name!r} on this machine")


async def perform(
    prepared: Prepared,
    here: Surroundings,
    *,
    veil: Veil = PLAIN,
    output: Output | None = None,
) -> Outcome:
    """Do what was prepared. *veil* hides variables from a command.

    *output* is given what a command says while it runs. Raises Differs if a file is not any more
    what was shown of it; it was not touched then.
    """
    match prepared.action:
        case Reading() as reading:
            return await _in_thread(partial(read, reading))
        case Change() as change:
            return await _change(change, here)
        case Command() as command:
            return await run_command(command, here, veil, output)
        case Looking() as looking:
            return await look(looking, here)
        case GitCall() as git:
            # What only reads is for the model; a person who wants to see it has git.
            return await run_git_call(git, here, veil, None if git.harmless else output)
        case Fetch() as call:
            return await fetch(call)


async def _in_thread(work: Callable[[], str]) -> Outcome:
    try:
        return Outcome(content=await trio.to_thread.run_sync(work))
    except Unusable as fault:
        return Outcome(content=str(fault), is_error=True)


async def _change(change: Change, here: Surroundings) -> Outcome:
    try:
        return Outcome(content=await trio.to_thread.run_sync(write, change, here))
    except Differs:
        raise  # whoever agreed to it has to be asked anew
    except Unusable as fault:
        return Outcome(content=str(fault), is_error=True)
