"""Gemini's list of models → descriptors of those one can chat with."""

import re
from typing import Any, Final

from smista.core.model_ref import Capabilities, ModelDescriptor
from smista.providers.gemini_generation import is_plain
from smista.providers.json_values import count, is_object, items, member, text

_PROVIDER: Final = "gemini"
_PREFIX: Final = "models/"
_METHOD: Final = "generateContent"
# They generate content too, but no chat: speech, pictures, films, music, robots, vectors.
_OTHER: Final = re.compile(
    r"embed|imag|tts|audio|live|veo|lyria|aqa|robotics|computer-use|banana|translate"
    r"|deep-research|native"
)
_WINDOW: Final = 32_768
# What one answer may hold, whatever more a model can say in jobs of its own.
_ANSWER: Final = 65_536


def parse_models(value: Any) -> tuple[ModelDescriptor, ...]:
    """Return the chat models that *value*, the body of the list, offers; it holds no prices."""
    return tuple(_descriptor(e) for e in items(member(value, "models")) if _is_chat(e))


def _is_chat(entry: Any) -> bool:
    if not is_object(entry) or not text(entry.get("name")).removeprefix(_PREFIX):
        return False
    if _METHOD not in items(entry.get("supportedGenerationMethods")):
        return False
    return _OTHER.search(entry["name"]) is None


def _descriptor(entry: dict[str, Any]) -> ModelDescriptor:
    name = text(entry["name"]).removeprefix(_PREFIX)
    plain = is_plain(name)
    return ModelDescriptor(
        provider=_PROVIDER,
        model=name,
        display_name=text(entry.get("displayName")) or None,
        capabilities=Capabilities(
            streaming=True,
            tools=not plain,
            system_prompt=True,
            memory=not plain,
            json_output=not plain,
            images=not name.startswith("gemma"),
            reasoning=entry.get("thinking") is True,
        ),
        max_context_tokens=count(entry.get("inputTokenLimit")) or _WINDOW,
        max_output_tokens=min(count(entry.get("outputTokenLimit")) or 0, _ANSWER) or None,
    )
