"""Prompts and their runs: what goes along is collected, shown and asked about, then sent."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import trio

from cli.approvals import Answer
from cli.commands.login import make_user
from cli.connection import NotLoggedIn, secret_names
from cli.copies import Copies
from cli.interactive import history
from cli.interactive.gauge import Gauge
from cli.interactive.host import PromptHost, rows_of
from cli.interactive.line import RouterLine
from cli.interactive.screen import Asked, Entered, Screen
from cli.interactive.telling import Telling
from cli.own_keys import stored_key
from cli.questions import size_words
from cli.sessions import Opened, begin_session
from cli.skills import with_skills
from cli.surroundings import Surroundings
from cli.visible import visible_line
from cli.workspace import Collected, collect, referenced, relative
from smista.core.events import Status, TurnEnd
from smista.core.intents import Mode, TaskIntent
from smista.core.model_ref import ModelRef
from smista.core.privacy import guard
from smista.core.request import ExecuteRequest, Skill, TaskInput
from smista.local.config_checks import is_loopback
from smista.local.config_files import ConfigFile, load_client_config
from smista.local.config_overrides import Override, override
from smista.local.credentials import Scope
from smista.sdk.client import Client
from smista.sdk.errors import SdkError, Unreachable
from smista.sdk.run import Steering, drive, resume

MAX_TITLE: Final = 80


@dataclass(slots=True)
class Setting:
    """What the person chose for the prompts to come."""

    plan: bool = False
    model: ModelRef | None = None
    skills: list[Skill] = field(default_factory=list[Skill])


@dataclass(slots=True)
class Conversation:
    """The parts of a talk. *session* None: the next prompt makes one."""

    here: Surroundings
    screen: Screen
    line: RouterLine
    gauge: Gauge
    telling: Telling
    setting: Setting
    session: Opened | None = None
    host: PromptHost | None = None
    policy: ConfigFile | None = None
    noticed: frozenset[str] = frozenset()
    one_login: trio.Lock = field(default_factory=trio.Lock)

    def say(self, line: str) -> None:
        """Put *line* above what is being answered, which it leaves whole."""
        self.screen.put(self.screen.pen.dim(line))

    def notice(self, notices: Iterable[str]) -> None:
        """Tell each of *notices* once, not with every prompt again."""
        fresh = [notice for notice in notices if notice not in self.noticed]
        for notice in fresh:
            self.say(visible_line(notice))
        self.noticed |= set(fresh)

    async def config(self) -> ConfigFile:
        """Return what the files say now. Raises InvalidConfig."""
        load = partial(load_client_config, self.here.root, self.here.places)
        read = await trio.to_thread.run_sync(load)
        self.notice(read.notices)
        config = read.merged
        if config.local_preferences.no_network:
            config = override(config, Override(permissions={"network": Mode.DENY}))
        if config != self.policy:
            # What was granted for the session was granted under the policy of then.
            self.policy, self.host = config, None
        return config

    async def client(self) -> Client:
        """Return a signed-in client; whoever has no key yet is offered one, once at a time."""
        config = await self.config()
        try:
            return await self.line.client(config, self.setting.model)
        except NotLoggedIn as fault:
            async with self.one_login:
                if await stored_key(self.here, config.router) is None:
                    await self._log_in(config, fault)
            return await self.line.client(config, self.setting.model)

    async def _log_in(self, config: ConfigFile, fault: NotLoggedIn) -> None:
        """Do what `smista login` does, if the person agrees; else raise *fault*."""
        if not is_loopback(fault.url):
            raise fault
        title = f"you have no key for your router at {visible_line(fault.url)} yet"
        asked = "make a user on it and keep its key for this project, as smista login does?"
        question = Asked(title=self.screen.pen.title(title), rows=(), asked=asked)
        if not (await self.screen.ask(question)).approved:
            raise fault
        made = await make_user(self.here, config.router, Scope.PROJECT)
        self.say(visible_line(f"logged in; the key is kept in {made.kept_in}"))

    def mark(self) -> None:
        """Show what is set for the next prompt."""
        self.screen.mode("plan > " if self.setting.plan else "> ")
        self.gauge.set_mode(f"model {self.setting.model}" if self.setting.model else "")

    def forget_session(self) -> None:
        self.session, self.host = None, None
        self.gauge.begin()

    async def host_for(self, config: ConfigFile, session: Opened) -> PromptHost:
        """Return the host of this session; it remembers what the person granted in it."""
        if self.host is None:
            privacy = guard(config.policy(), str(self.here.root))
            self.host = PromptHost(
                self.here,
                config.tools,
                self.screen,
                self.telling,
                self.gauge,
                yes=config.local_preferences.auto_apply,
                hidden=secret_names(config),
                guard=privacy,
                copies=Copies(self.here, privacy),
            )
            await self.host.begin(session.id)
        return self.host


class Runs:
    """Serves one prompt after the other.

    *begun*: a prompt is on its way or its run goes on. *heard*: the router took the newest one.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._here = conversation
        self._steering = Steering()
        self._settled = trio.Event()
        self.begun = False
        self.heard = False

    @property
    def going(self) -> bool:
        return self._steering.live

    async def prompt(self, said: Entered) -> None:
        """Send *said* and see its run through."""
        self.heard = False
        self._settled = trio.Event()
        talk = self._here
        mark = "plan > " if talk.setting.plan else "> "
        talk.screen.put(talk.screen.pen.prompt(shortened(said.text), mark))
        config = await talk.config()
        request = await self.request(said, config)
        client = await talk.client()
        session = await self._session(client, config, said)
        host = await talk.host_for(config, session)
        host.carries({file.path: len(file.content.encode()) for file in request.attachments.files})
        await self._keep(said, session)
        talk.setting.skills.clear()
        drive_on = partial(drive, steering=self._steering, seal=session.sealer)
        go = partial(drive_on, client, session.id, request, host)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._foresee, client, session.id, request)
            await self._see_through(go, host)
            nursery.cancel_scope.cancel(reason="the run is over")

    async def go_on(self, client: Client, session: Opened, pause: TurnEnd) -> None:
        """Answer the *pause* that the run of *session* waits in, and see the run through."""
        self._settled = trio.Event()
        host = await self._here.host_for(await self._here.config(), session)
        resume_on = partial(resume, steering=self._steering, seal=session.sealer)
        go = partial(resume_on, client, session.id, pause, host)
        await self._see_through(go, host)

    async def inject(self, text: str) -> bool:
        """Tell the run *text*; return whether there was one to tell."""
        talk = self._here
        # A prompt that is on its way cannot be told anything before the router has it.
        await self._settled.wait()
        taken = await self._steering.inject(text)
        if taken:
            talk.telling.end()
            talk.screen.put(talk.screen.pen.prompt(shortened(text), "+ "))
            if any(referenced(text, talk.here.start)):
                talk.say("files go along with a new prompt only; the model may read these itself")
        return taken

    def settle(self) -> None:
        """Say that what was begun is over; who waits to tell it something hears that."""
        self._settled.set()

    async def stop(self) -> None:
        await self._steering.stop()

    async def request(self, said: Entered, config: ConfigFile) -> ExecuteRequest:
        """Collect what goes along with *said*; what was not typed here is asked about first."""
        talk = self._here
        privacy = guard(config.policy(), str(talk.here.root))
        found = await with_skills(await self._collected(said), talk.here, privacy)
        collected = await Copies(talk.here, privacy).mark(found)
        talk.notice(collected.notices)
        _list_attached(talk, collected)
        attachments = collected.attachments
        if talk.setting.skills:
            attachments = attachments.model_copy(
                update={"invoked_skills": tuple(talk.setting.skills)}
            )
        plan = TaskIntent.PLAN if talk.setting.plan else None
        return ExecuteRequest(
            input=TaskInput(text=said.text, command=plan, explicit_model=talk.setting.model),
            workspace=collected.workspace,
            policy=config.policy(),
            local_preferences=config.local_preferences.travelling(),
            attachments=attachments,
        )

    async def _collected(self, said: Entered) -> Collected:
        here = self._here.here
        doubtful = _doubtful(said, here)
        if doubtful and not (await self._confirm(doubtful)).approved:
            kept = [path for path in referenced(said.text, here.start) if path not in doubtful]
            return await collect("", here, files=tuple(kept))
        return await collect(said.text, here)

    async def _confirm(self, doubtful: list[Path]) -> Answer:
        root, screen = self._here.here.root, self._here.screen
        names = "\n".join(relative(path, root) for path in doubtful)
        return await screen.ask(
            Asked(
                title=screen.pen.title("named in a paste, or outside the project:"),
                rows=rows_of(names, screen),
                asked="attach these files?",
            )
        )

    async def _session(self, client: Client, config: ConfigFile, said: Entered) -> Opened:
        """Return the session; the first prompt makes one and gives it its title."""
        talk = self._here
        if talk.session is None:
            title = said.text.strip().split("\n", 1)[0][:MAX_TITLE]
            talk.session = await begin_session(client, talk.here, config, title)
            talk.notice(talk.session.notices(config))
        return talk.session

    async def _keep(self, said: Entered, session: Opened) -> None:
        sealed = session.sealer is not None
        keep = partial(
            history.keep, self._here.here, said.text, session_id=session.id, sealed=sealed
        )
        await trio.to_thread.run_sync(keep)

    async def _foresee(self, client: Client, session_id: str, request: ExecuteRequest) -> None:
        try:
            self._here.gauge.foresee(await client.preview(session_id, request))
        except SdkError:
            return  # the run itself says what is wrong

    async def _see_through(self, go: Callable[[], Awaitable[TurnEnd]], host: PromptHost) -> None:
        talk = self._here
        self.begun = True
        host.begin_run(self._settled)
        talk.gauge.begin()
        try:
            with talk.line.held():
                turn = await go()
            talk.telling.end()
            if turn.status is Status.IDLE:
                talk.say("stopped")
        except Unreachable:
            talk.say("once the router is back, /resume goes on with this run")
            raise
        finally:
            self.heard = host.heard
            self.settle()
            talk.telling.end()


def shortened(text: str) -> str:
    """Return *text* as it stands in the record above: the middle of a long one is left out."""
    lines = text.split("\n")
    if len(lines) > 20:
        left = f"[{len(lines) - 10:,} more lines]"
        lines = [*lines[:5], left, *lines[-5:]]
    return "\n".join(line if len(line) <= 500 else f"{line[:500]}…" for line in lines)


def _doubtful(said: Entered, here: Surroundings) -> list[Path]:
    """Return the files of *said* that nobody may have meant to name, or that lie outside."""
    pasted = {path for text in said.pasted for path in referenced(text, here.start)}
    root = here.root.resolve()
    return [
        path
        for path in referenced(said.text, here.start)
        if path in pasted or not path.resolve().is_relative_to(root)
    ]


def _list_attached(talk: Conversation, collected: Collected) -> None:
    files = collected.attachments.files
    if files:
        names = (f"{each.path} ({size_words(len(each.content.encode()))})" for each in files)
        talk.say(visible_line(f"attached: {', '.join(names)}"))
