"""Sessions as the API shows them (*Sessions*): pure, from records to JSON members."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from smista.core.events import Status, ToolRequest, TurnEnd
from smista.core.history import Message, Role
from smista.core.lifecycle import Pause, allowed_continuations, pause_of
from smista.core.opening import lost, reference, sealed_by
from smista.core.phase import (
    AwaitingApproval,
    AwaitingDecrypt,
    AwaitingEncrypt,
    AwaitingTool,
    Idle,
    PendingCall,
    Phase,
)
from smista.core.records import Session, SessionState, ToolCallRecord
from smista.core.secret import Plain, SecretContent
from smista.core.unsealed import listed


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


def session_detail(state: SessionState, live: SessionState | None = None) -> dict[str, Any]:
    """Return a whole session; a live run's pause stands under `metadata.run`.

    *live* is what its actor knows: in an encrypted session the pause says more than storage may.
    """
    session = state.session
    detail: dict[str, Any] = {"id": session.id, "title": session.title or ""}
    if session.scope is not None:
        detail["scope"] = session.scope
    if session.key_id is not None:
        detail["key_id"] = session.key_id
    pause = pending_pause(live or state)
    return {
        **detail,
        "created_at": timestamp(session.created_at),
        "updated_at": timestamp(session.updated_at),
        "messages": [_message_view(message, state) for message in state.messages],
        "metadata": {} if pause is None else {"run": pause.envelope()},
    }


def _message_view(message: Message, state: SessionState) -> dict[str, Any]:
    view: dict[str, Any] = {"role": message.role.value, **_content_view(message, state)}
    if message.role is Role.ASSISTANT:
        view |= {"provider": message.provider, "model": message.model}
    if message.interrupted:
        view["interrupted"] = True
    if message.call_id is not None:
        view["call_id"] = message.call_id
    return view


def _content_view(message: Message, state: SessionState) -> dict[str, Any]:
    """Return the content; a sealed one with its reference, and what its text will look like."""
    if message.sealed is None:
        return {"content": {"plaintext": message.text}}
    call = state.calls.get(message.call_id or "")
    form = "calls" if message.calls else (call and call.format) or "text"
    sealed = {"encrypted": message.sealed.model_dump()}
    return {"content": sealed, "reference": reference(message), "format": form}


def pending_pause(state: SessionState) -> TurnEnd | None:
    """Return the outcome that the run's present pause was announced with; None if it is idle."""
    phase = state.run.phase
    data: dict[str, Any] = {"trace_id": trace_id(state)}
    gone = lost(state)
    if gone:
        # What was said is no longer at hand: only who has heard it can seal it, or go on.
        data["lost"] = list(gone)
    allowed = allowed_continuations(pause_of(phase))
    match phase:
        case Idle():
            return None
        case AwaitingTool(calls):
            if all(is_known(state, pending.call_id) for pending in calls):
                requests = [tool_request(state.calls[p.call_id], p).body() for p in calls]
                data = {"tool_requests": requests, **data}
            ending = TurnEnd(Status.AWAITING_TOOL, data, allowed)
        case AwaitingApproval():
            ending = TurnEnd(Status.AWAITING_APPROVAL, {**_approval(state, phase), **data}, allowed)
        case AwaitingDecrypt(references):
            sealed = sealed_by(state, references)
            to_open = {name: envelope.model_dump() for name, envelope in sealed.items()}
            ending = TurnEnd(Status.AWAITING_DECRYPT, {"to_decrypt": to_open, **data}, allowed)
        case AwaitingEncrypt():
            ending = TurnEnd(Status.AWAITING_ENCRYPT, data, allowed)
    return ending if gone else with_rows(ending, state)


def _approval(state: SessionState, phase: AwaitingApproval) -> dict[str, Any]:
    detail = dict(phase.detail)
    plan = state.plan
    if plan is not None and plan.id == detail.get("plan") and isinstance(plan.content, Plain):
        detail["content"] = plan.content.text
    approval = {"approval_id": phase.approval_id, "kind": phase.kind, "detail": detail}
    return {"approval": approval}


def is_known(state: SessionState, call_id: str) -> bool:
    """Say if what the model asked for in a call is at hand: it may be sealed with its message."""
    call = state.calls.get(call_id)
    return call is not None and isinstance(call.arguments, Plain) and call.arguments.text != ""


def lists(phase: Phase) -> bool:
    """Say if the outcome that announces *phase* lists what has to be sealed."""
    return not isinstance(phase, Idle)


def sealing_of(state: SessionState) -> TurnEnd:
    """Return the outcome that only asks for envelopes."""
    allowed = allowed_continuations(Pause.ENCRYPT)
    data = {"trace_id": trace_id(state), "to_encrypt": _listed(state)}
    return TurnEnd(Status.AWAITING_ENCRYPT, data, allowed)


def with_rows(ending: TurnEnd, state: SessionState) -> TurnEnd:
    """Return *ending* with the rows of an encrypted session that are to be sealed.

    If there are none, nobody is asked to seal any.
    """
    if ending.status is Status.AWAITING_ENCRYPT and not state.texts:
        return TurnEnd(Status.IDLE, {"trace_id": trace_id(state)})
    rows = _listed(state)
    if not ending.allowed_continuations or not rows:
        return ending
    return replace(ending, data={**ending.data, "to_encrypt": rows})


def _listed(state: SessionState) -> dict[str, str]:
    """Return the texts whose envelopes the next message has to bring, and no others."""
    names = listed(state.run.unsealed)
    return {name: state.texts[name] for name in names if name in state.texts}


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
