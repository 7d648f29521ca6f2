"""The machine and the person that a run works for, at a plain terminal."""

import trio

from cli.approvals import Terminal, present
from cli.files import Unusable
from cli.permissions import approved_in_advance, denied, mode_of
from cli.render import render
from cli.surroundings import Surroundings
from cli.tools import PERMISSIONS, Prepared, perform, prepare, touched
from cli.visible import echo, echo_styled, visible_line
from smista.core.events import Event, ToolRequest
from smista.core.intents import Mode
from smista.core.messages import ApprovalDecision, Decision, ToolResultEntry
from smista.core.policy import ToolsConfig
from smista.sdk.run import Approval

NOBODY = "refused: it needs an answer, and there is no terminal to ask at"
NO = "the user said no"


class TerminalHost:
    """Shows events, runs tools under the user's policy, asks.

    *refused_last*: the newest thing that needed permission did not get it.
    """

    def __init__(
        self,
        here: Surroundings,
        tools: ToolsConfig,
        *,
        terminal: Terminal | None,
        yes: bool = False,
        quiet: bool = False,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self._here = here
        self._tools = tools
        self._terminal = terminal
        self._yes = yes
        self._quiet = quiet
        self._hidden = hidden
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
        detail = "\n".join(f"{name}: {value}" for name, value in approval.detail.items())
        self.end_line()
        echo_styled(present(f"the router asks: {approval.kind}", detail), nl=False)
        decision = await self._ask("go on?")
        reason = NOBODY if self._terminal is None else None
        return ApprovalDecision(approval_id=approval.approval_id, decision=decision, reason=reason)

    async def _run(self, request: ToolRequest) -> ToolResultEntry:
        if request.name not in PERMISSIONS:
            return self._refuse(request, f"there is no tool {request.name!r} on this machine")
        if denied(request, self._tools):
            return self._refuse(request, f"the user's policy denies {request.name}")
        try:
            prepared = await trio.to_thread.run_sync(prepare, request, self._here)
        except Unusable as fault:
            self.say(f"✗ {visible_line(request.name)}: {visible_line(str(fault))}")
            paths = await trio.to_thread.run_sync(touched, request, self._here)
            return ToolResultEntry(
                call_id=request.call_id, content=str(fault), is_error=True, paths=paths
            )
        if mode_of(request, prepared, self._tools) is not Mode.ALLOW:
            return await self._run_if_approved(request, prepared)
        self.say(f"→ {visible_line(prepared.title)} {visible_line(prepared.shown)[:200]}")
        return await self._perform(request, prepared, None)

    async def _run_if_approved(self, request: ToolRequest, prepared: Prepared) -> ToolResultEntry:
        self.end_line()
        echo_styled(present(prepared.title, prepared.shown), nl=False)
        if approved_in_advance(prepared, yes=self._yes):
            self.refused_last = False
            self.say("approved in advance")
            return await self._perform(request, prepared, "approved")
        if await self._ask("run it?" if request.name == "shell" else "do it?") == "approved":
            return await self._perform(request, prepared, "approved")
        return self._refuse(request, NO if self._terminal else NOBODY)

    async def _perform(
        self, request: ToolRequest, prepared: Prepared, decision: Decision | None
    ) -> ToolResultEntry:
        outcome = await perform(prepared, self._here, hidden=self._hidden)
        if outcome.is_error:
            self.say(f"✗ {visible_line(prepared.title)}: {visible_line(outcome.content[-200:])}")
        return ToolResultEntry(
            call_id=request.call_id,
            content=outcome.content,
            is_error=outcome.is_error,
            decision=decision,
            paths=prepared.paths,
        )

    def _refuse(self, request: ToolRequest, why: str) -> ToolResultEntry:
        self.refused_last = True
        self.say(f"✗ {visible_line(request.name)}: {visible_line(why)}")
        return ToolResultEntry(
            call_id=request.call_id, content=why, is_error=True, decision="rejected"
        )

    async def _ask(self, question: str) -> Decision:
        approved = self._terminal is not None and await self._terminal.ask(question)
        self.refused_last = not approved
        return "approved" if approved else "rejected"
