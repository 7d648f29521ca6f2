"""OpenAI's list of models: names only, most of them for other things than talking. Pure."""

import re
from typing import Any, Final

from smista.providers.json_values import items, member, text

_FAMILIES: Final = re.compile(r"(?:gpt-\d|chatgpt-\d|o\d)", re.IGNORECASE)
_OTHER: Final = re.compile(
    r"audio|realtime|image|transcribe|tts|search|embedding|moderation|instruct|whisper|live"
    r"|translate|deep-research|codex-mini",
    re.IGNORECASE,
)


def parse_names(value: Any) -> tuple[str, ...]:
    """Return the models of *value* that text can be asked of, in alphabetical order."""
    names = {text(member(entry, "id")) for entry in items(member(value, "data"))}
    return tuple(sorted(filter(_talks, names)))


def _talks(name: str) -> bool:
    return _FAMILIES.match(name) is not None and _OTHER.search(name) is None
