"""Does a continuation answer the pause it meets? Checked before anything is taken or changed."""

from collections.abc import Mapping
from typing import Final

from smista.core.envelopes import wrong_envelopes
from smista.core.errors import InvalidRequest, SmistaError
from smista.core.messages import (
    ApprovalDecisions,
    Decrypted,
    Inject,
    Message,
    SealedRows,
    ToolResults,
)
from smista.core.opening import can_go_on, opened
from smista.core.phase import AwaitingApproval, AwaitingDecrypt, AwaitingTool
from smista.core.records import SessionState
from smista.core.secret import Envelope
from smista.core.unsealed import listed

GONE: Final = "what the run was started with is gone; send a new execute"


def wrong_answer(state: SessionState, message: Message) -> SmistaError | None:
    """Return the error for an answer that is wrong, partial or doubled; None if it fits."""
    return _answers_else(state, message) or _wrongly_sealed(state, message)


def _answers_else(state: SessionState, message: Message) -> SmistaError | None:
    match state.run.phase, message:
        case AwaitingTool(calls), ToolResults(data=data):
            return _mismatch(
                "call_id", [call.call_id for call in calls], [r.call_id for r in data.results]
            )
        case AwaitingApproval(approval_id=wanted), ApprovalDecisions(data=data):
            return _mismatch("approval_id", [wanted], [d.approval_id for d in data.decisions])
        case AwaitingDecrypt(references=wanted), Decrypted(data=data):
            return _wrongly_opened(state, wanted, data.plaintext)
        case _:
            return None


def _wrongly_opened(
    state: SessionState, wanted: tuple[str, ...], given: Mapping[str, str]
) -> SmistaError | None:
    missing = sorted(set(wanted) - given.keys())
    if missing:
        return InvalidRequest(
            f"open all that to_decrypt holds: {len(missing)} of {len(wanted)} are missing",
            missing=missing,
        )
    try:
        opened(state, given)
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return InvalidRequest(
            "an opened text does not have the form it was sealed in; open to_decrypt anew"
        )
    return None


def _wrongly_sealed(state: SessionState, message: Message) -> SmistaError | None:
    key_id = state.session.key_id
    if key_id is None:
        return None
    given = envelopes_of(message)
    if given is not None:
        own = message.data.results if isinstance(message, ToolResults) else ()
        results = (f"tool_call:{result.call_id}" for result in own)
        wrong = wrong_envelopes({*listed(state.run.unsealed), *results}, given, key_id)
        if wrong is not None:
            return wrong
    if isinstance(message, SealedRows) or (given is None and not isinstance(message, Inject)):
        return None
    if can_go_on(state, given or {}):
        return None
    return InvalidRequest(GONE)


def envelopes_of(message: Message) -> Mapping[str, Envelope] | None:
    """Return the envelopes that *message* brings, None if its kind brings none."""
    match message:
        case ToolResults(data=data):
            return data.encrypted
        case ApprovalDecisions(data=data):
            return data.encrypted
        case Decrypted(data=data):
            return data.encrypted
        case SealedRows(data=data):
            return data.encrypted
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
