"""The canonical history → input items of the Responses API. Pure.

Reasoning items are not replayed: nothing is stored at the provider, and the canonical history
has no place for what only one provider can read.
"""

from collections.abc import Mapping
from typing import Any

from smista.core.history import Message, Role
from smista.core.prompt import Image, Prompt
from smista.providers.chat_messages import (
    arguments_text,
    data_url,
    result_text,
    wire_ids,
)
from smista.providers.exchange import newest_user, results_by_call


def input_items(prompt: Prompt, names: Mapping[str, str], *, provider: str) -> list[dict[str, Any]]:
    """Return *prompt* as input items: each call is followed by its output, blanks are left out.

    *names*: tool name → name on the wire.
    """
    ids = wire_ids(prompt.messages, provider=provider)
    results, newest = results_by_call(prompt.messages), newest_user(prompt.messages)
    said: list[dict[str, Any]] = []
    for at, message in enumerate(prompt.messages):
        match message.role:
            case Role.USER:
                said.append(_user(message.text, prompt.images if at == newest else ()))
            case Role.SYSTEM:
                said.append(_message("developer", message.text))
            case Role.ASSISTANT:
                said += _assistant(message, ids, names, results)
            case Role.TOOL:
                continue
    return said


def _message(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def _user(text: str, images: tuple[Image, ...]) -> dict[str, Any]:
    if not images:
        return _message("user", text)
    parts = [
        {"type": "input_image", "image_url": data_url(image), "detail": "auto"} for image in images
    ]
    return _message("user", [{"type": "input_text", "text": text}, *parts])


def _assistant(
    message: Message,
    ids: Mapping[str, str],
    names: Mapping[str, str],
    results: Mapping[str, Message],
) -> list[dict[str, Any]]:
    said = [_message("assistant", message.text)] if message.text.strip() else []
    calls = [
        {
            "type": "function_call",
            "call_id": ids[call.call_id],
            "name": names[call.name],
            "arguments": arguments_text(call.arguments),
        }
        for call in message.calls
    ]
    outputs = [
        {
            "type": "function_call_output",
            "call_id": ids[call.call_id],
            "output": result_text(results.get(call.call_id)),
        }
        for call in message.calls
    ]
    return [*said, *calls, *outputs]
