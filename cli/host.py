"""The machine and the person that a run works for, at a plain terminal."""

from collections.abc import Mapping
from functools import partial
from typing import Final

import trio

from cli.approvals import Answer, Terminal, present
from cli.files import Unusable
from cli.permissions import approved_in_advance, denied, mode_of, named_in_advance
from cli.questions import Question, question_beyond, question_of
from cli.render import render
from cli.surroundings import Surroundings
from cli.tools import PERMISSIONS, Change, Outside, Prepared, leads_to, perform, prepare, touched
from cli.visible import echo, echo_styled, visible_line
from smista.core.events import Event, ToolRequest
from smista.core.intents import Mode
from smista.core.messages import ApprovalDecision, Decision, ToolResultEntry
from smista.core.policy import ToolsConfig
from smista.core.privacy import Guard
from smista.sdk.run import Approval

NOBODY = "refused: it needs an answer, and there is no terminal to ask at"
NO = "the user said no"
_ASKED: Final = {"shell": "run it?", "git": "run it?", "fetch_url": "fetch it?"}


class TerminalHost:
    """Shows events, runs tools under the user's policy, asks.

    *refused_last*: the newest thing that needed permission did not get it. *sizes*: bytes of what
    the request carries, by path.
    """

    def __init__(
        self,
        here: Surroundings,
        tools: ToolsConfig,
        *,
        terminal: Terminal | None,
        yes: bool = False,
        named: frozenset[str] = frozenset(),
        quiet: bool = False,
        hidden: frozenset[str] = frozenset(),
        sizes: Mapping[str, int] | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._here = here
        self._tools = tools
        self._terminal = terminal
        self._yes = yes
        self._named = named
        self._quiet = quiet
        self._hidden = hidden
        self._sizes: dict[str, int] = dict(sizes or {})
        self._guard = guard
        self._granted = False
        self._midline = False
        self.refused_last = False

    async def show(self, event: Event) -> None:
        said = render(event)
        if said.answer and not self._quiet:
            echo(said.answer, nl=False)
            self._midline = not said.answer.endswith("\n")
        if said.aside:
            self.say(said.aside)

    def say(self, line: str) -> None:
        """Print *line* on stderr; the answer's line is ended first."""
        self.end_line()
        echo(line, err=True, dim=True)

    def end_line(self) -> None:
        if self._midline:
            echo("")
            self._midline = False

    async def run_tools(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolResultEntry, ...]:
        # One after the other, in the order asked: a later one may need an earlier one's file.
        return tuple([await self._run(request) for request in requests])

    async def decide(self, approval: Approval) -> ApprovalDecision:
        question = question_of(approval, self._sizes)
        answer = await self._ask(question)
        # A plan that is refused with a reason is made anew: where nobody can agree, for ever.
        reasoned = self._terminal is None and approval.kind != "plan"
        return ApprovalDecision(
            approval_id=approval.approval_id,
            decision="approved" if answer.approved else "rejected",
            reason=self._why(answer) if reasoned else answer.reason,
        )

    async def _run(self, request: ToolRequest) -> ToolResultEntry:
        if request.name not in PERMISSIONS:
            return self._refuse(request, f"there is no tool {request.name!r} on this machine")
        if denied(request, self._tools):
            return self._refuse(request, f"the user's policy denies {request.name}")
        try:
            return await self._run_inside(request)
        except Outside:
            return await self._run_outside(request)
        except Unusable as fault:
            return await self._cannot(request, fault)
        except OSError as error:
            # A disk or a folder that fails is an answer for the model, not the end of the run.
            return await self._cannot(request, Unusable(f"it failed: {error.strerror}"))

    async def _run_inside(self, request: ToolRequest) -> ToolResultEntry:
        look = partial(prepare, request, self._here, guard=self._guard)
        prepared = await trio.to_thread.run_sync(look)
        if mode_of(request, prepared, self._tools) is not Mode.ALLOW:
            return await self._run_if_approved(request, prepared)
        told = prepared.shown if request.name == "git" else f"{prepared.title} {prepared.shown}"
        self.say(f"→ {visible_line(told)[:200]}")
        return await self._perform(request, prepared, None)

    async def _run_outside(self, request: ToolRequest) -> ToolResultEntry:
        """Ask first, look afterwards: a refusal says nothing about what is there."""
        real = await trio.to_thread.run_sync(leads_to, request, self._here)
        answer = await self._ask(question_beyond(request, str(real)))
        if not answer.approved:
            return self._refuse(request, self._why(answer))
        look = partial(prepare, request, self._here, agreed=real, guard=self._guard)
        try:
            prepared = await trio.to_thread.run_sync(look)
        except Unusable as fault:
            return await self._cannot(request, fault)
        if isinstance(prepared.action, Change):
            return await self._run_if_approved(request, prepared)
        return await self._perform(request, prepared, "approved")

    async def _cannot(self, request: ToolRequest, fault: Unusable) -> ToolResultEntry:
        self.say(f"✗ {visible_line(request.name)}: {visible_line(str(fault))}")
        paths = await trio.to_thread.run_sync(touched, request, self._here)
        return ToolResultEntry(
            call_id=request.call_id, content=str(fault), is_error=True, paths=paths
        )

    async def _run_if_approved(self, request: ToolRequest, prepared: Prepared) -> ToolResultEntry:
        granted = self._granted and not request.restricted_in_view
        if approved_in_advance(prepared, yes=self._yes or granted) or named_in_advance(
            request, prepared, self._named
        ):
            self._put(prepared.title, prepared.shown)
            self.refused_last = False
            self.say("approved in advance")
            return await self._perform(request, prepared, "approved")
        asked = _ASKED.get(request.name, "do it?")
        if request.restricted_in_view and not isinstance(prepared.action, Change):
            asked = f"restricted content is in view and could be carried away; {asked}"
        question = Question(title=prepared.title, shown=prepared.shown, asked=asked)
        answer = await self._ask(question, always=approved_in_advance(prepared, yes=True))
        if not answer.approved:
            return self._refuse(request, self._why(answer))
        self._granted = self._granted or answer.always
        return await self._perform(request, prepared, "approved")

    async def _perform(
        self, request: ToolRequest, prepared: Prepared, decision: Decision | None
    ) -> ToolResultEntry:
        outcome = await perform(prepared, self._here, hidden=self._hidden)
        if outcome.is_error:
            self.say(f"✗ {visible_line(prepared.title)}: {visible_line(outcome.content[-200:])}")
        thing = f"tool:{request.name}"
        self._sizes[thing] = self._sizes.get(thing, 0) + len(outcome.content.encode())
        return ToolResultEntry(
            call_id=request.call_id,
            content=outcome.content,
            is_error=outcome.is_error,
            decision=decision,
            restricted=outcome.restricted,
            paths=prepared.paths if outcome.paths is None else outcome.paths,
        )

    def _refuse(self, request: ToolRequest, why: str) -> ToolResultEntry:
        self.refused_last = True
        self.say(f"✗ {visible_line(request.name)}: {visible_line(why)}")
        return ToolResultEntry(
            call_id=request.call_id, content=why, is_error=True, decision="rejected"
        )

    async def _ask(self, question: Question, *, always: bool = False) -> Answer:
        """Put *question* before the person, if there is one."""
        self._put(question.title, question.shown)
        answer = Answer(approved=False)
        if self._terminal is not None:
            answer = await self._terminal.answer(question.asked, always=always)
        self.refused_last = not answer.approved
        return answer

    def _why(self, answer: Answer) -> str:
        if self._terminal is None:
            return NOBODY
        return NO if answer.reason is None else f"{NO}: {answer.reason}"

    def _put(self, title: str, shown: str) -> None:
        self.end_line()
        echo_styled(present(title, shown), nl=False)
