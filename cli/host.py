"""The machine and the person that a run works for, at a plain terminal."""

from collections.abc import Mapping

from cli.approvals import Answer, Terminal, present
from cli.copies import Copies
from cli.machine import NO, NOBODY, Machine
from cli.questions import Question, question_of
from cli.render import render
from cli.session_folder import Sealer
from cli.surroundings import Surroundings
from cli.veil import PLAIN, Veil
from cli.visible import echo, echo_styled
from smista.core.events import Event, Status, ToolRequest, TurnEnd
from smista.core.messages import ApprovalDecision, ToolResultEntry
from smista.core.policy import ToolsConfig
from smista.core.privacy import Guard
from smista.sdk.pauses import Approval

__all__ = ["NO", "NOBODY", "TerminalHost"]

_OVER = frozenset({Status.COMPLETED, Status.IDLE, Status.ERROR})


class TerminalHost:
    """Shows events, puts questions; tools run on its `Machine`, which asks through it.

    *sizes*: bytes of what the request carries, by path.
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
        hidden: Veil = PLAIN,
        sizes: Mapping[str, int] | None = None,
        guard: Guard | None = None,
        copies: Copies | None = None,
    ) -> None:
        self._terminal = terminal
        self._quiet = quiet
        self._midline = False
        self._machine = Machine(
            here,
            tools,
            self,
            yes=yes,
            named=named,
            hidden=hidden,
            sizes=sizes,
            guard=guard,
            copies=copies,
        )
        self._sizes = self._machine.sizes

    @property
    def refused_last(self) -> bool:
        """Whether the newest thing that needed permission did not get it."""
        return self._machine.refused_last

    async def begin(self, session_id: str, *, sealer: Sealer | None = None) -> None:
        """Keep from here on what the machine keeps of a session."""
        await self._machine.begin(session_id, sealer=sealer)

    async def show(self, event: Event) -> None:
        said = render(event)
        if said.answer and not self._quiet:
            echo(said.answer, nl=False)
            self._midline = not said.answer.endswith("\n")
        if said.aside:
            self.say(said.aside)
        await self.settle(event)

    async def settle(self, event: Event) -> None:
        """Forget the calls of a run that is over with *event*."""
        if isinstance(event, TurnEnd) and event.status in _OVER:
            await self._machine.end_run()

    async def run_tools(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolResultEntry, ...]:
        return await self._machine.run(requests)

    async def decide(self, approval: Approval) -> ApprovalDecision:
        answer = await self.ask(question_of(approval, self._sizes))
        self._machine.refused_last = answer is None or not answer.approved
        reason = None if answer is None else answer.reason
        if answer is None and approval.kind == "plan":
            # One that is refused with a reason is made anew: where nobody can agree, for ever.
            self.say(f"✗ plan: {NOBODY}")
        elif answer is None:
            reason = NOBODY
        return ApprovalDecision(
            approval_id=approval.approval_id,
            decision="rejected" if self._machine.refused_last else "approved",
            reason=reason,
        )

    def say(self, line: str) -> None:
        """Print *line* on stderr; the answer's line is ended first."""
        self.end_line()
        echo(line, err=True, dim=True)

    def put(self, title: str, shown: str) -> None:
        self._put(title, shown)

    def _put(self, title: str, shown: str) -> None:
        self.end_line()
        echo_styled(present(title, shown), nl=False)

    def output(self, text: str) -> None:
        self.end_line()
        echo(text, err=True, nl=False, dim=True)

    async def ask(self, question: Question, *, always: bool = False) -> Answer | None:
        self.put(question.title, question.shown)
        if self._terminal is None:
            return None
        return await self._terminal.answer(question.asked, always=always)

    def end_line(self) -> None:
        if self._midline:
            echo("")
            self._midline = False
