"""The chunks of one Chat Completions answer → events. Chunks are objects here, not bytes."""

from typing import Any, Final

from smista.core.errors import ProviderFailure
from smista.core.stream import (
    Finish,
    StreamEnd,
    StreamEvent,
)
from smista.providers.chat_usage import ChatUsage
from smista.providers.faults import bad_stream, classify, read_complaint
from smista.providers.json_values import is_list, is_object, items, member, text
from smista.providers.masking import Mask
from smista.providers.speech import Speech
from smista.providers.tool_calls import ToolCalls, TooManyCalls

_FINISHES: Final = {
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.REFUSAL,
    "refusal": Finish.REFUSAL,
}


class ChatTurn:
    """What has been said so far. Its methods raise ProviderError when the answer is spoilt."""

    def __init__(self, *, provider: str, calls: int, mask: Mask) -> None:
        self._provider = provider
        self._limit = calls
        self._mask = mask
        self._calls = ToolCalls(limit=calls)
        self._speech = Speech()
        self._usage = ChatUsage()
        self._model = ""
        self._finish = ""
        self._refused = False
        self._said = False
        self._begun = False

    @property
    def ended(self) -> bool:
        """Never true: the end is a mark of its own, `[DONE]`, or the end of the bytes."""
        return False

    def is_beat(self, chunk: dict[str, Any]) -> bool:
        return bool(items(chunk.get("choices")) or chunk.get("usage"))

    def read(self, chunk: dict[str, Any], *, event: str = "") -> list[StreamEvent]:
        """Take one chunk. Raises ProviderError for an error object."""
        self._complain(chunk, event)
        self._model = self._model or text(chunk.get("model"))
        choice = _first_choice(chunk)
        self._finish = text(member(choice, "finish_reason")) or self._finish
        # Usage may come without any choice, after the finish reason; that report is the last.
        final = choice is None or bool(self._finish)
        if counted := is_object(usage := chunk.get("usage")):
            self._usage.read(usage, final=final)
        if choice is None:
            return []
        self._begun = True
        said = self._delta(self._part(choice))
        # A count in the middle is passed on: it is what is billed if the answer is left there.
        return [*said, *self.usage()] if counted and not final else said

    def end(self, *, explicit: bool) -> list[StreamEvent]:
        """Return the last events. *explicit*: the server said that this is the end.

        Raises ProviderError if there is no answer, or only the beginning of one.
        """
        if not explicit and not self._finish and self._begun:
            raise bad_stream(self._provider, "truncated_stream", "the answer ended in the middle")
        if not self._finish and not self._said:
            raise bad_stream(self._provider, "empty_response", "the answer is empty")
        if self._finish == "error":
            message = f"{self._provider} gave up in the middle of its answer"
            raise ProviderFailure(message, kind="upstream_error", provider=self._provider)
        end = StreamEnd(finish=self._reason(), model=self._model or None)
        return [*self._speech.rest(), *self._calls.end(), *self.usage(), end]

    def usage(self) -> list[StreamEvent]:
        total = self._usage.total()
        return [] if total is None else [total]

    def _complain(self, chunk: dict[str, Any], event: str) -> None:
        named = event == "error" or "error" in (chunk.get("type"), chunk.get("object"))
        if chunk.get("error") or named:
            raise classify(read_complaint(self._provider, None, chunk, self._mask))

    def _part(self, choice: dict[str, Any]) -> dict[str, Any]:
        delta = choice.get("delta")
        if is_object(delta):
            return delta
        # Some servers repeat the whole message at the end; it counts if nothing came before.
        message = None if self._said else choice.get("message")
        return message if is_object(message) else {}

    def _delta(self, delta: dict[str, Any]) -> list[StreamEvent]:
        events = [
            *self._speech.think(_reasoning(delta)),
            *self._speech.say(_content(delta) + self._refusal(delta)),
            *self._tools(delta),
        ]
        self._said = self._said or bool(events) or bool(self._calls)
        return events

    def _refusal(self, delta: dict[str, Any]) -> str:
        refusal = text(delta.get("refusal"))
        self._refused = self._refused or bool(refusal)
        return refusal

    def _tools(self, delta: dict[str, Any]) -> list[StreamEvent]:
        entries, function = items(delta.get("tool_calls")), delta.get("function_call")
        if not entries and is_object(function):
            entries = [{"index": 0, "function": function}]
        if not entries:
            return []
        try:
            return self._calls.read(entries)
        except TooManyCalls:
            what = f"the answer holds more than {self._limit} tool calls"
            raise bad_stream(self._provider, "too_many_calls", what) from None

    def _reason(self) -> Finish:
        if self._refused or self._finish in _FINISHES:
            return _FINISHES.get(self._finish, Finish.REFUSAL)
        if self._calls:  # whatever word the server used
            return Finish.TOOL_CALLS
        return Finish.STOP if self._finish else Finish.INFERRED


def _first_choice(chunk: dict[str, Any]) -> dict[str, Any] | None:
    for choice in items(chunk.get("choices")):
        if is_object(choice) and choice.get("index") in (0, None):
            return choice
    return None


def _content(delta: dict[str, Any]) -> str:
    content = delta.get("content")
    if is_list(content):
        return "".join(text(member(part, "text")) for part in content)
    return text(content)


def _reasoning(delta: dict[str, Any]) -> str:
    named = text(delta.get("reasoning_content")) or text(delta.get("reasoning"))
    if named or not (is_list(delta.get("reasoning_details")) or is_list(delta.get("content"))):
        return named
    details = "".join(text(member(part, "text")) for part in items(delta.get("reasoning_details")))
    return details or "".join(
        text(member(inner, "text"))
        for part in items(delta.get("content"))
        for inner in items(member(part, "thinking"))
    )
