"""`smista "…"`: one prompt, one session, the answer on stdout and all else on stderr."""

import json
import os
import sys
from functools import partial
from typing import Final, TextIO, cast

import asyncclick as click
import trio

from cli.approvals import open_terminal
from cli.arguments import PROMPT
from cli.configuration import configured
from cli.connection import open_router, secret_names
from cli.failures import DONE, FAILED, REFUSED, BadUsage, code_of_error
from cli.host import TerminalHost
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from cli.workspace import Collected, collect
from smista.core.errors import SmistaError
from smista.core.events import Status, TurnEnd
from smista.core.intents import TaskIntent
from smista.core.model_ref import ModelRef
from smista.core.request import ExecuteRequest, TaskInput
from smista.local.config_files import ConfigFile
from smista.sdk.run import drive

MAX_TITLE: Final = 80


@click.command(PROMPT, hidden=True)
@click.argument("words", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the last turn as JSON on stdout.")
@click.option("--model", metavar="PROVIDER/MODEL", help="Use this model, whatever the rules say.")
@click.option("--intent", type=click.Choice([str(intent) for intent in TaskIntent]))
@click.option("--yes", is_flag=True, help="Approve file writes inside the project.")
@click.option("--no-stream", is_flag=True, help="Print the answer when it is complete.")
@click.pass_obj
async def run_prompt(
    here: Surroundings,
    words: tuple[str, ...],
    as_json: bool,
    model: str | None,
    intent: str | None,
    yes: bool,
    no_stream: bool,
) -> int:
    """Run one prompt and leave with the outcome."""
    prompt = _whole_prompt(words, await _piped())
    override = _model(model)
    config = (await configured(here)).merged
    collected = await collect(prompt, here)
    host = TerminalHost(
        here,
        config.tools,
        terminal=open_terminal(),
        yes=yes or config.local_preferences.auto_apply,
        quiet=as_json or no_stream,
        hidden=secret_names(config),
        sizes=_sizes(collected),
    )
    for notice in (*collected.notices, *_attached(collected)):
        host.say(visible_line(notice))
    async with open_router(here, config, override=override) as client:
        session = await client.create_session(_title(prompt), scope=str(here.root))
        request = _request(prompt, config, collected, override, intent)
        turn = await drive(client, session.id, request, host, stream=not no_stream)
    host.say(f"session {visible_line(session.id)}")
    _print(turn, as_json=as_json, no_stream=no_stream)
    return _exit_code(turn, host)


def _whole_prompt(words: tuple[str, ...], piped: str) -> str:
    prompt = "\n\n".join(part for part in (" ".join(words).strip(), piped.strip()) if part)
    if not prompt:
        raise BadUsage('there is no prompt; write: smista "your task", or see smista --help')
    if any("\ud800" <= char <= "\udfff" for char in prompt):
        raise BadUsage("the prompt is not valid text in the encoding of this terminal")
    return prompt


async def _piped() -> str:
    stdin = cast("TextIO | None", sys.stdin)  # None where a service was given none
    if stdin is None or stdin.isatty():
        return ""
    # A pipe that never ends must not keep us from leaving.
    read = partial(_read_all, stdin.fileno())
    try:
        return (await trio.to_thread.run_sync(read, abandon_on_cancel=True)).decode()
    except UnicodeDecodeError as error:
        raise BadUsage("what was piped in is not UTF-8 text") from error


def _read_all(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    while piece := os.read(descriptor, 65_536):
        pieces.append(piece)
    return b"".join(pieces)


def _model(text: str | None) -> ModelRef | None:
    try:
        return None if text is None else ModelRef.parse(text)
    except SmistaError as error:
        raise BadUsage(error.message) from error


def _title(prompt: str) -> str:
    return prompt.split("\n", 1)[0][:MAX_TITLE]


def _attached(collected: Collected) -> list[str]:
    paths = [file.path for file in collected.attachments.files]
    return [f"attached: {', '.join(paths)}"] if paths else []


def _sizes(collected: Collected) -> dict[str, int]:
    return {file.path: len(file.content.encode()) for file in collected.attachments.files}


def _request(
    prompt: str,
    config: ConfigFile,
    collected: Collected,
    override: ModelRef | None,
    intent: str | None,
) -> ExecuteRequest:
    command = None if intent is None else TaskIntent(intent)
    return ExecuteRequest(
        input=TaskInput(text=prompt, command=command, explicit_model=override),
        workspace=collected.workspace,
        policy=config.policy(),
        local_preferences=config.local_preferences.travelling(),
        attachments=collected.attachments,
    )


def _print(turn: TurnEnd, *, as_json: bool, no_stream: bool) -> None:
    if as_json:
        echo(json.dumps(turn.envelope()))
    elif no_stream and turn.status is Status.COMPLETED:
        echo(turn.data.get("message", {}).get("content", ""))


def _exit_code(turn: TurnEnd, host: TerminalHost) -> int:
    match turn.status:
        case Status.COMPLETED:
            return REFUSED if host.refused_last else DONE
        case Status.ERROR:
            return REFUSED if host.refused_last else code_of_error(turn.data["error"]["code"])
        case _:
            return REFUSED if host.refused_last else FAILED
