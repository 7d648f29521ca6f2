"""What one model call has said so far: it listens to the stream and passes on what a client sees."""

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

    def hear(self, event: StreamEvent, call_id: str) -> None:
        """Take *event*; *call_id* is the id that a call beginning now shall have."""
        match event:
            case TextDelta(text=text):
                self.parts.append(text)
                self._say(TextDeltaEvent(text))
            case ReasoningDelta(text=text):
                self._say(ReasoningDeltaEvent(text))
            case ToolStarted(index=index, name=name):
                self.call_ids[index] = call_id
                if name in self.announce:
                    self._say(ToolCallStarted(call_id, name))
            case ToolCallEnded(index=index):
                self.call_ids.setdefault(index, call_id)
                self.calls.append(event)
            case Usage():
                self.usage = event
            case StreamEnd():
                self.end = event

    def _say(self, event: TextDeltaEvent | ReasoningDeltaEvent | ToolCallStarted) -> None:
        self.heard = True
        self.stream.put(event)
