"""The canonical history → Chat Completions messages that strict servers accept too."""

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from smista.core.history import Call, Message, Role
from smista.core.prompt import Image, Prompt
from smista.providers.exchange import newest_user, results_by_call
from smista.providers.json_values import BadJson, is_object, parse_json

_INTERRUPTED: Final = "[interrupted: this call has no result]"
_ERROR: Final = "Error: "
_SAFE_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_UNSAFE_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ID_LENGTH: Final = 9  # the strictest known server wants exactly nine letters and digits
_DEPTH: Final = 64


def chat_messages(prompt: Prompt, *, provider: str, system_role: bool) -> list[dict[str, Any]]:
    """Return *prompt* as messages for *provider*.

    Each call is followed by its result, an unanswered one by a note; results without a call and
    blank answers are left out. *system_role* False: the preamble opens the first user message.
    """
    ids = wire_ids(prompt.messages, provider=provider)
    results, newest = results_by_call(prompt.messages), newest_user(prompt.messages)
    said: list[dict[str, Any]] = []
    for at, message in enumerate(prompt.messages):
        match message.role:
            case Role.USER:
                said.append(_user(message.text, prompt.images if at == newest else ()))
            case Role.SYSTEM:
                said.append({"role": "system", "content": message.text})
            case Role.ASSISTANT:
                said += _assistant(message, ids, results)
            case Role.TOOL:
                continue
    return _with_preamble(prompt.system, said, system_role=system_role)


def wire_ids(
    messages: Iterable[Message], *, provider: str, safe: re.Pattern[str] = _SAFE_ID
) -> dict[str, str]:
    """Return call id → id on the wire; equal histories give equal ids.

    A provider sees its own ids again, if they are *safe* and unique; the calls of others get an
    id that every server accepts.
    """
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for message in messages:
        for call in message.calls:
            own = message.provider == provider and call.provider_call_id not in taken
            kept = own and safe.fullmatch(call.provider_call_id) is not None
            ids[call.call_id] = call.provider_call_id if kept else _made_id(call.call_id, taken)
            taken.add(ids[call.call_id])
    return ids


def _made_id(call_id: str, taken: set[str]) -> str:
    attempt = 0
    while (made := _digest(f"{call_id}/{attempt}")) in taken:
        attempt += 1
    return made


def _digest(text: str) -> str:
    number = int.from_bytes(sha256(text.encode("utf-8", "replace")).digest(), "big")
    letters: list[str] = []
    for _ in range(_ID_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(letters)


def _with_preamble(
    system: str, said: list[dict[str, Any]], *, system_role: bool
) -> list[dict[str, Any]]:
    if not system:
        return said
    if system_role:
        return [{"role": "system", "content": system}, *said]
    # Templates without a system role often want user and assistant to take turns.
    match said:
        case [{"role": "user", "content": str(text)}, *rest]:
            return [{"role": "user", "content": f"{system}\n\n{text}"}, *rest]
        case _:
            return [{"role": "user", "content": system}, *said]


def _user(text: str, images: tuple[Image, ...]) -> dict[str, Any]:
    if not images:
        return {"role": "user", "content": text}
    parts = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in images]
    return {"role": "user", "content": [{"type": "text", "text": text}, *parts]}


def data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{image.data}"


def _assistant(
    message: Message, ids: Mapping[str, str], results: Mapping[str, Message]
) -> list[dict[str, Any]]:
    if not message.calls:
        blank = not message.text.strip()
        return [] if blank else [{"role": "assistant", "content": message.text}]
    calls = [_call(call, ids[call.call_id]) for call in message.calls]
    said = {"role": "assistant", "content": message.text or None, "tool_calls": calls}
    return [said, *(_result(call, ids, results) for call in message.calls)]


def _call(call: Call, wire_id: str) -> dict[str, Any]:
    function = {"name": tool_name(call.name), "arguments": arguments_text(call.arguments)}
    return {"id": wire_id, "type": "function", "function": function}


def _result(call: Call, ids: Mapping[str, str], results: Mapping[str, Message]) -> dict[str, Any]:
    content = result_text(results.get(call.call_id))
    return {"role": "tool", "tool_call_id": ids[call.call_id], "content": content}


def result_text(result: Message | None) -> str:
    """Return what a model reads of *result*; None: the call was never answered."""
    if result is None:
        return _INTERRUPTED
    # The format has no mark for a failed call, so the text has to say it.
    marked = not result.is_error or result.text.lower().startswith(_ERROR.strip(": ").lower())
    return result.text if marked else _ERROR + result.text


def tool_name(name: str) -> str:
    """Return *name* with only what servers accept; a model may have called an impossible name."""
    return _UNSAFE_NAME.sub("_", name)[:64] or "unnamed"


def arguments_text(written: str) -> str:
    """Return arguments as a JSON object: servers parse them, and some fail at anything else."""
    try:
        value = parse_json(written or "{}", depth=_DEPTH)
    except BadJson:
        value = None
    if is_object(value):
        return written or "{}"
    return json.dumps({"malformed": written}, ensure_ascii=False)
