"""What the slash commands do. Each is one method; faults pass through to whoever called."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import trio

from cli.commands.undo import title_of
from cli.failures import CommandError
from cli.files import Unusable
from cli.git import read_diff
from cli.interactive.history import beginnings
from cli.interactive.host import rows_of
from cli.interactive.reports import (
    AUTO,
    model_choice,
    named_model,
    preview_report,
    providers_report,
    session_choice,
    table,
    unavailable_report,
)
from cli.interactive.runs import Conversation, Runs
from cli.interactive.screen import Asked, Entered
from cli.interactive.words import Slash, help_text
from cli.remembered import facts_text, known_facts
from cli.render import usage_words
from cli.sessions import Opened, check_session_id, opened
from cli.skills import FoundSkills, find_skills, load_skill
from cli.timeline import said_in, timeline
from cli.undo import undo_of
from cli.usage_view import usage_text
from cli.visible import visible_line
from smista.core.model_ref import ModelDescriptor, ModelRef
from smista.core.privacy import Guard, guard
from smista.sdk.answers import SessionDetail, StoredMessage, TraceEntry
from smista.sdk.client import Client
from smista.sdk.errors import SdkError
from smista.sdk.opening import open_messages, open_trace, usage_of
from smista.sdk.run import pending_pause

_PAGE: Final = 200
_TRANSCRIPT: Final = 50
"""Messages of a resumed session that are shown."""


class Desk:
    """Does what a command asks for."""

    def __init__(self, conversation: Conversation, runs: Runs) -> None:
        self._talk = conversation
        self._runs = runs
        self._does: Mapping[str, Callable[[str], Awaitable[None]]] = {
            "chat": self._chat,
            "clear": self._clear,
            "diff": self._diff,
            "help": self._help,
            "memory": self._memory,
            "model": self._model,
            "plan": self._plan,
            "preview": self._preview,
            "providers": self._providers,
            "reasoning": self._reasoning,
            "resume": self._resume,
            "skill": self._skill,
            "skills": self._skills,
            "status": self._status,
            "trace": self._trace,
            "undo": self._undo,
            "usage": self._usage,
        }

    async def do(self, slash: Slash) -> None:
        await self._does[slash.command.name](slash.rest)

    async def _chat(self, _rest: str) -> None:
        self._talk.setting.plan = False
        self._talk.mark()
        self._talk.say("chat mode")

    async def _plan(self, _rest: str) -> None:
        self._talk.setting.plan = True
        self._talk.mark()
        self._talk.say("plan mode: prompts make a plan, and nothing is changed before you agree")

    async def _clear(self, _rest: str) -> None:
        """End the session: its usage and how to come back are what stays on the screen."""
        talk = self._talk
        session = talk.session
        talk.forget_session()
        talk.screen.clear()
        if session is None:
            return
        try:
            usage = await _usage(await talk.client(), session)
        except SdkError:
            pass  # usage is told when there is any to be had
        else:
            talk.say(usage_words(usage.get("total", {})) or "nothing used")
        talk.say(f"/resume {visible_line(session.id)}")

    async def _diff(self, _rest: str) -> None:
        notices: list[str] = []
        diff = await read_diff(self._talk.here.root, notices)
        for notice in notices:
            self._talk.say(visible_line(notice))
        if diff:
            self._talk.screen.put(self._talk.screen.pen.diff(diff.removesuffix("\n")))
        elif not notices:
            self._talk.say("no uncommitted changes")

    async def _help(self, _rest: str) -> None:
        self._talk.screen.put(self._talk.screen.pen.plain(help_text()))

    async def _reasoning(self, _rest: str) -> None:
        talk = self._talk
        thought = talk.telling.reasoning or "the model told no reasoning"
        talk.screen.put(talk.screen.pen.dim(thought, hang=0))

    async def _status(self, _rest: str) -> None:
        client = await self._talk.client()
        status = await client.status()
        line = f"router {status.status}, version {status.version}, at {client.url}"
        self._show(visible_line(line))

    async def _providers(self, _rest: str) -> None:
        client = await self._talk.client()
        self._show(providers_report((await client.providers()).providers))

    async def _usage(self, _rest: str) -> None:
        client, session = await self._client_of_session()
        usage = await _usage(client, session)
        self._show(usage_text(usage, width=self._talk.screen.width, blocks=self._talk.screen.draws))

    async def _trace(self, _rest: str) -> None:
        client, session = await self._client_of_session()
        events = await _events(client, session)
        said = said_in(await _messages(await client.session(session.id), session))
        self._show(timeline(events, said) if events else "no events yet")

    async def _memory(self, words: str) -> None:
        client = await self._talk.client()
        session = self._talk.session
        facts = await known_facts(
            client,
            session_id=None if session is None else session.id,
            sealer=None if session is None else session.sealer,
        )
        self._show(facts_text(facts, words))

    async def _skills(self, _rest: str) -> None:
        found = await self._found_skills()
        for warning in found.warnings:
            self._talk.say(visible_line(warning))
        rows = [(each.name, each.description) for each in found.skills]
        self._show(table(rows) or "no skills; they live in .agents/skills of the project")

    async def _skill(self, name: str) -> None:
        if not name:
            raise CommandError("name the skill: /skill <name>; /skills lists them")
        await self._found_skills()
        load = partial(load_skill, name, self._talk.here, await self._lists())
        skill = await trio.to_thread.run_sync(load)
        kept = [each for each in self._talk.setting.skills if each.name != skill.name]
        self._talk.setting.skills = [*kept, skill]
        self._talk.say(visible_line(f"the next prompt uses the skill {skill.name}"))

    async def _found_skills(self) -> FoundSkills:
        find = partial(find_skills, self._talk.here, await self._lists())
        found = await trio.to_thread.run_sync(find)
        self._talk.screen.know("skill", [each.name for each in found.skills])
        return found

    async def _lists(self) -> Guard:
        return guard((await self._talk.config()).policy(), str(self._talk.here.root))

    async def _undo(self, _rest: str) -> None:
        """Take back the last change of this session, after it was shown and agreed to."""
        talk = self._talk
        if talk.session is None:
            raise CommandError("nothing was changed in this session")
        kept = await trio.to_thread.run_sync(undo_of, talk.here, talk.session.id)
        step = None if kept is None else await trio.to_thread.run_sync(kept.next_step)
        if kept is None or step is None:
            raise CommandError("there is nothing left to take back in this session")
        asked = Asked(
            title=talk.screen.pen.title(title_of(step)),
            rows=rows_of(step.shown, talk.screen),
            asked=f"{'it changed since, a copy is kept; ' if step.changed else ''}write this?",
        )
        if not (await talk.screen.ask(asked)).approved:
            talk.say("left as it is")
            return
        take = partial(kept.take, step, force=step.changed)
        try:
            copy = await trio.to_thread.run_sync(take)
        except Unusable as fault:
            raise CommandError(f"not taken back: {fault}") from fault
        if copy is not None:
            talk.say(visible_line(f"what was there is kept as {copy}"))
        talk.say(visible_line(f"taken back: {step.record.name}"))

    async def _preview(self, prompt: str) -> None:
        if not prompt:
            raise CommandError("write what to preview: /preview <prompt>")
        talk = self._talk
        config = await talk.config()
        request = await self._runs.request(Entered(text=prompt), config)
        client = await talk.client()
        if talk.session is not None:
            preview = await client.preview(talk.session.id, request)
        else:
            # A preview needs a session; this one is gone again before anybody sees it.
            made = await client.create_session("preview")
            try:
                preview = await client.preview(made.id, request)
            finally:
                await client.delete_session(made.id)
        self._show(preview_report(preview))

    async def _model(self, text: str) -> None:
        client = await self._talk.client()
        listed = await client.models()
        models = listed.models
        names = [f"{each.provider}/{each.model}" for each in models]
        self._talk.screen.know("model", [AUTO, *names])
        if listed.unavailable and not text:
            self._talk.say(visible_line(unavailable_report(listed.unavailable)))
        if text.casefold() == AUTO:
            self._set_model(None)
        elif text:
            self._set_model(_one_model(text, models))
        else:
            await self._choose_model(models)

    async def _choose_model(self, models: tuple[ModelDescriptor, ...]) -> None:
        options = [f"{AUTO}  the rules decide", *map(model_choice, models)]
        chosen = await self._talk.screen.choose(
            "Which model?", [visible_line(option) for option in options]
        )
        if chosen is None:
            return
        if chosen == 0:
            self._set_model(None)
        else:
            model = models[chosen - 1]
            self._set_model(ModelRef(provider=model.provider, model=model.model))

    def _set_model(self, model: ModelRef | None) -> None:
        self._talk.setting.model = model
        self._talk.mark()
        words = "the rules decide which model serves" if model is None else f"model {model}"
        self._talk.say(visible_line(words))

    async def _resume(self, text: str) -> None:
        talk = self._talk
        client = await talk.client()
        session_id = text or await self._choose_session(client)
        if session_id is None:
            return
        check_session_id(session_id)
        detail = await client.session(session_id)
        session = await opened(talk.here, detail)
        talk.forget_session()
        talk.session = session
        self._show_transcript(detail, await _messages(detail, session))
        pause = pending_pause(detail)
        if pause is not None:
            talk.say("its run was not over; it goes on from where it stood")
            await self._runs.go_on(client, session, pause)

    async def _choose_session(self, client: Client) -> str | None:
        talk = self._talk
        found = await client.sessions(scope=str(talk.here.root))
        sessions = [each for each in found if not each.archived]
        if not sessions:
            raise CommandError(f"there is no session for {talk.here.root}")
        # The titles of encrypted sessions tell little; how they began is known here alone.
        begun = await trio.to_thread.run_sync(beginnings, talk.here)
        current = None if talk.session is None else talk.session.id
        options = [
            visible_line(session_choice(each, begun.get(each.id), here=each.id == current))
            for each in sessions
        ]
        chosen = await talk.screen.choose("Which session?", options)
        return None if chosen is None else sessions[chosen].id

    def _show_transcript(self, detail: SessionDetail, messages: Sequence[StoredMessage]) -> None:
        talk = self._talk
        left = len(messages) - _TRANSCRIPT
        if left > 0:
            talk.say(f"{left} earlier messages are not shown")
        for message in messages[-_TRANSCRIPT:]:
            self._show_message(message)
        talk.say(visible_line(f"in session {detail.id}: {detail.title or 'without a title'}"))

    def _show_message(self, message: StoredMessage) -> None:
        screen = self._talk.screen
        text = message.content.get("plaintext")
        if not isinstance(text, str):
            self._talk.say(f"{visible_line(message.role)}: sealed")
        elif message.role == "user":
            screen.put(screen.pen.prompt(text, "> "))
        elif message.role == "assistant" and text:
            self._talk.telling.text(text)
            self._talk.telling.end()

    def _show(self, text: str) -> None:
        self._talk.screen.put(self._talk.screen.pen.plain(text))

    async def _client_of_session(self) -> tuple[Client, Opened]:
        session = self._talk.session
        if session is None:
            raise CommandError("there is no session yet; a prompt begins one, /resume goes back")
        return await self._talk.client(), session


def _one_model(text: str, models: tuple[ModelDescriptor, ...]) -> ModelRef:
    found = named_model(text, models)
    if isinstance(found, ModelRef):
        return found
    if found:
        names = ", ".join(map(str, found))
        raise CommandError(f"{text!r} could be {names}; name one in full")
    raise CommandError(f"the router lists no model {text!r}; /model alone shows the list")


async def _usage(client: Client, session: Opened) -> Mapping[str, Any]:
    """Return the usage of *session*; a router cannot add up what is sealed."""
    if session.sealer is None:
        return await client.usage(session.id)
    return usage_of(await _events(client, session))


async def _messages(detail: SessionDetail, session: Opened) -> Sequence[StoredMessage]:
    if session.sealer is None:
        return detail.messages
    return await open_messages(session.sealer, detail.messages)


async def _events(client: Client, session: Opened) -> list[TraceEntry]:
    events: list[TraceEntry] = []
    while True:
        page = await client.trace(session.id, offset=len(events), limit=_PAGE)
        if session.sealer is not None:
            page = await open_trace(session.sealer, page)
        events += page
        if len(page) < _PAGE:
            return events
