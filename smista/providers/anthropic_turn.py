"""The events of one answer of the Messages API → events of ours."""

from collections.abc import Mapping
from typing import Any, Final

from smista.core.stream import Finish, StreamEnd, StreamEvent, TextDelta
from smista.providers.anthropic_usage import AnthropicUsage
from smista.providers.faults import bad_stream, classify, read_complaint
from smista.providers.json_values import is_object, items, member, text
from smista.providers.masking import Mask
from smista.providers.speech import Speech
from smista.providers.tool_calls import ToolCalls, TooManyCalls

_NAME: Final = "anthropic"
_FINISHES: Final = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
}


class AnthropicTurn:
    """What has been said so far. *names* maps tool names on the wire to ours."""

    def __init__(self, *, calls: int, names: Mapping[str, str], mask: Mask) -> None:
        self._limit = calls
        self._names = names
        self._mask = mask
        self._calls = ToolCalls(limit=calls)
        self._inputs: list[tuple[int | None, dict[str, Any]]] = []
        self._ids: dict[int | None, str] = {}
        self._speech = Speech()
        self._usage = AnthropicUsage()
        self._model = ""
        self._finish = ""
        self._why = ""
        self._begun = False
        self.ended = False

    def read(self, chunk: dict[str, Any], *, event: str = "") -> list[StreamEvent]:
        """Take one event. Raises ProviderError for an error event."""
        kind = text(chunk.get("type")) or event
        if kind == "error" or chunk.get("error"):
            raise classify(read_complaint(_NAME, None, chunk, self._mask))
        match kind:
            case "message_start":
                return self._start(member(chunk, "message"))
            case "content_block_start":
                return self._open(chunk.get("index"), member(chunk, "content_block"))
            case "content_block_delta":
                return self._delta(chunk.get("index"), member(chunk, "delta"))
            case "content_block_stop":
                return self._close(chunk.get("index"))
            case "message_delta":
                return self._change(member(chunk, "delta"), chunk.get("usage"))
            case "message_stop":
                self.ended = True
            case "message":
                return self._whole(chunk)
            case _:
                pass  # pings, and whatever is invented later
        return []

    def is_beat(self, chunk: dict[str, Any]) -> bool:
        return text(chunk.get("type")) not in ("", "ping")

    def end(self, *, explicit: bool) -> list[StreamEvent]:
        """Return the last events.

        Raises ProviderError if there is no answer, or only the beginning of one.
        """
        if not self._finish and not (explicit and (self._speech.spoke or self._calls)):
            if explicit or not self._begun:
                raise bad_stream(_NAME, "empty_response", "the answer is empty")
            raise bad_stream(_NAME, "truncated_stream", "the answer ended in the middle")
        said = [*self._speech.rest(), *self._explanation(), *self._unclosed()]
        end = StreamEnd(finish=self._reason(), model=self._model or None)
        # What a model asked for before it was stopped is not to be done.
        calls = [] if end.finish is Finish.REFUSAL else self._calls.end()
        return [*said, *calls, *self.usage(), end]

    def usage(self) -> list[StreamEvent]:
        total = self._usage.total()
        return [] if total is None else [total]

    def _start(self, message: Any) -> list[StreamEvent]:
        self._begun = True
        self._model = self._model or text(member(message, "model"))
        # Passed on at once: it is what is billed if the answer is left in the middle.
        return self.usage() if self._usage.read(member(message, "usage")) else []

    def _change(self, delta: Any, usage: Any) -> list[StreamEvent]:
        self._begun = True
        self._finish = text(member(delta, "stop_reason")) or self._finish
        self._why = text(member(member(delta, "stop_details"), "explanation")) or self._why
        self._usage.read(usage)
        return []

    def _open(self, index: Any, block: Any) -> list[StreamEvent]:
        self._begun = True
        match block:
            case {"type": "tool_use"}:
                return self._open_call(index, block)
            case {"type": "text"}:
                return self._speech.say(text(block.get("text")))
            case {"type": "thinking"}:
                return self._speech.think(text(block.get("thinking")))
            case _:
                return []

    def _open_call(self, index: Any, block: dict[str, Any]) -> list[StreamEvent]:
        slot = _slot(index)
        self._ids[slot] = text(block.get("id"))
        if is_object(given := block.get("input")) and given:
            self._inputs.append((slot, given))
        name = text(block.get("name"))
        return self._tool(slot, name=self._names.get(name, name))

    def _delta(self, index: Any, delta: Any) -> list[StreamEvent]:
        self._begun = True
        match delta:
            case {"type": "text_delta"}:
                return self._speech.say(text(delta.get("text")))
            case {"type": "thinking_delta"}:
                return self._speech.think(text(delta.get("thinking")))
            case {"type": "input_json_delta"}:
                return self._argue(index, text(delta.get("partial_json")))
            case _:
                return []

    def _argue(self, index: Any, piece: str) -> list[StreamEvent]:
        if not piece or not self._ids:
            return []
        # A fragment for a block that was never opened belongs to the one that was.
        slot = _slot(index) if _slot(index) in self._ids else next(reversed(self._ids))
        self._inputs = [(at, given) for at, given in self._inputs if at != slot]
        return self._tool(slot, arguments=piece)

    def _close(self, index: Any) -> list[StreamEvent]:
        slot = _slot(index)
        whole = [given for at, given in self._inputs if at == slot]
        self._inputs = [(at, given) for at, given in self._inputs if at != slot]
        return [event for given in whole for event in self._tool(slot, arguments=given)]

    def _unclosed(self) -> list[StreamEvent]:
        left, self._inputs = self._inputs, []
        return [event for slot, given in left for event in self._tool(slot, arguments=given)]

    def _tool(self, slot: int | None, *, name: str = "", arguments: Any = "") -> list[StreamEvent]:
        # The id goes with every fragment: a call may be told in more than one block.
        function = {"name": name, "arguments": arguments}
        entry = {"index": slot, "id": self._ids.get(slot), "function": function}
        try:
            return self._calls.read([entry])
        except TooManyCalls:
            what = f"the answer holds more than {self._limit} tool calls"
            raise bad_stream(_NAME, "too_many_calls", what) from None

    def _whole(self, message: dict[str, Any]) -> list[StreamEvent]:
        """Take a message that was not streamed."""
        self._start(message)
        said: list[StreamEvent] = []
        for index, block in enumerate(items(message.get("content"))):
            said += [*self._open(index, block), *self._close(index)]
        self._change(message, message.get("usage"))
        self.ended = True
        return said

    def _explanation(self) -> list[StreamEvent]:
        """Return why the model said nothing, where the provider tells it."""
        if self._speech.spoke or not self._why:
            return []
        return [TextDelta(text=self._mask(self._why))]

    def _reason(self) -> Finish:
        if self._finish in _FINISHES:
            return _FINISHES[self._finish]
        if self._calls:
            return Finish.TOOL_CALLS
        return Finish.STOP if self._finish else Finish.INFERRED


def _slot(index: Any) -> int | None:
    return index if isinstance(index, int) else None
