"""How a turn can end: the checkpoint the run then waits at, and what its client is told. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from actors.answer import Answer
from smista.core.decision import Decision
from smista.core.events import Status, ToolRequest, TurnEnd
from smista.core.gates import PLAN, Gate
from smista.core.history import Role
from smista.core.intents import TaskIntent
from smista.core.lifecycle import allowed_continuations, pause_of
from smista.core.phase import (
    AwaitingApproval,
    AwaitingDecrypt,
    AwaitingEncrypt,
    AwaitingTool,
    Idle,
    PendingCall,
    Phase,
)
from smista.core.records import SessionState
from smista.core.secret import Envelope
from smista.core.session_views import tool_request, trace_id
from smista.core.views import classification_view, context_view, routing_view

Ending = tuple[Phase, TurnEnd]


class ToOpen(NamedTuple):
    """What a client has to open before the chosen prompt can be built."""

    rows: Mapping[str, Envelope]


def tool_requests(state: SessionState, pending: Sequence[PendingCall]) -> list[ToolRequest]:
    return [tool_request(state.calls[each.call_id], each) for each in pending]


def awaiting_tools(
    state: SessionState, pending: tuple[PendingCall, ...], requests: Sequence[ToolRequest]
) -> Ending:
    data = {"tool_requests": [request.body() for request in requests]}
    return _pause(AwaitingTool(pending), Status.AWAITING_TOOL, data, state)


def awaiting_approval(
    state: SessionState, approval_id: str, gate: Gate, command: TaskIntent | None
) -> Ending:
    """*command* is the intent that the user named for the model call that waits."""
    detail = {k: v for k, v in gate.detail.items() if k != "content"}
    resume = "NextTurn" if gate.kind == PLAN else "Invoke"
    phase = AwaitingApproval(approval_id, gate.kind, resume, detail, command)
    approval = {"approval_id": approval_id, "kind": gate.kind, "detail": gate.detail}
    return _pause(phase, Status.AWAITING_APPROVAL, {"approval": approval}, state)


def awaiting_opening(
    state: SessionState, rows: Mapping[str, Envelope], command: TaskIntent | None
) -> Ending:
    """*command* is the intent that the user named for the model call that waits."""
    sealed = {name: envelope.model_dump() for name, envelope in rows.items()}
    phase = AwaitingDecrypt(tuple(rows), command)
    return _pause(phase, Status.AWAITING_DECRYPT, {"to_decrypt": sealed}, state)


def completed(state: SessionState, decision: Decision, answer: Answer) -> Ending:
    """In an encrypted session what was said has still to be sealed."""
    routing = decision.routing
    message = {
        "role": Role.ASSISTANT.value,
        "content": answer.text,
        "provider": routing.provider,
        "model": routing.model,
    }
    data = {
        "message": {**message, "finish": "length"} if answer.cut else message,
        "classification": classification_view(decision.classification),
        "routing": routing_view(routing),
        "context": context_view(decision.items),
        "usage": state.run.spent.view(),
    }
    phase = AwaitingEncrypt(()) if state.session.encrypted else Idle()
    return _pause(phase, Status.COMPLETED, data, state)


def idle(state: SessionState) -> TurnEnd:
    return TurnEnd(Status.IDLE, {"trace_id": trace_id(state)})


def _pause(phase: Phase, status: Status, data: dict[str, Any], state: SessionState) -> Ending:
    allowed = allowed_continuations(pause_of(phase))
    return phase, TurnEnd(status, {**data, "trace_id": trace_id(state)}, allowed)
