"""The chunks of one answer of Gemini → events."""

from collections.abc import Mapping
from typing import Any, Final

from smista.core.stream import Finish, StreamEnd, StreamEvent, TextDelta
from smista.providers.faults import bad_stream
from smista.providers.gemini_errors import gemini_error
from smista.providers.gemini_usage import GeminiUsage
from smista.providers.json_values import is_object, items, member, text
from smista.providers.masking import Mask
from smista.providers.speech import Speech
from smista.providers.tool_calls import ToolCalls, TooManyCalls

_NAME: Final = "gemini"
_FINISHES: Final = {
    "STOP": Finish.STOP,
    "FINISH_REASON_UNSPECIFIED": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "CONTINUATION": Finish.LENGTH,
}
# The model could not say what it wanted to; asked again, it or another one often can.
_SPOILT: Final = frozenset(
    {
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "OTHER"),
        *("TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
    }
)
_UNSPECIFIED: Final = "BLOCK_REASON_UNSPECIFIED"


class GeminiTurn:
    """What has been said so far. *names* maps tool names on the wire to ours.

    No mark ends an answer: it is whole when the bytes end after a finish reason.
    """

    def __init__(self, *, calls: int, names: Mapping[str, str], mask: Mask) -> None:
        self._limit = calls
        self._names = names
        self._mask = mask
        self._calls = ToolCalls(limit=calls)
        self._slot = 0
        self._ids: set[str] = set()
        self._speech = Speech()
        self._usage = GeminiUsage()
        self._model = ""
        self._finish = ""
        self._blocked = ""
        self._why = ""
        self._said = False
        self._begun = False

    @property
    def ended(self) -> bool:
        return False

    def read(self, chunk: dict[str, Any], *, event: str = "") -> list[StreamEvent]:
        """Take one chunk. Raises ProviderError for an error object."""
        if chunk.get("error") or event == "error":
            raise gemini_error(None, chunk, self._mask)
        self._model = self._model or text(chunk.get("modelVersion"))
        counted = self._usage.read(chunk.get("usageMetadata"))
        blocked = text(member(chunk.get("promptFeedback"), "blockReason"))
        self._blocked = self._blocked or ("" if blocked == _UNSPECIFIED else blocked)
        candidate = _first(chunk)
        if candidate is None:
            return []
        self._begun = True
        self._finish = text(candidate.get("finishReason")) or self._finish
        self._why = text(candidate.get("finishMessage")) or self._why
        said: list[StreamEvent] = []
        for part in items(member(candidate.get("content"), "parts")):
            said += self._part(part)
        self._said = self._said or bool(said) or bool(self._calls)
        # A count in the middle is passed on: it is what is billed if the answer is left there.
        return [*said, *self.usage()] if counted and not self._finish else said

    def is_beat(self, chunk: dict[str, Any]) -> bool:
        return bool(items(chunk.get("candidates")) or chunk.get("usageMetadata"))

    def end(self, *, explicit: bool) -> list[StreamEvent]:
        """Return the last events.

        Raises ProviderError if there is no answer, or only the beginning of one.
        """
        if not self._blocked:
            self._check(explicit)
        finish = self._reason()
        # What a model asked for before it was stopped is not to be done.
        calls = [] if finish is Finish.REFUSAL else self._calls.end()
        end = StreamEnd(finish=finish, model=self._model or None)
        return [*self._speech.rest(), *self._explanation(finish), *calls, *self.usage(), end]

    def usage(self) -> list[StreamEvent]:
        total = self._usage.total()
        return [] if total is None else [total]

    def _check(self, explicit: bool) -> None:
        if not self._finish and self._begun and not explicit:
            raise bad_stream(_NAME, "truncated_stream", "the answer ended in the middle")
        if self._finish in _SPOILT and not self._calls:
            what = f"the model stopped with {self._finish} {self._mask(self._why)}".strip()
            raise bad_stream(_NAME, "upstream_error", what)
        # A stop without a word is how some of its faults look.
        if not self._said and (not self._finish or _FINISHES.get(self._finish) is Finish.STOP):
            raise bad_stream(_NAME, "empty_response", "the answer is empty")

    def _part(self, part: Any) -> list[StreamEvent]:
        match part:
            case {"functionCall": call} if is_object(call):
                return self._call(call)
            case {"text": str(piece), "thought": True}:
                return self._speech.think(piece)
            case {"text": str(piece)}:
                return self._speech.say(piece)
            case _:
                return []

    def _call(self, call: dict[str, Any]) -> list[StreamEvent]:
        """Take one call; it always comes in one piece."""
        name, own = text(call.get("name")), text(call.get("id"))
        entry = {
            "index": self._slot,
            "id": "" if own in self._ids else own,
            "function": {"name": self._names.get(name, name), "arguments": call.get("args")},
        }
        self._slot += 1
        self._ids.add(own)
        try:
            return self._calls.read([entry])
        except TooManyCalls:
            what = f"the answer holds more than {self._limit} tool calls"
            raise bad_stream(_NAME, "too_many_calls", what) from None

    def _explanation(self, finish: Finish) -> list[StreamEvent]:
        """Return why nothing was said, where a filter was the reason."""
        if finish is not Finish.REFUSAL or self._speech.spoke:
            return []
        why = self._mask(self._why) or self._blocked or self._finish
        return [TextDelta(text=f"Gemini did not answer: {why}")]

    def _reason(self) -> Finish:
        if self._blocked:
            return Finish.REFUSAL
        # Every reason that is not listed is a filter of some kind.
        finish = _FINISHES.get(self._finish, Finish.REFUSAL) if self._finish else Finish.INFERRED
        if self._finish in _SPOILT:
            finish = Finish.STOP
        stopped = finish in (Finish.LENGTH, Finish.REFUSAL)
        return Finish.TOOL_CALLS if self._calls and not stopped else finish


def _first(chunk: dict[str, Any]) -> dict[str, Any] | None:
    for candidate in items(chunk.get("candidates")):
        if is_object(candidate) and candidate.get("index") in (0, None):
            return candidate
    return None
