"""What the slash commands do. Each is one method; faults pass through to whoever called."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from cli.failures import CommandError
from cli.git import read_diff
from cli.interactive.reports import (
    AUTO,
    model_choice,
    named_model,
    preview_report,
    providers_report,
    session_choice,
    unavailable_report,
    usage_report,
)
from cli.interactive.runs import Conversation, Runs
from cli.interactive.screen import Entered
from cli.interactive.words import Slash, help_text
from cli.render import usage_words
from cli.sessions import Opened, check_session_id, opened
from cli.timeline import timeline
from cli.visible import visible_line
from smista.core.model_ref import ModelDescriptor, ModelRef
from smista.sdk.answers import SessionDetail, StoredMessage, TraceEntry
from smista.sdk.client import Client
from smista.sdk.errors import SdkError
from smista.sdk.opening import open_trace, usage_of
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
            "model": self._model,
            "plan": self._plan,
            "preview": self._preview,
            "providers": self._providers,
            "reasoning": self._reasoning,
            "resume": self._resume,
            "status": self._status,
            "trace": self._trace,
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
        thought = self._talk.telling.reasoning
        self._talk.say(thought or "the model told no reasoning")

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
        self._show(usage_report(await _usage(client, session)))

    async def _trace(self, _rest: str) -> None:
        client, session = await self._client_of_session()
        self._show(timeline(await _events(client, session)) or "no events yet")

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
        self._show_transcript(detail)
        pause = pending_pause(detail)
        if pause is not None:
            talk.say("its run was not over; it goes on from where it stood")
            await self._runs.go_on(client, session, pause)

    async def _choose_session(self, client: Client) -> str | None:
        talk = self._talk
        found = await client.sessions(scope=str(talk.here.root))
        current = None if talk.session is None else talk.session.id
        sessions = [each for each in found if not each.archived and each.id != current]
        if not sessions:
            raise CommandError(f"there is no other session for {talk.here.root}")
        options = [visible_line(session_choice(each)) for each in sessions]
        chosen = await talk.screen.choose("Which session?", options)
        return None if chosen is None else sessions[chosen].id

    def _show_transcript(self, detail: SessionDetail) -> None:
        talk = self._talk
        left = len(detail.messages) - _TRANSCRIPT
        if left > 0:
            talk.say(f"{left} earlier messages are not shown")
        for message in detail.messages[-_TRANSCRIPT:]:
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
        self._talk.telling.end()
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


async def _events(client: Client, session: Opened) -> list[TraceEntry]:
    events: list[TraceEntry] = []
    while True:
        page = await client.trace(session.id, offset=len(events), limit=_PAGE)
        if session.sealer is not None:
            page = await open_trace(session.sealer, page)
        events += page
        if len(page) < _PAGE:
            return events
