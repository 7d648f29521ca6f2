"""Restricted bodies live only as long as their run: what stands in their place afterwards. Pure."""

from dataclasses import replace
from typing import NamedTuple

from actors.reading import restricted_results
from smista.core.history import Message
from smista.core.privacy import guard
from smista.core.records import DiffRecord, SessionState, ToolCallRecord
from smista.core.secret import Plain


class Forgotten(NamedTuple):
    """The calls and diffs without their bodies, and the history without what they said."""

    calls: dict[str, ToolCallRecord]
    diffs: tuple[DiffRecord, ...]
    messages: tuple[Message, ...]


def forgotten(state: SessionState) -> Forgotten:
    """Return what has to replace the restricted items of the present run."""
    if state.input is None:
        return Forgotten({}, (), state.messages)
    request = state.input.request
    lists = guard(request.policy, request.workspace.root)
    texts: dict[str, str] = {}
    calls: dict[str, ToolCallRecord] = {}
    for call, path in restricted_results(state, lists):
        text, body = f"[restricted: {path}]", call.error or call.result
        if not isinstance(body, Plain) or body.text != text:
            texts[call.id], calls[call.id] = text, _without_body(call, Plain(text))
    diffs = (state.diffs[call_id] for call_id in texts if call_id in state.diffs)
    return Forgotten(
        calls,
        tuple(replace(diff, body=Plain(texts[diff.id])) for diff in diffs),
        tuple(_without_text(message, texts) for message in state.messages),
    )


def _without_body(call: ToolCallRecord, body: Plain) -> ToolCallRecord:
    return replace(call, result=call.result and body, error=call.error and body)


def _without_text(message: Message, texts: dict[str, str]) -> Message:
    text = texts.get(message.call_id or "")
    return message if text is None else replace(message, text=text, sealed=None, opened=True)
