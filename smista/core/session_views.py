"""Sessions as the API shows them (*Sessions*): pure, from records to JSON members."""

import json
from datetime import datetime
from typing import Any

from smista.core.events import Status, ToolRequest, TurnEnd
from smista.core.history import Message, Role
from smista.core.lifecycle import allowed_continuations, pause_of
from smista.core.phase import AwaitingApproval, AwaitingTool, Idle, PendingCall
from smista.core.records import Session, SessionState, ToolCallRecord
from smista.core.secret import Plain, SecretContent


def timestamp(moment: datetime) -> str:
    """Return *moment* (UTC) as RFC 3339 text with `Z`, to the microsecond where there are any."""
    return moment.isoformat().replace("+00:00", "Z")


def session_summary(session: Session) -> dict[str, Any]:
    """Return a session as listings show it; `title` may be null, absent members are omitted."""
    summary: dict[str, Any] = {"id": session.id, "title": session.title}
    if session.scope is not None:
        summary["scope"] = session.scope
    summary["encrypted"] = session.encrypted
    if session.key_id is not None:
        summary["key_id"] = session.key_id
    return {
        **summary,
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
        "archived": session.archived_at is not None,
    }


def session_detail(state: SessionState) -> dict[str, Any]:
    """Return a whole session; a live run's pause stands under `metadata.run`."""
    session = state.session
    detail: dict[str, Any] = {"id": session.id, "title": session.title or ""}
    if session.scope is not None:
        detail["scope"] = session.scope
    if session.key_id is not None:
        detail["key_id"] = session.key_id
    pause = pending_pause(state)
    return {
        **detail,
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
        "messages": [message_view(message) for message in state.messages],
        "metadata": {} if pause is None else {"run": pause.envelope()},
    }


def message_view(message: Message) -> dict[str, Any]:
    view: dict[str, Any] = {"role": message.role.value, "content": {"plaintext": message.text}}
    if message.role is Role.ASSISTANT:
        view |= {"provider": message.provider, "model": message.model}
    if message.interrupted:
        view["interrupted"] = True
    if message.call_id is not None:
        view["call_id"] = message.call_id
    return view


def pending_pause(state: SessionState) -> TurnEnd | None:
    """Return the outcome that the run's present pause was announced with; None if it is idle."""
    phase = state.run.phase
    if isinstance(phase, Idle):
        return None
    allowed = allowed_continuations(pause_of(phase))
    data: dict[str, Any] = {"trace_id": trace_id(state)}
    if isinstance(phase, AwaitingTool):
        requests = [tool_request(state.calls[p.call_id], p).body() for p in phase.calls]
        return TurnEnd(Status.AWAITING_TOOL, {"tool_requests": requests, **data}, allowed)
    if isinstance(phase, AwaitingApproval):
        detail = dict(phase.detail)
        if state.plan is not None and state.plan.id == detail.get("plan"):
            detail["content"] = in_clear(state.plan.content)
        approval = {"approval_id": phase.approval_id, "kind": phase.kind, "detail": detail}
        return TurnEnd(Status.AWAITING_APPROVAL, {"approval": approval, **data}, allowed)
    raise ValueError(f"the pause {phase.name} cannot be shown")


def tool_request(call: ToolCallRecord, pending: PendingCall) -> ToolRequest:
    """Return *call* as the client is asked to run it.

    One whose arguments were masked is told without any: running it would write the mask.
    """
    return ToolRequest(
        call_id=call.id,
        name=call.tool_name,
        arguments={} if call.masked else json.loads(in_clear(call.arguments)),
        requires_approval=pending.mode.value,
        restricted_in_view=pending.restricted_in_view,
        masked=bool(call.masked),
    )


def in_clear(content: SecretContent) -> str:
    """Return the text of *content*; raises ValueError for sealed content."""
    if isinstance(content, Plain):
        return content.text
    raise ValueError("sealed content has no text here")


def trace_id(state: SessionState) -> str:
    """Return the id under which the present run's trace is named."""
    return f"trace:{state.run.run_id}"
