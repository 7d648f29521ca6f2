"""Calls whose arguments were not kept, because they held keys: answered, and never run."""

from collections.abc import Sequence
from typing import Final

from smista.core.events import ToolRequest
from smista.core.messages import Decision, ToolResultEntry

LOST: Final = (
    "This call was not run: its arguments held a key, which is not kept, and the router was "
    "started anew before the call was run. Ask again with the whole arguments if it is needed."
)


def runnable(requests: Sequence[ToolRequest]) -> tuple[ToolRequest, ...]:
    """Return those of *requests* whose arguments are whole."""
    return tuple(request for request in requests if not request.masked)


def answers(requests: Sequence[ToolRequest]) -> tuple[ToolResultEntry, ...]:
    """Return an answer to each of *requests* that cannot be run any more."""
    return tuple(_lost(request) for request in requests if request.masked)


def _lost(request: ToolRequest) -> ToolResultEntry:
    # Nobody approved it, so a call that needed that must not count as approved.
    decision: Decision | None = None if request.requires_approval == "allow" else "rejected"
    return ToolResultEntry(call_id=request.call_id, content=LOST, is_error=True, decision=decision)
