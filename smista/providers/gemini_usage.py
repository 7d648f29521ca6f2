"""Gemini's usage figures: each report is the whole count so far."""

from typing import Any, Final

from smista.core.stream import Usage
from smista.providers.json_values import count, member

_FIELDS: Final = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
)


class GeminiUsage:
    """The newest figure of each kind; a figure that is absent keeps its value."""

    def __init__(self) -> None:
        self._said: dict[str, int] = {}

    def read(self, usage: Any) -> bool:
        """Take one report; tell if it held a figure."""
        found = {name: count(member(usage, name)) for name in _FIELDS}
        news = {name: value for name, value in found.items() if value is not None}
        self._said |= news
        return bool(news)

    def total(self) -> Usage | None:
        """Return the figures, None if there were none. Zeros are not sent, so none is a zero.

        What was cached is part of the prompt; what was thought is not part of the candidates.
        """
        if not self._said:
            return None
        prompt, tools, cached, answer, thoughts = (self._said.get(name) for name in _FIELDS)
        return Usage(
            input_tokens=None if prompt is None else prompt + (tools or 0),
            output_tokens=(answer or 0) + (thoughts or 0),
            cached_tokens=cached,
            reasoning_tokens=thoughts,
        )
