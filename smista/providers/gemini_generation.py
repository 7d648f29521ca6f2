"""What the generations of Gemini models differ in; an unknown name counts as the newest.

Gemini 3 and newer take a level of thinking and want calls signed; 2.5 takes a budget in tokens;
older ones, and Gemma up to 3, know neither.
"""

import re
from typing import Any, Final

from smista.core.intents import Effort

_NAME: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?(?!\d)")
_PLAIN: Final = re.compile(r"gemma-[123](?!\d)")
_TWO_LEVELS: Final = re.compile(r"gemini-3-pro")
_XHIGH: Final = re.compile(r"gemini-4-hydrogen")
_NEWEST: Final = (99, 0)
_LEVELS: Final = (3, 0)
_BUDGETS: Final = (2, 5)
_LEVEL: Final = {
    Effort.LOW: "LOW",
    Effort.MEDIUM: "MEDIUM",
    Effort.HIGH: "HIGH",
    Effort.XHIGH: "HIGH",
}
# Each lies within what every 2.5 model takes.
_BUDGET: Final = {
    Effort.LOW: 1024,
    Effort.MEDIUM: 4096,
    Effort.HIGH: 12_288,
    Effort.XHIGH: 24_576,
}
_LEAST: Final = 512


def thinking_config(model: str, effort: Effort, *, limit: int | None) -> dict[str, Any]:
    """Return the `thinkingConfig` for *effort*, empty if *model* has none.

    *limit* is the bound of the answer, of which thinking is a part.
    """
    version = _version(model)
    if version >= _LEVELS:
        return {"includeThoughts": True, "thinkingLevel": _level(model, effort)}
    if version < _BUDGETS:
        return {}
    budget = _BUDGET[effort] if limit is None else min(_BUDGET[effort], limit // 2)
    return {"includeThoughts": True, "thinkingBudget": max(budget, _LEAST)}


def _level(model: str, effort: Effort) -> str:
    """Return the nearest level that *model* takes; most take three."""
    if effort is Effort.MEDIUM and _TWO_LEVELS.match(model):
        return "HIGH"
    if effort is Effort.XHIGH and _XHIGH.match(model):
        return "XHIGH"
    return _LEVEL[effort]


def wants_signatures(model: str) -> bool:
    return _version(model) >= _LEVELS


def is_plain(model: str) -> bool:
    """Tell if *model* knows neither a system instruction nor tools."""
    return _PLAIN.match(model) is not None


def _version(model: str) -> tuple[int, int]:
    if is_plain(model):
        return (0, 0)
    found = _NAME.match(model)
    return _NEWEST if found is None else (int(found[1]), int(found[2] or 0))
