"""The canonical history → messages of Ollama's own chat API. Pure."""

from collections.abc import Mapping
from typing import Any

from smista.core.history import Call, Message, Role
from smista.core.prompt import Image, Prompt
from smista.providers.chat_messages import result_text
from smista.providers.exchange import arguments_object, newest_user, results_by_call


def ollama_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """Return *prompt* as messages: each call is followed by its result, blanks are left out.

    Calls have no ids on this wire: results follow in the order of the calls, with their names.
    """
    results, newest = results_by_call(prompt.messages), newest_user(prompt.messages)
    said = [{"role": "system", "content": prompt.system}] if prompt.system else []
    for at, message in enumerate(prompt.messages):
        match message.role:
            case Role.USER:
                said.append(_user(message.text, prompt.images if at == newest else ()))
            case Role.SYSTEM:
                said.append({"role": "system", "content": message.text})
            case Role.ASSISTANT:
                said += _assistant(message, results)
            case Role.TOOL:
                continue
    return said


def _user(text: str, images: tuple[Image, ...]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "user", "content": text}
    return {**message, "images": [image.data for image in images]} if images else message


def _assistant(message: Message, results: Mapping[str, Message]) -> list[dict[str, Any]]:
    said: dict[str, Any] = {"role": "assistant", "content": message.text}
    if not message.calls:
        return [said] if message.text.strip() else []
    said["tool_calls"] = [_call(call) for call in message.calls]
    return [said, *(_result(call, results) for call in message.calls)]


def _call(call: Call) -> dict[str, Any]:
    arguments = arguments_object(call.arguments)
    return {"function": {"name": call.name or "unnamed", "arguments": arguments}}


def _result(call: Call, results: Mapping[str, Message]) -> dict[str, Any]:
    content = result_text(results.get(call.call_id))
    return {"role": "tool", "tool_name": call.name or "unnamed", "content": content}
