"""Histories of any shape: roles in any order, calls answered, unanswered, of any provider."""

from typing import Any

from hypothesis import strategies as st

from smista.core.history import Call, Message, Role

_TEXTS = st.sampled_from(["", " ", "hello", "è 🦊", "\ud83e", "Error: no"])
_ARGUMENTS = st.sampled_from(["", "{}", '{"path":"a"}', "[1]", '{"cut', "null"])
_IDS = st.sampled_from(["", "toolu_1", "call_1", "a|b", "functions.write:0", "x" * 70])
_NAMES = st.sampled_from(["read", "notes.list", "notes_list", "", "9lives", "w" * 80])
_PROVIDERS = st.sampled_from([None, "anthropic", "gemini", "openai", "openai-compat:x"])


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Draw a history; a result may be missing, and a call may have any id and arguments."""
    said: list[Message] = []
    for at in range(draw(st.integers(0, 6))):
        role = draw(st.sampled_from([Role.USER, Role.ASSISTANT, Role.SYSTEM]))
        calls = _calls(draw, at) if role is Role.ASSISTANT else ()
        said.append(_message(role, draw(_TEXTS), calls=calls, provider=draw(_PROVIDERS)))
        for call in calls:
            if draw(st.booleans()):
                failed = draw(st.booleans())
                result = {"call_id": call.call_id, "is_error": failed}
                said.append(_message(Role.TOOL, draw(_TEXTS), **result))
    return tuple(said)


def _calls(draw: st.DrawFn, at: int) -> tuple[Call, ...]:
    return tuple(
        Call(
            call_id=f"c{at}-{number}",
            provider_call_id=draw(_IDS),
            name=draw(_NAMES),
            arguments=draw(_ARGUMENTS),
        )
        for number in range(draw(st.integers(0, 3)))
    )


def _message(role: Role, text: str, **more: Any) -> Message:
    return Message(uuid="u", role=role, text=text, run_id="r", **more)
