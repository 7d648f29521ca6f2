"""What storage is to hold of a turn: keys in tool calls, their results and diffs masked.

The live run goes on with the clear text; only the record that becomes durable is changed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from smista.core.key_shapes import mask_keys
from smista.core.records import (
    DiffRecord,
    EventType,
    StoredMessage,
    ToolCallRecord,
    TraceEvent,
    TurnRecord,
)
from smista.core.secret import Envelope, Plain, SecretContent

_QUOTED: Final = ("arguments", "result", "error")
Masked = tuple[str, tuple[str, ...]]


def masked_record(record: TurnRecord) -> TurnRecord:
    """Return *record* with every key in its calls masked, and the kinds of keys noted."""
    mask = _Mask()
    return replace(
        record,
        messages=tuple(map(mask.message, record.messages)),
        tool_calls=tuple(map(mask.call, record.tool_calls)),
        diffs=tuple(map(mask.diff, record.diffs)),
        events=tuple(map(mask.event, record.events)),
        batches=tuple(
            replace(batch, events=tuple(map(mask.event, batch.events))) for batch in record.batches
        ),
    )


class _Mask:
    """Masks the texts of one record; the trace repeats them, so each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, Masked] = {}

    def message(self, message: StoredMessage) -> StoredMessage:
        if message.format != "calls" or not isinstance(message.content, Plain):
            return message
        said: dict[str, Any] = json.loads(message.content.text)
        calls: list[dict[str, Any]] = said["tool_calls"]
        masked = [{**call, "arguments": self._text(call["arguments"])[0]} for call in calls]
        if masked == calls:
            return message
        text = json.dumps({**said, "tool_calls": masked}, ensure_ascii=False)
        return replace(message, content=Plain(text))

    def call(self, call: ToolCallRecord) -> ToolCallRecord:
        arguments, kinds = self._content(call.arguments)
        result, _ = self._content(call.result)
        error, _ = self._content(call.error)
        return replace(
            call,
            arguments=arguments or call.arguments,
            result=result,
            error=error,
            masked=tuple(sorted({*call.masked, *kinds})),
        )

    def diff(self, diff: DiffRecord) -> DiffRecord:
        body, kinds = self._content(diff.body)
        return replace(diff, body=body or diff.body) if kinds else diff

    def event(self, event: TraceEvent) -> TraceEvent:
        payload = event.payload
        if event.event_type is not EventType.TOOL_CALL or isinstance(payload, Envelope):
            return event
        masked = {name: self._quoted(payload[name]) for name in _QUOTED if name in payload}
        kinds = sorted({kind for _, found in masked.values() for kind in found})
        if not kinds:
            return event
        texts = {name: text for name, (text, _) in masked.items()}
        return replace(event, payload={**payload, **texts, "masked": kinds})

    def _quoted(self, value: Any) -> tuple[Any, tuple[str, ...]]:
        """Mask what an event quotes: a text, as turns write it, or whatever was imported."""
        if isinstance(value, str):
            return self._text(value)
        kinds: set[str] = set()
        return _masked_value(value, "", kinds), tuple(kinds)

    def _content(self, content: SecretContent | None) -> tuple[SecretContent | None, list[str]]:
        if not isinstance(content, Plain):
            return content, []
        text, kinds = self._text(content.text)
        return (Plain(text), list(kinds)) if kinds else (content, [])

    def _text(self, text: str) -> Masked:
        if text not in self._known:
            self._known[text] = _masked_text(text)
        return self._known[text]


def _masked_text(text: str) -> Masked:
    """Mask *text*; the strings of a JSON object are looked at without their escapes."""
    if not text.startswith("{"):
        return mask_keys(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return mask_keys(text)
    kinds: set[str] = set()
    masked = _masked_value(value, "", kinds)
    if not kinds:
        return text, ()
    return json.dumps(masked, ensure_ascii=False), tuple(sorted(kinds))


def _masked_value(value: Any, name: str, kinds: set[str]) -> Any:
    match value:
        case str():
            return _masked_string(value, name, kinds)
        case dict():
            members = cast("Mapping[str, Any]", value)
            return {key: _masked_value(item, key, kinds) for key, item in members.items()}
        case list():
            return [_masked_value(item, name, kinds) for item in cast("Sequence[Any]", value)]
        case _:
            return value


def _masked_string(text: str, name: str, kinds: set[str]) -> str:
    masked, found = mask_keys(text)
    if not found:
        # The name of a member tells what its whole value is: {"password": "…"}.
        whole, found = mask_keys(f"{name}={text}") if name else (text, ())
        masked = whole.removeprefix(f"{name}=") if found else text
    kinds.update(found)
    return masked
