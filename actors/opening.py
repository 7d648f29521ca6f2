"""A turn's first step: the message is laid down in the draft. Nothing here waits."""

from collections.abc import Mapping
from dataclasses import dataclass

from actors.approvals import take_decision
from actors.calls import take_result
from actors.draft import Draft
from actors.parts import Clock
from smista.core.ids import run_ms
from smista.core.intents import TaskIntent
from smista.core.messages import (
    ApprovalDecision,
    ApprovalDecisions,
    Break,
    Decrypted,
    Execute,
    Inject,
    InjectMessage,
    Message,
    SealedRows,
    ToolResultEntry,
    ToolResults,
)
from smista.core.phase import AwaitingApproval, AwaitingDecrypt, AwaitingTool
from smista.core.request import ExecuteRequest


@dataclass(frozen=True, slots=True)
class Opening:
    """*command*: the intent the user named for the next model call. *over*: the run ends here.

    *closed*: what was chosen of the sealed history has been opened, and the fit is not redone.
    """

    command: TaskIntent | None = None
    over: bool = False
    closed: bool = False


def take_message(draft: Draft, message: Message, clock: Clock) -> Opening:
    """Lay *message* down in *draft*, and first what it brings for rows that are sealed."""
    if draft.state.session.encrypted:
        draft.take_envelopes(message)
    match message:
        case Execute(request=request):
            return _take_task(draft, request, clock)
        case ToolResults(data=data):
            return _take_results(draft, data.results)
        case Inject(data=data):
            return _take_input(draft, data.messages)
        case ApprovalDecisions(data=data):
            return _take_decisions(draft, data.decisions)
        case Break():
            draft.cancel_pending("cancelled by the user")
            return Opening(over=True)
        case Decrypted(data=data):
            return _take_opened(draft, data.plaintext)
        case SealedRows():
            return Opening(over=True)


def _take_task(draft: Draft, request: ExecuteRequest, clock: Clock) -> Opening:
    after = run_ms(draft.run_id) if draft.run_id else -1
    draft.begin_run(clock.new_id(after_ms=after), request)
    draft.add_user(request.input.text)
    return Opening(request.input.command)


def _take_results(draft: Draft, results: tuple[ToolResultEntry, ...]) -> Opening:
    phase = draft.state.run.phase
    modes = {c.call_id: c.mode for c in phase.calls} if isinstance(phase, AwaitingTool) else {}
    for result in results:
        take_result(draft, result, modes[result.call_id])
    return Opening()


def _take_input(draft: Draft, messages: tuple[InjectMessage, ...]) -> Opening:
    draft.cancel_pending("cancelled: the user gave new input instead")
    for message in messages:
        draft.add_user(message.text)
    return Opening(messages[-1].command if messages else None)


def _take_opened(draft: Draft, texts: Mapping[str, str]) -> Opening:
    phase = draft.state.run.phase
    if not isinstance(phase, AwaitingDecrypt):
        raise TypeError("table and turn disagree: nothing was to be opened")
    draft.take_opened(texts)
    own = any(name.startswith("run_input:") for name in phase.references)
    return Opening(phase.command, closed=not own)


def _take_decisions(draft: Draft, decisions: tuple[ApprovalDecision, ...]) -> Opening:
    phase = draft.state.run.phase
    if not isinstance(phase, AwaitingApproval):
        raise TypeError("table and turn disagree: no approval was asked for")
    return Opening(phase.command, over=not take_decision(draft, phase, decisions[0]))
