"""One prompt from beginning to end: what goes along, which session, the run, the exit code."""

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import trio

from cli.approvals import open_terminal, present
from cli.configuration import configured
from cli.connection import open_router, secret_names
from cli.copies import Copies
from cli.failures import DONE, FAILED, REFUSED, BadUsage, code_of_error
from cli.host import TerminalHost
from cli.looking_back import check_name, find_session
from cli.own_keys import provider_hint
from cli.prompts import Said, whole_prompt
from cli.sessions import Opened, begin_session, opened
from cli.skills import load_skill, with_skills
from cli.surroundings import Surroundings
from cli.visible import echo, echo_styled, visible_line
from cli.workspace import Collected, collect, doubtful, relative
from smista.core.errors import SmistaError
from smista.core.events import Status, TurnEnd
from smista.core.intents import Mode, TaskIntent
from smista.core.model_ref import ModelRef
from smista.core.privacy import Guard, guard
from smista.core.request import ExecuteRequest, TaskInput
from smista.core.tools import TOOLS
from smista.local.config_files import ConfigFile
from smista.local.config_overrides import Override, override
from smista.sdk.client import Client
from smista.sdk.errors import ApiError
from smista.sdk.run import drive, pending_pause, resume

MAX_TITLE: Final = 80
_MORE: Final = frozenset({"shell", "git", "network"})
_PERMISSIONS: Final = frozenset(tool.permission for tool in TOOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a prompt was called with: its words and flags, as they were typed."""

    words: tuple[str, ...]
    as_json: bool
    model: str | None
    intent: str | None
    plan: bool
    files: tuple[Path, ...]
    skills: tuple[str, ...]
    session: str | None
    go_on: bool
    deny_tools: bool
    yes: bool
    yes_to: str
    no_stream: bool

    @property
    def goes_on(self) -> bool:
        """Whether it is about a session that is there."""
        return self.go_on or self.session is not None

    def check(self) -> None:
        """Raise BadUsage for flags that do not go together or say nothing."""
        if self.yes and self.deny_tools:
            raise BadUsage("--yes and --deny-tools exclude each other")
        if self.session is not None and self.go_on:
            raise BadUsage("--session and --continue exclude each other")
        if self.plan and self.intent not in (None, TaskIntent.PLAN):
            raise BadUsage(f"--plan and --intent {self.intent} exclude each other")
        if self.session is not None:
            check_name(self.session)
        self.model_ref()
        self.named()

    def command(self) -> TaskIntent | None:
        if self.plan:
            return TaskIntent.PLAN
        return None if self.intent is None else TaskIntent(self.intent)

    def model_ref(self) -> ModelRef | None:
        if self.model is None:
            return None
        try:
            return ModelRef.parse(self.model)
        except SmistaError as error:
            hint = provider_hint(self.model.partition("/")[0])
            raise BadUsage(f"{error.message}{hint}") from error

    def named(self) -> frozenset[str]:
        """Return the permissions that `--yes=…` names."""
        named = frozenset(filter(None, self.yes_to.split(",")))
        if not named <= _MORE:
            wrong = ", ".join(sorted(named - _MORE))
            raise BadUsage(f"--yes={self.yes_to}: {wrong}; there are {', '.join(sorted(_MORE))}")
        return named


async def run_once(here: Surroundings, wanted: Wanted) -> int:
    """Do what is *wanted* and return the exit code."""
    wanted.check()
    prompt = await whole_prompt(wanted.words, needed=not wanted.goes_on)
    config = _tightened((await configured(here)).merged, wanted)
    lists = guard(config.policy(), str(here.root))
    copies = Copies(here, lists)
    request, notices = None, tuple[str, ...]()
    if prompt.text:
        collected = await copies.mark(await _collected(prompt, here, wanted, lists))
        request = _request(prompt.text, config, collected, wanted)
        notices = (*collected.notices, *_attached(collected))
    host = _host(here, config, wanted, request, lists, copies)
    for notice in notices:
        host.say(visible_line(notice))
    async with open_router(here, config, override=wanted.model_ref()) as client:
        turn = await _runs(client, here, config, wanted, request, host)
    _print(turn, wanted)
    return _exit_code(turn, host)


async def _runs(
    client: Client,
    here: Surroundings,
    config: ConfigFile,
    wanted: Wanted,
    request: ExecuteRequest | None,
    host: TerminalHost,
) -> TurnEnd:
    """See a run that waits in the session through, then that of *request*; return the last turn."""
    session, pause = await _session(client, here, config, wanted, request, host)
    await host.begin(session.id)
    stream, turn = not wanted.no_stream, None
    try:
        if pause is not None:
            host.say("the last run here waits for an answer; it goes on")
            turn = await resume(client, session.id, pause, host, stream=stream, seal=session.sealer)
        if request is not None and (turn is None or turn.status is Status.COMPLETED):
            turn = await drive(
                client, session.id, request, host, stream=stream, seal=session.sealer
            )
    except ApiError as error:
        if wanted.as_json:
            echo(json.dumps(_refused(error).envelope()))
        raise
    finally:
        host.say(f"session {visible_line(session.id)}")
    if turn is None:
        raise BadUsage("no run of this session waits for an answer; write a prompt")
    return turn


async def _session(
    client: Client,
    here: Surroundings,
    config: ConfigFile,
    wanted: Wanted,
    request: ExecuteRequest | None,
    host: TerminalHost,
) -> tuple[Opened, TurnEnd | None]:
    """Return the session that is meant, and the pause that its run waits in."""
    if not wanted.goes_on:
        made = await begin_session(client, here, config, _title(request))
        for notice in made.notices(config):
            host.say(notice)
        return made, None
    found = await find_session(client, here, wanted.session)
    if wanted.session is None:
        host.say(f"going on in: {visible_line(found.title or 'a session without a title')}")
    detail = await client.session(found.id)
    return await opened(here, detail), pending_pause(detail)


def _tightened(config: ConfigFile, wanted: Wanted) -> ConfigFile:
    if config.local_preferences.no_network:
        config = override(config, Override(permissions={"network": Mode.DENY}))
    if wanted.deny_tools:
        config = override(config, Override(permissions=dict.fromkeys(_PERMISSIONS, Mode.DENY)))
    return config


async def _collected(prompt: Said, here: Surroundings, wanted: Wanted, lists: Guard) -> Collected:
    leave, notices = await _left_out(prompt, here)
    collected = await collect(prompt.text, here, files=wanted.files, leave=leave)
    collected = replace(collected, notices=(*notices, *collected.notices))
    collected = await with_skills(collected, here, lists)
    load = partial(load_skill, here=here, lists=lists)
    invoked = [await trio.to_thread.run_sync(load, name) for name in wanted.skills]
    if not invoked:
        return collected
    changed = collected.attachments.model_copy(update={"invoked_skills": tuple(invoked)})
    return replace(collected, attachments=changed)


async def _left_out(prompt: Said, here: Surroundings) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the files that are named and not sent, unless the person says so, and the notice."""
    find = partial(doubtful, prompt.text, (prompt.piped,), here)
    paths = await trio.to_thread.run_sync(find)
    if not paths:
        return (), ()
    names = [relative(path, here.root) for path in paths]
    terminal = open_terminal()
    if terminal is not None:
        title = "named in what was piped in, or outside the project:"
        echo_styled(present(title, "\n".join(names)), nl=False)
        if await terminal.ask("attach these files?"):
            return (), ()
    where = "they are named in what was piped in, or lie outside the project"
    return paths, (f"not attached: {', '.join(names)} ({where}; --file sends one all the same)",)


def _host(
    here: Surroundings,
    config: ConfigFile,
    wanted: Wanted,
    request: ExecuteRequest | None,
    lists: Guard,
    copies: Copies,
) -> TerminalHost:
    files = () if request is None else request.attachments.files
    return TerminalHost(
        here,
        config.tools,
        terminal=open_terminal(),
        yes=wanted.yes or config.local_preferences.auto_apply,
        named=wanted.named(),
        quiet=wanted.as_json or wanted.no_stream,
        hidden=secret_names(config),
        sizes={file.path: len(file.content.encode()) for file in files},
        guard=lists,
        copies=copies,
    )


def _title(request: ExecuteRequest | None) -> str:
    return "" if request is None else request.input.text.split("\n", 1)[0][:MAX_TITLE]


def _attached(collected: Collected) -> list[str]:
    paths = [file.path for file in collected.attachments.files]
    return [f"attached: {', '.join(paths)}"] if paths else []


def _request(
    prompt: str, config: ConfigFile, collected: Collected, wanted: Wanted
) -> ExecuteRequest:
    return ExecuteRequest(
        input=TaskInput(text=prompt, command=wanted.command(), explicit_model=wanted.model_ref()),
        workspace=collected.workspace,
        policy=config.policy(),
        local_preferences=config.local_preferences.travelling(),
        attachments=collected.attachments,
    )


def _refused(error: ApiError) -> TurnEnd:
    """Return the turn that ended in *error* before it had begun to speak."""
    told = {"code": error.code, "message": error.message, "details": dict(error.details)}
    present = {name: value for name, value in told.items() if value}
    return TurnEnd(Status.ERROR, {"error": present})


def _print(turn: TurnEnd, wanted: Wanted) -> None:
    if wanted.as_json:
        echo(json.dumps(turn.envelope()))
    elif wanted.no_stream and turn.status is Status.COMPLETED:
        echo(turn.data.get("message", {}).get("content", ""))


def _exit_code(turn: TurnEnd, host: TerminalHost) -> int:
    if host.refused_last:
        return REFUSED
    match turn.status:
        case Status.COMPLETED:
            return DONE
        case Status.ERROR:
            return code_of_error(turn.data["error"]["code"])
        case _:
            return FAILED
