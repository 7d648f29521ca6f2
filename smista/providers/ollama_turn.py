"""The lines of one answer of Ollama's chat API → events. Lines are objects here, not bytes."""

from typing import Any, Final

from smista.core.stream import (
    Finish,
    StreamEnd,
    StreamEvent,
    ToolCallEnded,
    ToolStarted,
    Usage,
)
from smista.providers.faults import bad_stream, classify, read_complaint
from smista.providers.json_values import count, items, member, object_text, text
from smista.providers.masking import Mask
from smista.providers.ollama_errors import error_in
from smista.providers.speech import Speech

# The server says so when a request did no more than move a model in or out of memory.
_NOTHING_SAID: Final = frozenset({"load", "unload"})


class OllamaTurn:
    """What has been said so far. Its methods raise ProviderError when the answer is spoilt.

    Tool calls come whole, and each entry is a call of its own.
    """

    def __init__(self, *, provider: str, calls: int, mask: Mask) -> None:
        self._provider = provider
        self._limit = calls
        self._mask = mask
        self._speech = Speech()
        self._calls: list[ToolCallEnded] = []
        self._usage: Usage | None = None
        self._model = ""
        self._reason = ""
        self._ended = False
        self._begun = False
        self._said = False

    @property
    def ended(self) -> bool:
        return self._ended

    def is_beat(self, chunk: dict[str, Any]) -> bool:
        return bool(chunk.get("message")) or chunk.get("done") is True

    def read(self, chunk: dict[str, Any], *, event: str = "") -> list[StreamEvent]:
        """Take one line. Raises ProviderError for an error."""
        if chunk.get("error"):
            said = error_in(chunk)
            raise classify(read_complaint(self._provider, None, said, self._mask))
        self._begun = True
        self._model = text(chunk.get("model")) or self._model
        events = self._message(chunk.get("message"))
        self._said = self._said or bool(events)
        if chunk.get("done") is True:
            self._ended = True
            self._reason = text(chunk.get("done_reason"))
            self._usage = _usage(chunk)
        return events

    def end(self, *, explicit: bool) -> list[StreamEvent]:
        """Return the last events. Raises ProviderError if the answer is none, or only begun."""
        if self._begun and not self._ended:
            raise bad_stream(self._provider, "truncated_stream", "the answer ended in the middle")
        if not self._begun or (self._reason in _NOTHING_SAID and not self._said):
            raise bad_stream(self._provider, "empty_response", "the answer is empty")
        return [
            *self._speech.rest(),
            *self._calls,
            *self.usage(),
            StreamEnd(finish=self._finish(), model=self._model or None),
        ]

    def usage(self) -> list[StreamEvent]:
        return [] if self._usage is None else [self._usage]

    def _message(self, message: Any) -> list[StreamEvent]:
        return [
            *self._speech.think(text(member(message, "thinking"))),
            *self._speech.say(text(member(message, "content"))),
            *(self._call(entry) for entry in items(member(message, "tool_calls"))),
        ]

    def _call(self, entry: Any) -> ToolStarted:
        if len(self._calls) >= self._limit:
            what = f"the answer holds more than {self._limit} tool calls"
            raise bad_stream(self._provider, "too_many_calls", what)
        function = member(entry, "function")
        call = ToolCallEnded(
            index=len(self._calls),
            id=text(member(entry, "id")),
            name=text(member(function, "name")),
            arguments=object_text(member(function, "arguments")) or "{}",
        )
        self._calls.append(call)
        return ToolStarted(index=call.index, name=call.name)

    def _finish(self) -> Finish:
        if self._reason == "length":
            return Finish.LENGTH
        if self._calls:
            return Finish.TOOL_CALLS
        return Finish.STOP if self._reason else Finish.INFERRED


def _usage(chunk: dict[str, Any]) -> Usage | None:
    """Return the counts of the last line; they are absent where nothing had to be evaluated."""
    asked, said = count(chunk.get("prompt_eval_count")), count(chunk.get("eval_count"))
    cached = count(chunk.get("prompt_eval_cached_count"))
    if asked is None and said is None:
        return None
    asked = max(asked, cached or 0) if asked is not None else cached
    return Usage(input_tokens=asked, output_tokens=said, cached_tokens=cached)
