"""The user's machine as a model may use it: each call is judged, shown, asked about, done, kept.

    machine = Machine(here, tools, person, guard=…, hidden=…)
    await machine.begin(session_id)      # once the session is known
    results = await machine.run(requests)
    await machine.end_run()              # the run is over; none of its calls can come again

Whoever shows things gives a `Person`. What is allowed is decided in `cli.permissions`, what a
tool does in `cli.tools`. Calls run one after the other, in the order asked.
"""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import trio

from cli.approvals import Answer
from cli.copies import Copies
from cli.files import Differs, Unusable
from cli.keeping import Keeping
from cli.permissions import (
    Grants,
    approved_in_advance,
    denied,
    mode_of,
    named_in_advance,
    offered,
)
from cli.person import Person
from cli.questions import Question, question_beyond, question_of_router
from cli.restriction import Restriction
from cli.sealed_files import sealer_of
from cli.session_folder import Sealer, sweep
from cli.surroundings import Surroundings
from cli.tools import (
    PERMISSIONS,
    Change,
    Outcome,
    Outside,
    Prepared,
    leads_to,
    perform,
    prepare,
    touched,
)
from cli.veil import PLAIN, Veil
from cli.visible import visible_line
from smista.core.events import ToolRequest
from smista.core.intents import Mode
from smista.core.messages import Decision, ToolResultEntry
from smista.core.policy import ToolsConfig
from smista.core.privacy import Guard
from smista.core.tools import ROUTER_TOOLS
from smista.sdk.lost_calls import lost

NOBODY: Final = "refused: it needs an answer, and there is no terminal to ask at"
NO: Final = "the user said no"
UNKNOWN: Final = (
    "it was begun before smista was ended, and may have been done in part or in full; "
    "it was not begun again"
)
DONE: Final = "it was done before smista was ended; what it answered was not kept"
_ASKED: Final = {"shell": "run it?", "git": "run it?", "fetch_url": "fetch it?"}


