"""The canonical history → messages of the Messages API, which take turns and are never empty."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from smista.core.history import Call, Message, Role
from smista.core.prompt import Image, Prompt
from smista.providers.chat_messages import wire_ids
from smista.providers.exchange import arguments_object, newest_user, results_by_call

TOOL_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
TOOL_NAME_LENGTH: Final = 64
_CALL_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INTERRUPTED: Final = "[interrupted: this call has no result]"
_NOTHING: Final = "[nothing]"
_BEGIN: Final = "[earlier messages are left out]"
_GO_ON: Final = "[go on]"

_Turn = tuple[str, list[dict[str, Any]]]


def anthropic_messages(
    prompt: Prompt, *, provider: str, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the messages of *prompt*; *names* maps our tool names to those on the wire.

    Each call is followed by its result, an unanswered one by a note. Neighbours of one role
    are one message; the first and the last one are the user's.
    """
    ids = wire_ids(prompt.messages, provider=provider, safe=_CALL_ID)
    results, newest = results_by_call(prompt.messages), newest_user(prompt.messages)
    turns: list[_Turn] = []
    for at, message in enumerate(prompt.messages):
        match message.role:
            case Role.USER | Role.SYSTEM:
                turns.append(("user", _user(message.text, prompt.images if at == newest else ())))
            case Role.ASSISTANT:
                turns.append(("assistant", _assistant(message, ids, names)))
                turns.append(("user", [_result(c, ids, results) for c in message.calls]))
            case Role.TOOL:
                continue
    return [{"role": role, "content": blocks} for role, blocks in _alternating(turns)]


def _alternating(turns: Iterable[_Turn]) -> list[_Turn]:
    merged: list[_Turn] = []
    for role, blocks in turns:
        if not blocks:
            continue
        if not merged and role == "assistant":
            merged.append(("user", [_text(_BEGIN)]))
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(blocks)
        else:
            merged.append((role, list(blocks)))
    if not merged or merged[-1][0] == "assistant":
        # The newer models refuse to continue a message of their own.
        merged.append(("user", [_text(_GO_ON if merged else _NOTHING)]))
    return merged


def _user(text: str, images: tuple[Image, ...]) -> list[dict[str, Any]]:
    said = [_text(text)] if text.strip() else []
    return [*(_image(image) for image in images), *said]


def _assistant(
    message: Message, ids: Mapping[str, str], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    said = [_text(message.text)] if message.text.strip() else []
    return [*said, *(_call(call, ids, names) for call in message.calls)]


def _call(call: Call, ids: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": ids[call.call_id],
        "name": names[call.name],
        "input": arguments_object(call.arguments),
    }


def _result(call: Call, ids: Mapping[str, str], results: Mapping[str, Message]) -> dict[str, Any]:
    result = results.get(call.call_id)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": ids[call.call_id]}
    text = _INTERRUPTED if result is None else result.text
    if text.strip():
        block["content"] = text
    if result is None or result.is_error:
        block["is_error"] = True
    return block


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(image: Image) -> dict[str, Any]:
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}
