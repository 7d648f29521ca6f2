"""What one model call has said so far; it passes on what a client may see."""

from collections.abc import Callable
from dataclasses import dataclass, field

from actors.turn_stream import TurnStream
from smista.core.events import ReasoningDeltaEvent, TextDeltaEvent, ToolCallStarted
from smista.core.stream import (
    Finish,
    ReasoningDelta,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallEnded,
    ToolStarted,
    Usage,
)

_TABLE = "session_tool_call"


@dataclass(slots=True)
class Answer:
    """Owned by one model call. *announce* names the calls a client may hear of.

    *call_ids* holds our id for each call, by its position in the answer.
    """

    stream: TurnStream
    announce: frozenset[str]
    call_ids: dict[int, str] = field(default_factory=dict[int, str])
    parts: list[str] = field(default_factory=list[str])
    calls: list[ToolCallEnded] = field(default_factory=list[ToolCallEnded])
    usage: Usage | None = None
    end: StreamEnd | None = None
    heard: bool = False

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def cut(self) -> bool:
        """Whether the model ran into its output limit."""
        return self.end is not None and self.end.finish is Finish.LENGTH

    def forget(self) -> None:
        """Begin anew: nothing of it was shown, and the model is asked again."""
        self.parts.clear()
        self.calls.clear()
        self.call_ids.clear()
        self.end = None

    def hear(self, event: StreamEvent, new_id: Callable[[str], str]) -> None:
        """Take *event*; *new_id* gives a call that begins its id."""
        match event:
            case TextDelta(text=text):
                self.parts.append(text)
                self._say(TextDeltaEvent(text))
            case ReasoningDelta(text=text):
                self._say(ReasoningDeltaEvent(text))
            case ToolStarted(index=index, name=name):
                self.call_ids[index] = new_id(_TABLE)
                if name in self.announce:
                    self._say(ToolCallStarted(self.call_ids[index], name))
            case ToolCallEnded(index=index):
                if index not in self.call_ids:
                    self.call_ids[index] = new_id(_TABLE)
                self.calls.append(event)
            case Usage():
                self.usage = event
            case StreamEnd():
                self.end = event

    def _say(self, event: TextDeltaEvent | ReasoningDeltaEvent | ToolCallStarted) -> None:
        self.heard = True
        self.stream.put(event)
