"""What a draft's rows and events say, as the JSON they are stored in. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from smista.core.history import Call, Role
from smista.core.records import ToolCallRecord
from smista.core.secret import Plain


def with_calls(text: str, calls: tuple[Call, ...]) -> str:
    entries = [
        {
            "call_id": call.call_id,
            "provider_call_id": call.provider_call_id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for call in calls
    ]
    return json.dumps({"text": text, "tool_calls": entries}, ensure_ascii=False)


def message_payload(role: Role, about: Mapping[str, Any]) -> dict[str, Any]:
    payload = {
        "role": role.value,
        "provider": about.get("provider") or "",
        "model": about.get("model") or "",
    }
    return {**payload, "interrupted": True} if about.get("interrupted") else payload


def call_payload(call: ToolCallRecord) -> dict[str, Any]:
    payload: dict[str, Any] = {"tool_name": call.tool_name, "status": call.status.value}
    for name, content in (
        ("arguments", call.arguments),
        ("result", call.result),
        ("error", call.error),
    ):
        if isinstance(content, Plain):
            payload[name] = content.text
    return payload
