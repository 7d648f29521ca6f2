"""The usage figures of the Messages API: told in parts, and disjoint where ours include."""

from typing import Any, Final

from smista.core.stream import Usage
from smista.providers.json_values import count, member

_FIELDS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class AnthropicUsage:
    """The newest figure of each kind; a figure that is absent or null keeps its value."""

    def __init__(self) -> None:
        self._said: dict[str, int] = {}

    def read(self, usage: Any) -> bool:
        """Take one report; tell if it held a figure."""
        found = {name: count(member(usage, name)) for name in _FIELDS}
        found["thinking"] = count(member(member(usage, "output_tokens_details"), "thinking_tokens"))
        news = {name: value for name, value in found.items() if value is not None}
        self._said |= news
        return bool(news)

    def total(self) -> Usage | None:
        """Return the figures, None if there were none."""
        if not self._said:
            return None
        said = self._said
        read, written = (said.get(name) for name in _FIELDS[2:])
        fresh = said.get("input_tokens")
        known = [figure for figure in (fresh, read, written) if figure is not None]
        return Usage(
            input_tokens=sum(known) if known else None,
            output_tokens=said.get("output_tokens"),
            cached_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=said.get("thinking"),
        )
