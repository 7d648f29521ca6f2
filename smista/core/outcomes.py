"""A turn's outcome as it is remembered: references and metadata, so that it can be told again.

The words of a model, the arguments of calls and the text of plans stay in their own rows; here
stand only the ids under which they are found.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from smista.core.errors import revive
from smista.core.events import Status, TurnEnd, failed
from smista.core.history import Role
from smista.core.intents import Mode
from smista.core.lifecycle import Pause, allowed_continuations
from smista.core.opening import sealed_by
from smista.core.phase import AwaitingEncrypt, PendingCall
from smista.core.records import AnsweredRecord, SessionState
from smista.core.secret import Plain
from smista.core.session_views import is_known, sealing_of, tool_request, with_rows


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
        case Status.AWAITING_DECRYPT:
            data["to_decrypt"] = list(data["to_decrypt"])
        case Status.AWAITING_ENCRYPT:
            del data["to_encrypt"]
        case _:
            pass
    return {"status": ending.status.value, "data": data}


def tell_again(answered: AnsweredRecord, state: SessionState) -> TurnEnd | None:
    """Return the ending that *answered* remembers; None if its rows are no longer at hand.

    While the pause it led to lasts, it lists again what an encrypted session has to seal.
    """
    ending = _tell_again(answered.outcome, state)
    before = state.run.before
    if ending is None or before is None or before.at != answered.created_at:
        return ending
    return with_rows(_sealable(ending), state)


def _sealable(ending: TurnEnd) -> TurnEnd:
    if ending.status is not Status.COMPLETED:
        return ending
    return replace(ending, allowed_continuations=allowed_continuations(Pause.ENCRYPT))


def _tell_again(outcome: Mapping[str, Any], state: SessionState) -> TurnEnd | None:
    status, data = Status(outcome["status"]), dict(outcome["data"])
    match status:
        case Status.ERROR:
            error = data["error"]
            return failed(revive(error["code"], error["message"], error.get("details", {})))
        case Status.COMPLETED:
            said = next((m for m in state.messages if m.uuid == outcome["said"]), None)
            # Of an encrypted session storage has not kept what was said beside the words.
            if said is None or not said.opened or "routing" not in data:
                return None
            message = {"role": Role.ASSISTANT.value, "content": said.text, **data["message"]}
            return TurnEnd(status, {**data, "message": message})
        case Status.AWAITING_TOOL:
            return _tools_again(outcome, state, data)
        case Status.AWAITING_APPROVAL:
            return _approval_again(state, data)
        case Status.AWAITING_DECRYPT:
            return _opening_again(state, data)
        case Status.AWAITING_ENCRYPT:
            waits = isinstance(state.run.phase, AwaitingEncrypt)
            return with_rows(sealing_of(state), state) if waits else TurnEnd(Status.IDLE, data)
        case _:
            return TurnEnd(status, data)


def _tools_again(
    outcome: Mapping[str, Any], state: SessionState, data: dict[str, Any]
) -> TurnEnd | None:
    calls = [
        PendingCall(entry["call_id"], Mode(entry["mode"]), entry["restricted"])
        for entry in outcome["calls"]
    ]
    if not all(is_known(state, call.call_id) for call in calls):
        return None
    requests = [tool_request(state.calls[call.call_id], call).body() for call in calls]
    allowed = allowed_continuations(Pause.TOOL)
    return TurnEnd(Status.AWAITING_TOOL, {**data, "tool_requests": requests}, allowed)


def _approval_again(state: SessionState, data: dict[str, Any]) -> TurnEnd | None:
    if "approval" not in data:
        return None
    approval = dict(data["approval"])
    plan_id = approval["detail"].get("plan")
    if plan_id is not None:
        plan = state.plan
        if plan is None or plan.id != plan_id or not isinstance(plan.content, Plain):
            return None
        approval["detail"] = {**approval["detail"], "content": plan.content.text}
    allowed = allowed_continuations(Pause.APPROVAL)
    return TurnEnd(Status.AWAITING_APPROVAL, {**data, "approval": approval}, allowed)


def _opening_again(state: SessionState, data: dict[str, Any]) -> TurnEnd | None:
    names = tuple(data["to_decrypt"])
    sealed = sealed_by(state, names)
    if len(sealed) < len(names):
        return None
    to_open = {name: envelope.model_dump() for name, envelope in sealed.items()}
    allowed = allowed_continuations(Pause.DECRYPT)
    return TurnEnd(Status.AWAITING_DECRYPT, {**data, "to_decrypt": to_open}, allowed)
