"""What dialects read from the canonical history in the same way, whatever they make of it."""

from collections.abc import Sequence
from typing import Any, Final

from smista.core.history import Message, Role
from smista.providers.json_values import BadJson, is_object, parse_json

_DEPTH: Final = 64


def results_by_call(messages: Sequence[Message]) -> dict[str, Message]:
    """Return call id → the message that answers it."""
    return {m.call_id: m for m in messages if m.role is Role.TOOL and m.call_id}


def newest_user(messages: Sequence[Message]) -> int:
    """Return the position of the newest user message, -1 if there is none."""
    return max((at for at, m in enumerate(messages) if m.role is Role.USER), default=-1)


def arguments_object(written: str) -> dict[str, Any]:
    """Return arguments as the object they are; what is none is shown to the model as it was."""
    try:
        value = parse_json(written or "{}", depth=_DEPTH)
    except BadJson:
        value = None
    return value if is_object(value) else {"malformed": written}