class Machine:
    """Runs the tools of one session under the user's policy.

    *yes*: writes inside the root are approved in advance; *named*: so is what needs these
    permissions alone. *hidden*: which variables no command sees. *refused_last*: the newest thing
    that needed permission did not get it. *sizes*: bytes of what was sent, by path or tool.
    """

    def __init__(
        self,
        here: Surroundings,
        tools: ToolsConfig,
        person: Person,
        *,
        yes: bool = False,
        named: frozenset[str] = frozenset(),
        hidden: Veil = PLAIN,
        sizes: Mapping[str, int] | None = None,
        guard: Guard | None = None,
        copies: Copies | None = None,
    ) -> None:
        self._here = here
        self._tools = tools
        self._person = person
        self._yes = yes
        self._named = named
        self._hidden = hidden
        self._guard = guard
        self._restriction = Restriction(guard, copies)
        self._keeping: Keeping | None = None
        self._grants = Grants()
        self.sizes: dict[str, int] = dict(sizes or {})
        self.refused_last = False

    async def begin(self, session_id: str, *, sealer: Sealer | None = None) -> None:
        """Keep calls and before-images of *session_id* from here on.

        *sealer* makes what is kept unreadable; without one the session's own key does, if it
        has one.
        """
        if sealer is None:
            sealer = await trio.to_thread.run_sync(sealer_of, self._here, session_id)
        keeping = Keeping.of(self._here, session_id, sealer)
        await self._restriction.begin(keeping)
        self._keeping = keeping
        await trio.to_thread.run_sync(sweep, self._here.places, time.time())

    async def end_run(self) -> None:
        """Forget the calls of the run that is over."""
        if self._keeping is not None:
            await self._keeping.clear()

    async def run(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolResultEntry, ...]:
        """Return one result for each of *requests*, in their order."""
        return tuple([await self._run(request) for request in requests])

    async def restricted_in_view(self) -> None:
        """From here on, ask for everything that could carry restricted content away."""
        await self._restriction.see()

    async def _run(self, request: ToolRequest) -> ToolResultEntry:
        if request.name not in PERMISSIONS and request.name not in ROUTER_TOOLS:
            return self._refuse(request, f"there is no tool {request.name!r} on this machine")
        if denied(request, self._tools):
            return self._refuse(request, f"the user's policy denies {request.name}")
        if request.name in ROUTER_TOOLS:
            return await self._agree(request)
        await self._restriction.sent(self.sizes)
        seen = await self._restriction.over(request)
        try:
            known = await self._known(seen)
            if known is None and seen.masked:
                return self._lost(seen)
            return await self._run_known(seen) if known is None else known
        except Unusable as fault:
            return await self._cannot(seen, fault)
        except OSError as error:
            # A disk or a folder that fails is an answer for the model, not the end of the run.
            return await self._cannot(seen, Unusable(f"it failed: {error.strerror or error}"))

    async def _run_known(self, request: ToolRequest) -> ToolResultEntry:
        try:
            return await self._run_inside(request)
        except Outside:
            return await self._run_outside(request)

    async def _known(self, request: ToolRequest) -> ToolResultEntry | None:
        """Return the result of a call that was done before; None if it is to be done now."""
        if self._keeping is None:
            return None
        known = await self._keeping.recall(request)
        if known is None:
            return None
        if known.done:
            self._person.say(f"→ {visible_line(request.name)}: done before smista was ended")
            return known.entry or ToolResultEntry(call_id=request.call_id, content=DONE)
        if request.masked:
            return self._refuse(request, UNKNOWN)
        answer = await self._ask(_question_again(request))
        if answer is not None and answer.approved:
            self._keeping.begin_again(request)
            return None
        return self._refuse(request, UNKNOWN)

    async def _run_inside(self, request: ToolRequest) -> ToolResultEntry:
        prepared = await self._prepare(request, None)
        if mode_of(request, prepared, self._tools) is not Mode.ALLOW:
            return await self._run_if_approved(request, prepared, None)
        told = prepared.shown if request.name == "git" else f"{prepared.title} {prepared.shown}"
        self._person.say(f"→ {visible_line(told)[:200]}")
        return await self._perform(request, prepared, None, agreed=None)

    async def _run_outside(self, request: ToolRequest) -> ToolResultEntry:
        """Ask first, look afterwards: a refusal says nothing about what is there."""
        real = await trio.to_thread.run_sync(leads_to, request, self._here)
        answer = await self._ask(question_beyond(request, str(real)))
        if answer is None or not answer.approved:
            return self._refuse(request, _why(answer))
        prepared = await self._prepare(request, real)
        if isinstance(prepared.action, Change):
            return await self._run_if_approved(request, prepared, real)
        return await self._perform(request, prepared, "approved", agreed=real)

    async def _prepare(self, request: ToolRequest, agreed: Path | None) -> Prepared:
        look = partial(prepare, request, self._here, agreed=agreed, guard=self._guard)
        return await trio.to_thread.run_sync(look)

    async def _run_if_approved(
        self, request: ToolRequest, prepared: Prepared, agreed: Path | None
    ) -> ToolResultEntry:
        if self._in_advance(request, prepared):
            self._person.put(prepared.title, prepared.shown)
            self.refused_last = False
            self._person.say("approved in advance")
            return await self._perform(request, prepared, "approved", agreed=agreed)
        return await self._run_if_asked(request, prepared, agreed)

    def _in_advance(self, request: ToolRequest, prepared: Prepared) -> bool:
        if prepared.warning is not None:
            return False
        return (
            approved_in_advance(prepared, yes=self._yes)
            or named_in_advance(request, prepared, self._named)
            or self._grants.cover(request, prepared)
        )

    async def _run_if_asked(
        self, request: ToolRequest, prepared: Prepared, agreed: Path | None, *, first: str = ""
    ) -> ToolResultEntry:
        asked = first + _warned(request, prepared) + _ASKED.get(request.name, "do it?")
        grant = offered(request, prepared)
        if grant is not None:
            asked += f" (always: {grant})"
        question = Question(title=prepared.title, shown=prepared.shown, asked=asked)
        answer = await self._ask(question, always=grant is not None)
        if answer is None or not answer.approved:
            return self._refuse(request, _why(answer))
        if answer.always and grant is not None:
            self._grants.add(grant)
        return await self._perform(request, prepared, "approved", agreed=agreed)

    async def _perform(
        self,
        request: ToolRequest,
        prepared: Prepared,
        decision: Decision | None,
        *,
        agreed: Path | None,
    ) -> ToolResultEntry:
        try:
            outcome = await self._act(request, prepared)
        except Differs as fault:
            # What was shown is not there any more, so nobody has agreed to anything.
            self._person.say(f"✗ {visible_line(prepared.title)}: {fault}")
            fresh = await self._prepare(request, agreed)
            first = "the file changed meanwhile, this is the change now; "
            return await self._run_if_asked(request, fresh, agreed, first=first)
        return await self._told(request, prepared, outcome, decision)

    async def _act(self, request: ToolRequest, prepared: Prepared) -> Outcome:
        """Do the call: noted before it is begun, with all that is needed to take it back."""
        if self._keeping is None:
            return await self._do(request, prepared)
        if not await self._keeping.begin_call(request, prepared):
            raise Unusable(UNKNOWN)
        try:
            return await self._do(request, prepared)
        except Differs:
            await self._keeping.forget(request)
            raise

    async def _do(self, request: ToolRequest, prepared: Prepared) -> Outcome:
        async with self._restriction.watching(request, prepared):
            return await perform(
                prepared, self._here, veil=self._hidden, output=self._person.output
            )

    async def _told(
        self, request: ToolRequest, prepared: Prepared, outcome: Outcome, decision: Decision | None
    ) -> ToolResultEntry:
        if outcome.is_error:
            said = visible_line(outcome.content[-200:])
            self._person.say(f"✗ {visible_line(prepared.title)}: {said}")
        thing = f"tool:{request.name}"
        self.sizes[thing] = self.sizes.get(thing, 0) + len(outcome.content.encode())
        paths = prepared.paths if outcome.paths is None else outcome.paths
        entry = ToolResultEntry(
            call_id=request.call_id,
            content=outcome.content,
            is_error=outcome.is_error,
            decision=decision,
            restricted=await self._restriction.marks(outcome, paths) or None,
            paths=paths,
        )
        restricted = entry.restricted is True or self._restriction.names(request, paths)
        await self._finish(request, entry, bodies=not restricted)
        if restricted:
            await self._restriction.see()
        return entry

    async def _finish(self, request: ToolRequest, entry: ToolResultEntry, *, bodies: bool) -> None:
        if self._keeping is None:
            return
        try:
            await self._keeping.finish(request, entry, bodies=bodies)
        except OSError as error:
            # It is done all the same; begun again it is only after a question.
            self._person.say(f"✗ not noted as done: {error.strerror or error}")

    async def _cannot(self, request: ToolRequest, fault: Unusable) -> ToolResultEntry:
        self._person.say(f"✗ {visible_line(request.name)}: {visible_line(str(fault))}")
        paths = await trio.to_thread.run_sync(touched, request, self._here)
        return ToolResultEntry(
            call_id=request.call_id, content=str(fault), is_error=True, paths=paths
        )

    async def _agree(self, request: ToolRequest) -> ToolResultEntry:
        """Ask about a call that the router runs itself, once the person has agreed."""
        answer = await self._ask(question_of_router(request))
        if answer is None or not answer.approved:
            return self._refuse(request, _why(answer))
        return ToolResultEntry(call_id=request.call_id, content="", decision="approved")

    def _lost(self, request: ToolRequest) -> ToolResultEntry:
        self._person.say(
            f"✗ {visible_line(request.name)}: what it was to do held a key, and is lost"
        )
        return lost(request)

    def _refuse(self, request: ToolRequest, why: str) -> ToolResultEntry:
        self.refused_last = True
        self._person.say(f"✗ {visible_line(request.name)}: {visible_line(why)}")
        return ToolResultEntry(
            call_id=request.call_id, content=why, is_error=True, decision="rejected"
        )

    async def _ask(self, question: Question, *, always: bool = False) -> Answer | None:
        answer = await self._person.ask(question, always=always)
        self.refused_last = answer is None or not answer.approved
        return answer


def _warned(request: ToolRequest, prepared: Prepared) -> str:
    warnings = [prepared.warning] if prepared.warning else []
    if request.restricted_in_view and not isinstance(prepared.action, Change):
        warnings.append("restricted content is in view and could be carried away")
    return "".join(f"{warning}; " for warning in warnings)


def _question_again(request: ToolRequest) -> Question:
    lines = [f"{name}: {value}" for name, value in request.arguments.items()]
    return Question(
        title=f"{request.name} was begun before smista was ended",
        shown="\n".join(lines),
        asked="it may have been done already; do it again?",
    )


def _why(answer: Answer | None) -> str:
    if answer is None:
        return NOBODY
    return NO if answer.reason is None else f"{NO}: {answer.reason}"
