"""Does a continuation answer the pause it meets? Checked before anything is taken or changed."""

from smista.core.errors import InvalidRequest, SmistaError
from smista.core.messages import ApprovalDecisions, Message, ToolResults
from smista.core.phase import AwaitingApproval, AwaitingTool, Phase


def wrong_answer(phase: Phase, message: Message) -> SmistaError | None:
    """Return the error for an answer that is wrong, partial or doubled; None if it fits."""
    match phase, message:
        case AwaitingTool(calls), ToolResults(data=data):
            return _mismatch(
                "call_id", [call.call_id for call in calls], [r.call_id for r in data.results]
            )
        case AwaitingApproval(approval_id=wanted), ApprovalDecisions(data=data):
            return _mismatch("approval_id", [wanted], [d.approval_id for d in data.decisions])
        case _:
            return None


def _mismatch(name: str, wanted: list[str], given: list[str]) -> SmistaError | None:
    if sorted(wanted) == sorted(given):
        return None
    missing = sorted(set(wanted) - set(given))
    unknown = len(set(given) - set(wanted))
    return InvalidRequest(
        f"answer each {name} of the pause exactly once: {len(missing)} missing, "
        f"{unknown} unknown, {len(given) - len(set(given))} doubled",
        expected=sorted(wanted),
        missing=missing,
    )
