"""The tools `shell`, `git` and `fetch_url`: what they will do in full, and doing it."""

import shlex
from collections.abc import Mapping
from typing import Any

from cli.files import Unusable
from cli.git_tool import GitCall, prepare_git, run_git
from cli.git_words import reaches_further, rewrites_history
from cli.shell import DEFAULT_SECONDS, MAX_SECONDS, run_shell
from cli.surroundings import Surroundings
from cli.tools.arguments import know, number, string
from cli.tools.calls import Command, Fetch, Outcome, Prepared
from cli.veil import Veil
from cli.watching import Output
from smista.core.privacy import Guard
from smista.sdk.errors import NotFetched
from smista.sdk.fetching import check_url, fetch_url


def prepare_shell(arguments: Mapping[str, Any]) -> Prepared:
    know(arguments, "command", "timeout_ms")
    line = string(arguments, "command")
    if "\0" in line or not line.strip():
        raise Unusable("`command` is empty or holds a NUL")
    asked = arguments.get("timeout_ms")
    seconds = DEFAULT_SECONDS if asked is None else number(arguments, "timeout_ms", 1) / 1000
    command = Command(line=line, seconds=min(seconds, MAX_SECONDS))
    return Prepared(title="shell", shown=line, action=command, confined=False)


def prepare_git_call(
    arguments: Mapping[str, Any], here: Surroundings, guard: Guard | None
) -> Prepared:
    know(arguments, "arguments")
    git = prepare_git(arguments.get("arguments"), here, guard)
    return Prepared(
        title="git",
        shown=shlex.join(["git", *git.arguments]),
        action=git,
        confined=git.harmless,
        warning=_warning(git),
    )


def _warning(git: GitCall) -> str | None:
    if rewrites_history(git.arguments):
        return "this can rewrite history"
    if not git.harmless and reaches_further(git.arguments):
        return "this can start other programs, or write elsewhere"
    return None


def prepare_fetch(arguments: Mapping[str, Any]) -> Prepared:
    know(arguments, "url")
    try:
        url = str(check_url(string(arguments, "url")))
    except NotFetched as fault:
        raise Unusable(str(fault)) from fault
    return Prepared(title="fetch_url", shown=url, action=Fetch(url=url))


async def run_command(
    command: Command, here: Surroundings, veil: Veil, output: Output | None
) -> Outcome:
    ran = await run_shell(command.line, here, seconds=command.seconds, veil=veil, output=output)
    return Outcome(content=ran.text, is_error=ran.failed)


async def run_git_call(
    call: GitCall, here: Surroundings, veil: Veil, output: Output | None
) -> Outcome:
    try:
        done = await run_git(call, here, veil=veil, output=output)
    except OSError as error:
        return Outcome(content=f"git cannot be started: {error.strerror}", is_error=True)
    return Outcome(
        content=done.ran.text, is_error=done.ran.failed, restricted=done.restricted or None
    )


async def fetch(call: Fetch) -> Outcome:
    try:
        return Outcome(content=await fetch_url(check_url(call.url)))
    except NotFetched as fault:
        return Outcome(content=str(fault), is_error=True)
