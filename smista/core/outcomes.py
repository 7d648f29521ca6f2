"""A turn's outcome as it is remembered: references and metadata, so that it can be told again.

The words of a model, the arguments of calls and the text of plans stay in their own rows; here
stand only the ids under which they are found.
"""

from collections.abc import Mapping
from typing import Any

from smista.core.errors import revive
from smista.core.events import Status, TurnEnd, failed
from smista.core.history import Role
from smista.core.intents import Mode
from smista.core.lifecycle import Pause, allowed_continuations
from smista.core.phase import PendingCall
from smista.core.records import SessionState
from smista.core.secret import Plain
from smista.core.session_views import tool_request


def remember(ending: TurnEnd, state: SessionState) -> dict[str, Any]:
    """Return the stored form of *ending*, which *state* was committed with."""
    data = dict(ending.data)
    match ending.status:
        case Status.COMPLETED:
            message = data.pop("message")
            data["message"] = {k: v for k, v in message.items() if k != "content"}
            return {"status": ending.status.value, "said": state.messages[-1].uuid, "data": data}
        case Status.AWAITING_TOOL:
            calls = [
                {
                    "call_id": request["call_id"],
                    "mode": request["requires_approval"],
                    "restricted": request.get("restricted_in_view", False),
                }
                for request in data.pop("tool_requests")
            ]
            return {"status": ending.status.value, "calls": calls, "data": data}
        case Status.AWAITING_APPROVAL:
            approval = dict(data["approval"])
            detail = {k: v for k, v in approval["detail"].items() if k != "content"}
            data["approval"] = {**approval, "detail": detail}
        case _:
            pass
    return {"status": ending.status.value, "data": data}


def tell_again(outcome: Mapping[str, Any], state: SessionState) -> TurnEnd | None:
    """Return the ending that *outcome* remembers; None if its rows are no longer at hand."""
    status, data = Status(outcome["status"]), dict(outcome["data"])
    match status:
        case Status.ERROR:
            error = data["error"]
            return failed(revive(error["code"], error["message"], error.get("details", {})))
        case Status.COMPLETED:
            said = next((m for m in state.messages if m.uuid == outcome["said"]), None)
            if said is None:
                return None
            message = {"role": Role.ASSISTANT.value, "content": said.text, **data["message"]}
            return TurnEnd(status, {**data, "message": message})
        case Status.AWAITING_TOOL:
            return _tools_again(outcome, state, data)
        case Status.AWAITING_APPROVAL:
            return _approval_again(state, data)
        case _:
            return TurnEnd(status, data)


def _tools_again(
    outcome: Mapping[str, Any], state: SessionState, data: dict[str, Any]
) -> TurnEnd | None:
    calls = [
        PendingCall(entry["call_id"], Mode(entry["mode"]), entry["restricted"])
        for entry in outcome["calls"]
    ]
    if any(call.call_id not in state.calls for call in calls):
        return None
    requests = [tool_request(state.calls[call.call_id], call).body() for call in calls]
    allowed = allowed_continuations(Pause.TOOL)
    return TurnEnd(Status.AWAITING_TOOL, {**data, "tool_requests": requests}, allowed)


def _approval_again(state: SessionState, data: dict[str, Any]) -> TurnEnd | None:
    approval = dict(data["approval"])
    plan_id = approval["detail"].get("plan")
    if plan_id is not None:
        plan = state.plan
        if plan is None or plan.id != plan_id or not isinstance(plan.content, Plain):
            return None
        approval["detail"] = {**approval["detail"], "content": plan.content.text}
    allowed = allowed_continuations(Pause.APPROVAL)
    return TurnEnd(Status.AWAITING_APPROVAL, {**data, "approval": approval}, allowed)
