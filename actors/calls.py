"""A turn's tool calls: mediated when the model asks, settled when the client answers."""

from actors.draft import Draft
from actors.own_calls import cannot_succeed, run_own_call
from smista.core.decision import Decision
from smista.core.history import Call
from smista.core.intents import Mode
from smista.core.mediation import mediate, parse_arguments
from smista.core.messages import ToolResultEntry
from smista.core.phase import PendingCall
from smista.core.proposals import proposed_change
from smista.core.records import CallStatus, DiffRecord, DiffStatus, ToolCallRecord
from smista.core.secret import Plain
from smista.core.snapshot import Snapshot
from smista.core.tools import ROUTER_TOOLS

CUT = "The output limit was reached in the middle of this call, so it was not run. Ask again."


def mediate_call(
    draft: Draft, decision: Decision, snapshot: Snapshot, call: Call, *, cut: bool
) -> PendingCall | None:
    """Record *call* and decide on it: None if it was answered here, else what the client runs."""
    arguments = parse_arguments(call.name, call.arguments)
    draft.put_call(
        ToolCallRecord(
            id=call.call_id,
            tool_name=call.name,
            status=CallStatus.PENDING,
            arguments=Plain(call.arguments),
            created_at=draft.now,
            restricted=decision.restricted_in_view,
        )
    )
    if cut or isinstance(arguments, str):
        draft.answer_call(call.call_id, CUT if cut else str(arguments), is_error=True, paths=())
        return None
    verdict = mediate(call.name, arguments, decision, snapshot)
    if verdict.mode is Mode.DENY:
        draft.answer_call(call.call_id, verdict.reason, is_error=True, paths=())
        return None
    if call.name in ROUTER_TOOLS:
        own, local = call.call_id, decision.descriptor.local
        if verdict.mode is Mode.ALLOW or cannot_succeed(draft, own, arguments, local=local):
            run_own_call(draft, own, local=local)
            return None
    _propose(draft, call, arguments, restricted=decision.restricted_in_view)
    return PendingCall(call.call_id, verdict.mode, verdict.restricted_in_view)


def _propose(draft: Draft, call: Call, arguments: dict[str, object], *, restricted: bool) -> None:
    known = {file.path: file.content for file in draft.input.request.attachments.files}
    change = proposed_change(call.name, arguments, known)
    if change is None:
        return
    path, body = change
    draft.put_diff(
        DiffRecord(
            id=call.call_id,
            path=path,
            status=DiffStatus.PROPOSED,
            body=Plain(body),
            created_at=draft.now,
            restricted=restricted,
        )
    )


def take_result(draft: Draft, result: ToolResultEntry, mode: Mode) -> None:
    """Store what became of a call; for one that needed it, also the user's word on it."""
    rejected = result.decision == "rejected"
    if draft.state.calls[result.call_id].tool_name in ROUTER_TOOLS:
        _take_word(draft, result)
        return
    if mode is Mode.ASK:
        draft.approve("tool_call", result.call_id, result.decision or "approved")
    content = result.content or ("the user rejected this call" if rejected else "")
    draft.answer_call(
        result.call_id,
        content,
        is_error=result.is_error or rejected,
        paths=() if rejected else result.paths,
        restricted=result.restricted or False,
    )


def _take_word(draft: Draft, result: ToolResultEntry) -> None:
    """Take the user's word on a call that the router runs; what the client says of it is not."""
    approved = result.decision == "approved"
    draft.approve("tool_call", result.call_id, "approved" if approved else "rejected")
    if approved:
        draft.own_calls.append(result.call_id)
        return
    why = result.content or "the user rejected this call"
    draft.answer_call(result.call_id, why, is_error=True, paths=())
