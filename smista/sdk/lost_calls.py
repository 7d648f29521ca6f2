"""A call whose arguments were not kept, because they held a key: answered, and never run."""

from typing import Final

from smista.core.events import ToolRequest
from smista.core.messages import Decision, ToolResultEntry

LOST: Final = (
    "This call was not run: its arguments held a key, which is not kept, and the router was "
    "started anew before the call was run. Ask again with the whole arguments if it is needed."
)


def lost(request: ToolRequest) -> ToolResultEntry:
    """Return the answer to *request*, which is `masked` and was never begun."""
    # Nobody approved it, so a call that needed that must not count as approved.
    decision: Decision | None = None if request.requires_approval == "allow" else "rejected"
    return ToolResultEntry(call_id=request.call_id, content=LOST, is_error=True, decision=decision)
