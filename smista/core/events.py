"""What a turn says to its client; the last event is its outcome (*Streaming*, *Responses*).

These are wire types: `to_json()` of one is the body of an SSE frame, the turn end without its
`type` is the buffered response.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from smista.core.errors import SmistaError


class Status(StrEnum):
    COMPLETED = "completed"
    AWAITING_TOOL = "awaiting_tool"
    AWAITING_APPROVAL = "awaiting_approval"
    AWAITING_DECRYPT = "awaiting_decrypt"
    AWAITING_ENCRYPT = "awaiting_encrypt"
    IDLE = "idle"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class TextDeltaEvent:
    delta: str
    type: ClassVar[str] = "text_delta"

    def body(self) -> dict[str, Any]:
        return {"type": self.type, "delta": self.delta}


@dataclass(frozen=True, slots=True)
class ReasoningDeltaEvent:
    delta: str
    type: ClassVar[str] = "reasoning_delta"

    def body(self) -> dict[str, Any]:
        return {"type": self.type, "delta": self.delta}


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    call_id: str
    name: str
    type: ClassVar[str] = "tool_call_started"

    def body(self) -> dict[str, Any]:
        return {"type": self.type, "call_id": self.call_id, "name": self.name}


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call for the client to run; *requires_approval* is `allow` or `ask`.

    *masked*: its arguments held keys and were not kept, so it can only be answered as failed.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    requires_approval: str
    restricted_in_view: bool = False
    masked: bool = False

    def body(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "call_id": self.call_id,
            "name": self.name,
            "arguments": self.arguments,
            "requires_approval": self.requires_approval,
        }
        if self.restricted_in_view:
            entry["restricted_in_view"] = True
        if self.masked:
            entry["masked"] = True
        return entry


@dataclass(frozen=True, slots=True)
class ToolCallRequested:
    request: ToolRequest
    type: ClassVar[str] = "tool_call_requested"

    def body(self) -> dict[str, Any]:
        return {"type": self.type, **self.request.body()}


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """The figures of one model call, as *Usage members* names them."""

    usage: Mapping[str, Any]
    type: ClassVar[str] = "usage"

    def body(self) -> dict[str, Any]:
        return {"type": self.type, **self.usage}


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The outcome of a turn: the envelope of *Responses*. *error* is set iff *status* is ERROR."""

    status: Status
    data: Mapping[str, Any]
    allowed_continuations: tuple[str, ...] = ()
    error: SmistaError | None = field(default=None, compare=False)
    type: ClassVar[str] = "turn_end"

    def envelope(self) -> dict[str, Any]:
        """Return the buffered response."""
        return {
            "status": self.status.value,
            "data": self.data,
            "allowed_continuations": list(self.allowed_continuations),
        }

    def body(self) -> dict[str, Any]:
        return {"type": self.type, **self.envelope()}


Event = (
    TextDeltaEvent
    | ReasoningDeltaEvent
    | ToolCallStarted
    | ToolCallRequested
    | UsageEvent
    | TurnEnd
)


def error_body(error: SmistaError) -> dict[str, Any]:
    """Return the members of the API's `error` object."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details:
        body["details"] = dict(error.details)
    return body


def failed(error: SmistaError) -> TurnEnd:
    """Return the last event of a turn that ended in *error*."""
    return TurnEnd(Status.ERROR, {"error": error_body(error)}, (), error)
