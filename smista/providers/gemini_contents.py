"""The canonical history → Gemini's contents."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from smista.core.history import Call, Message, Role
from smista.core.prompt import Image, Prompt
from smista.providers.chat_messages import wire_ids
from smista.providers.exchange import arguments_object, newest_user, results_by_call

TOOL_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
TOOL_NAME_LENGTH: Final = 64
# Newer models refuse calls without the signature they were made with. For calls that another
# model made, or that were kept without one, the API documents this word instead.
_UNSIGNED: Final = "skip_thought_signature_validator"
_INTERRUPTED: Final = "interrupted: this call has no result"
_NOTHING: Final = "[nothing]"
_BEGIN: Final = "[earlier messages are left out]"
_GO_ON: Final = "[go on]"

_Parts = list[dict[str, Any]]


def gemini_contents(
    prompt: Prompt, *, provider: str, names: Mapping[str, str], signed: bool
) -> list[dict[str, Any]]:
    """Return the contents of *prompt*; *names* maps our tool names to those on the wire.

    Each call is followed by its result, an unanswered one by a note. The first and the last
    contents are the user's. *signed*: the model wants its calls signed.
    """
    ids = wire_ids(prompt.messages, provider=provider)
    results, newest = results_by_call(prompt.messages), newest_user(prompt.messages)
    said: list[tuple[str, _Parts]] = []
    for at, message in enumerate(prompt.messages):
        match message.role:
            case Role.USER | Role.SYSTEM:
                said.append(("user", _user(message.text, prompt.images if at == newest else ())))
            case Role.ASSISTANT:
                said.append(("model", _model(message, ids, names, signed=signed)))
                answers = [_result(call, ids, results, names) for call in message.calls]
                said.append(("function", answers))
            case Role.TOOL:
                continue
    return [_content(role, parts) for role, parts in _in_turn(said)]


def _content(role: str, parts: _Parts) -> dict[str, Any]:
    return {"role": "user" if role == "function" else role, "parts": parts}


def _in_turn(said: Iterable[tuple[str, _Parts]]) -> list[tuple[str, _Parts]]:
    """Merge neighbours of one role; results stay apart from the user's words."""
    merged: list[tuple[str, _Parts]] = []
    for role, parts in said:
        if not parts:
            continue
        if not merged and role == "model":
            merged.append(("user", [{"text": _BEGIN}]))
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(parts)
        else:
            merged.append((role, list(parts)))
    if not merged or merged[-1][0] == "model":
        merged.append(("user", [{"text": _GO_ON if merged else _NOTHING}]))
    return merged


def _user(text: str, images: tuple[Image, ...]) -> _Parts:
    said = [{"text": text}] if text.strip() else []
    return [*(_image(image) for image in images), *said]


def _image(image: Image) -> dict[str, Any]:
    return {"inlineData": {"mimeType": image.media_type, "data": image.data}}


def _model(
    message: Message, ids: Mapping[str, str], names: Mapping[str, str], *, signed: bool
) -> _Parts:
    said: _Parts = [{"text": message.text}] if message.text.strip() else []
    calls = [_call(call, ids, names) for call in message.calls]
    if calls and signed:
        # Of calls made together only the first one bears a signature.
        calls[0]["thoughtSignature"] = _UNSIGNED
    return [*said, *calls]


def _call(call: Call, ids: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "functionCall": {
            "id": ids[call.call_id],
            "name": names[call.name],
            "args": arguments_object(call.arguments),
        }
    }


def _result(
    call: Call, ids: Mapping[str, str], results: Mapping[str, Message], names: Mapping[str, str]
) -> dict[str, Any]:
    result = results.get(call.call_id)
    text = _INTERRUPTED if result is None else result.text
    key = "error" if result is None or result.is_error else "output"
    return {
        "functionResponse": {
            "id": ids[call.call_id],
            "name": names[call.name],
            "response": {key: text},
        }
    }
