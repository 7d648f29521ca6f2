"""The events of one Responses API answer → ours. Events are objects here, not bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
from smista.providers.json_values import count, is_object, items, member, text
from smista.providers.masking import Mask
from smista.providers.speech import Speech

_LAST: Final = {"response.completed": "completed", "response.incomplete": "incomplete"}
_TEXTS: Final = ("output_text", "refusal")
_THOUGHTS: Final = ("reasoning_summary_text", "reasoning_text")
_FINISHES: Final = {
    "max_output_tokens": Finish.LENGTH,
    "max_messages": Finish.LENGTH,
    "content_filter": Finish.REFUSAL,
}


@dataclass(slots=True, kw_only=True)
class _Call:
    item: str
    slot: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    whole: str | None = None

    @property
    def arguments(self) -> str:
        written = "".join(self.pieces) if self.whole is None else self.whole
        return written if written.strip() else "{}"


class ResponsesTurn:
    """What has been said so far. Its methods raise ProviderError when the answer is spoilt.

    The deltas are what counts; what comes whole, in `….done` events and in the last one, fills
    in only what no delta has told. *names*: tool name on the wire → ours.
    """

    def __init__(
        self, *, provider: str, calls: int, mask: Mask, names: Mapping[str, str] | None = None
    ) -> None:
        self._provider = provider
        self._limit = calls
        self._mask = mask
        self._names = names or {}
        self._calls: list[_Call] = []
        self._speech = Speech()
        self._told: set[str] = set()
        self._usage: Usage | None = None
        self._model = ""
        self._status = ""
        self._reason = ""
        self._refused = False
        self._begun = False

    @property
    def ended(self) -> bool:
        return bool(self._status)

    def is_beat(self, chunk: dict[str, Any]) -> bool:
        return text(chunk.get("type")).startswith("response.") or "output" in chunk

    def read(self, chunk: dict[str, Any], *, event: str = "") -> list[StreamEvent]:
        """Take one event, or a whole response. Raises ProviderError for a failure."""
        kind = text(chunk.get("type")) or event
        if kind == "error" or (chunk.get("error") and not kind.startswith("response.")):
            raise classify(read_complaint(self._provider, None, chunk, self._mask))
        if chunk.get("object") == "response" and not kind.startswith("response."):
            return self._response(chunk, text(chunk.get("status")))
        if is_object(response := chunk.get("response")):
            status = "failed" if kind == "response.failed" else _LAST.get(kind, "")
            return self._response(response, status)
        return self._event(kind.removeprefix("response."), chunk)

    def end(self, *, explicit: bool) -> list[StreamEvent]:
        """Return the last events. Raises ProviderError if the answer is none, or only begun."""
        if not explicit and self._begun and not self._status:
            raise bad_stream(self._provider, "truncated_stream", "the answer ended in the middle")
        if not self._status and not self._told and not self._calls:
            raise bad_stream(self._provider, "empty_response", "the answer is empty")
        ends = [
            ToolCallEnded(index=at, id=call.id, name=call.name, arguments=call.arguments)
            for at, call in enumerate(self._calls)
        ]
        end = StreamEnd(finish=self._finish(), model=self._model or None)
        return [*self._speech.rest(), *ends, *self.usage(), end]

    def usage(self) -> list[StreamEvent]:
        return [] if self._usage is None else [self._usage]

    def _response(self, response: dict[str, Any], status: str) -> list[StreamEvent]:
        """Take the state of the whole answer; *status* "" if it is still under way."""
        self._begun = True
        self._model = text(response.get("model")) or self._model
        self._usage = _usage(response.get("usage")) or self._usage
        if status in ("failed", "cancelled") or (status and response.get("error")):
            complaint = response.get("error") or {"message": f"the answer was {status}"}
            raise classify(read_complaint(self._provider, None, complaint, self._mask))
        if not status:
            return []
        events = self._rest(items(response.get("output")))
        self._status = status
        self._reason = text(member(response.get("incomplete_details"), "reason"))
        return events

    def _rest(self, output: list[Any]) -> list[StreamEvent]:
        """Take of the whole *output* what no event has told: other parts may be named otherwise."""
        told = {part.partition(" ")[0] for part in self._told}
        events: list[StreamEvent] = []
        for at, item in enumerate(output):
            match text(member(item, "type")):
                case "message" if told.intersection(_TEXTS):
                    continue
                case "reasoning" if told.intersection(_THOUGHTS):
                    continue
                case _:
                    events += self._item(item, at)
        return events

    def _event(self, kind: str, chunk: dict[str, Any]) -> list[StreamEvent]:
        self._begun = self._begun or bool(kind)
        name, _, phase = kind.rpartition(".")
        if name in _TEXTS + _THOUGHTS:
            field_name = "refusal" if name == "refusal" else "text"
            piece = chunk.get("delta") if phase == "delta" else chunk.get(field_name)
            at = chunk.get("content_index", chunk.get("summary_index"))
            place = _place(_slot(chunk), chunk.get("item_id"), at)
            return self._words(name, place, text(piece), whole=phase != "delta")
        match name, phase:
            case "output_item", "added" | "done":
                return self._item(chunk.get("item"), _slot(chunk), done=phase == "done")
            case "function_call_arguments", "delta":
                return self._piece(chunk)
            case "function_call_arguments", "done":
                call = self._call(text(chunk.get("item_id")), _slot(chunk))
                written = text(chunk.get("arguments"))
                call.whole = written if written.strip() else call.whole
                return []
            case _:
                return []

    def _words(self, name: str, place: str, piece: str, *, whole: bool) -> list[StreamEvent]:
        """Take a piece of a part, or the *whole* part, which counts if no piece has come."""
        part = f"{name} {place}"
        if not piece or (whole and part in self._told):
            return []
        if name in _THOUGHTS:
            # The parts of a summary are paragraphs.
            gap = part not in self._told and any(told.startswith(name) for told in self._told)
            self._told.add(part)
            return self._speech.think(f"\n\n{piece}" if gap else piece)
        self._told.add(part)
        self._refused = self._refused or name == "refusal"
        return self._speech.say(piece)

    def _item(self, item: Any, slot: int | None, *, done: bool = True) -> list[StreamEvent]:
        match text(member(item, "type")):
            case "function_call":
                return self._function(item, slot, done=done)
            case "message" if done:
                return self._message(item, slot)
            case "reasoning" if done:
                return self._reasoning(item, slot)
            case _:
                return []

    def _function(self, item: dict[str, Any], slot: int | None, *, done: bool) -> list[StreamEvent]:
        call = self._call(text(item.get("id")), slot, text(item.get("call_id")))
        call.id = call.id or text(item.get("call_id"))
        written, name = text(item.get("arguments")), text(item.get("name"))
        name = self._names.get(name, name)
        if done and written.strip():
            call.whole = written
        if call.name or not name:
            return []
        call.name = name
        return [ToolStarted(index=self._calls.index(call), name=name)]

    def _piece(self, chunk: dict[str, Any]) -> list[StreamEvent]:
        call = self._call(text(chunk.get("item_id")), _slot(chunk))
        call.pieces.append(text(chunk.get("delta")))
        return []

    def _call(self, item: str, slot: int | None, call_id: str = "") -> _Call:
        """Return the call that is meant: by its item, its call id or its place; else a new one."""
        for call in self._calls:
            if (item and call.item == item) or (call_id and call.id == call_id):
                return call
            if slot is not None and call.slot == slot and not (item and call.item):
                return call
        if self._calls and not item and not call_id and slot is None:
            return self._calls[-1]
        if len(self._calls) >= self._limit:
            what = f"the answer holds more than {self._limit} tool calls"
            raise bad_stream(self._provider, "too_many_calls", what)
        self._calls.append(_Call(item=item, slot=slot))
        return self._calls[-1]

    def _message(self, item: dict[str, Any], slot: int | None) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for at, part in enumerate(items(item.get("content"))):
            name = text(member(part, "type"))
            if name in _TEXTS:
                said = text(member(part, "refusal" if name == "refusal" else "text"))
                events += self._words(name, _place(slot, item.get("id"), at), said, whole=True)
        return events

    def _reasoning(self, item: dict[str, Any], slot: int | None) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for name, parts in zip(_THOUGHTS, ("summary", "content"), strict=True):
            for at, part in enumerate(items(item.get(parts))):
                place, said = _place(slot, item.get("id"), at), text(member(part, "text"))
                events += self._words(name, place, said, whole=True)
        return events

    def _finish(self) -> Finish:
        if self._reason in _FINISHES:
            return _FINISHES[self._reason]
        if self._refused:
            return Finish.REFUSAL
        if self._calls:
            return Finish.TOOL_CALLS
        return Finish.STOP if self._status else Finish.INFERRED


def _slot(chunk: dict[str, Any]) -> int | None:
    return count(chunk.get("output_index"))


def _place(slot: int | None, item: Any, part: Any) -> str:
    """Return the name of a part: its item's place, or id if it has none, and its own place."""
    return f"{text(item) if slot is None else slot} {count(part) or 0}"


def _usage(value: Any) -> Usage | None:
    """Return the figures as they are billed: what was cached is part of the input."""
    if not is_object(value):
        return None
    asked, said = value.get("input_tokens_details"), value.get("output_tokens_details")
    cached = count(member(asked, "cached_tokens"))
    written = count(member(asked, "cache_write_tokens"))
    whole = count(value.get("input_tokens"))
    if whole is not None:
        whole = max(whole, (cached or 0) + (written or 0))
    return Usage(
        input_tokens=whole,
        output_tokens=count(value.get("output_tokens")),
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=count(member(said, "reasoning_tokens")),
    )
