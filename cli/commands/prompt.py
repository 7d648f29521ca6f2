"""`smista "…"`: one prompt, one session, the answer on stdout and all else on stderr."""

import json
from copy import copy
from pathlib import Path
from typing import Final

import asyncclick as click

from cli.approvals import open_terminal
from cli.arguments import PROMPT, YES_TO
from cli.configuration import configured
from cli.connection import open_router, secret_names
from cli.copies import Copies
from cli.failures import DONE, FAILED, REFUSED, BadUsage, code_of_error
from cli.host import TerminalHost
from cli.prompts import whole_prompt
from cli.sessions import check_session_id, newest_session
from cli.skills import with_skills
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from cli.workspace import Collected, collect
from smista.core.errors import SmistaError
from smista.core.events import Status, TurnEnd
from smista.core.intents import Mode, TaskIntent
from smista.core.model_ref import ModelRef
from smista.core.privacy import guard
from smista.core.request import ExecuteRequest, TaskInput
from smista.core.tools import TOOLS
from smista.local.config_files import ConfigFile
from smista.local.config_overrides import Override, override
from smista.sdk.client import Client
from smista.sdk.run import drive

MAX_TITLE: Final = 80
_MORE: Final = frozenset({"shell", "git", "network"})
_PERMISSIONS: Final = frozenset(tool.permission for tool in TOOLS)


@click.command(PROMPT, hidden=True)
@click.argument("words", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the last turn as JSON on stdout.")
@click.option("--model", metavar="PROVIDER/MODEL", help="Use this model, whatever the rules say.")
@click.option("--intent", type=click.Choice([str(intent) for intent in TaskIntent]))
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Send this file along, like @PATH; may be given more than once.",
)
@click.option("--session", "session_id", metavar="ID", help="Go on in this session.")
@click.option("--continue", "go_on", is_flag=True, help="Go on in this project's newest session.")
@click.option("--deny-tools", is_flag=True, help="Let the model use no tool at all.")
@click.option(
    "--yes",
    is_flag=True,
    help="Approve file writes inside the project; --yes=shell,git,network: these too.",
)
@click.option(YES_TO, "yes_to", hidden=True, default="")
@click.option("--no-stream", is_flag=True, help="Print the answer when it is complete.")
@click.pass_obj
async def run_prompt(
    here: Surroundings,
    words: tuple[str, ...],
    as_json: bool,
    model: str | None,
    intent: str | None,
    files: tuple[Path, ...],
    session_id: str | None,
    go_on: bool,
    deny_tools: bool,
    yes: bool,
    yes_to: str,
    no_stream: bool,
) -> int:
    """Run one prompt: the words, with what is piped in after them."""
    if yes and deny_tools:
        raise BadUsage("--yes and --deny-tools exclude each other")
    if session_id is not None and go_on:
        raise BadUsage("--session and --continue exclude each other")
    if session_id is not None:
        check_session_id(session_id)
    prompt = await whole_prompt(words)
    named_model = _model(model)
    config = (await configured(here)).merged
    if config.local_preferences.no_network:
        config = override(config, Override(permissions={"network": Mode.DENY}))
    if deny_tools:
        config = override(config, Override(permissions=dict.fromkeys(_PERMISSIONS, Mode.DENY)))
    privacy = guard(config.policy(), str(here.root))
    copies = Copies(here, privacy)
    found = await with_skills(await collect(prompt, here, files=files), here, privacy)
    collected = await copies.mark(found)
    host = TerminalHost(
        here,
        config.tools,
        terminal=open_terminal(),
        yes=yes or config.local_preferences.auto_apply,
        named=_named(yes_to),
        quiet=as_json or no_stream,
        hidden=secret_names(config),
        sizes=_sizes(collected),
        guard=privacy,
        copies=copies,
    )
    for notice in (*collected.notices, *_attached(collected)):
        host.say(visible_line(notice))
    async with open_router(here, config, override=named_model) as client:
        session = session_id or await _session(client, here, prompt, host, go_on=go_on)
        await host.begin(session)
        request = _request(prompt, config, collected, named_model, intent)
        try:
            turn = await drive(client, session, request, host, stream=not no_stream)
        finally:
            host.say(f"session {visible_line(session)}")
    _print(turn, as_json=as_json, no_stream=no_stream)
    return _exit_code(turn, host)


run = copy(run_prompt)
"""The same under the name that a person types."""
run.hidden = False


async def _session(
    client: Client, here: Surroundings, prompt: str, host: TerminalHost, *, go_on: bool
) -> str:
    if not go_on:
        return (await client.create_session(_title(prompt), scope=str(here.root))).id
    newest = await newest_session(client, here)
    host.say(f"going on in: {visible_line(newest.title or 'a session without a title')}")
    return newest.id


def _named(yes_to: str) -> frozenset[str]:
    named = frozenset(filter(None, yes_to.split(",")))
    if not named <= _MORE:
        wrong = ", ".join(sorted(named - _MORE))
        raise BadUsage(f"--yes={yes_to}: {wrong}; there are {', '.join(sorted(_MORE))}")
    return named


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
    named_model: ModelRef | None,
    intent: str | None,
) -> ExecuteRequest:
    command = None if intent is None else TaskIntent(intent)
    return ExecuteRequest(
        input=TaskInput(text=prompt, command=command, explicit_model=named_model),
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
