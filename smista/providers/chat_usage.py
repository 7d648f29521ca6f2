"""The usage figures of Chat Completions and its relatives, brought into one form.

`prompt_tokens` includes what was cached, read or written: so it is with the original, with
DeepSeek (hit + miss) and with gateways that fold another provider's figures into it.
"""

from typing import Any

from smista.core.stream import Usage
from smista.providers.json_values import count, member


class ChatUsage:
    """The newest figures of an answer; servers may report them once or with every chunk."""

    def __init__(self) -> None:
        self._said: dict[str, int] = {}

    def read(self, usage: Any, *, final: bool) -> None:
        """Take one report. Absent figures keep their value; only a *final* one may shrink."""
        for name, value in _figures(usage).items():
            if value is not None and (final or value >= self._said.get(name, 0)):
                self._said[name] = value

    def total(self) -> Usage | None:
        """Return the figures, None if there were none."""
        if not self._said:
            return None
        said = self._said
        cached, written = said.get("cached"), said.get("written")
        prompt = said.get("prompt")
        if prompt is not None or cached is not None or written is not None:
            # Where the parts exceed the whole the rest counts as zero, not as negative.
            prompt = max(prompt or 0, (cached or 0) + (written or 0))
        return Usage(
            input_tokens=prompt,
            output_tokens=said.get("completion"),
            cached_tokens=cached,
            cache_write_tokens=written,
            reasoning_tokens=said.get("reasoning"),
        )


def _figures(usage: Any) -> dict[str, int | None]:
    asked, said = member(usage, "prompt_tokens_details"), member(usage, "completion_tokens_details")
    hit, miss = (count(member(usage, f"prompt_cache_{kind}_tokens")) for kind in ("hit", "miss"))
    split = None if hit is None or miss is None else hit + miss
    return {
        "prompt": _either(count(member(usage, "prompt_tokens")), split),
        "completion": count(member(usage, "completion_tokens")),
        "cached": _either(
            count(member(asked, "cached_tokens")),
            hit,
            count(member(usage, "cached_tokens")),
            count(member(usage, "cache_read_input_tokens")),
        ),
        "written": _either(
            count(member(asked, "cache_write_tokens")),
            count(member(asked, "cache_creation_tokens")),
            count(member(usage, "cache_creation_input_tokens")),
        ),
        "reasoning": count(member(said, "reasoning_tokens")),
    }


def _either(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
