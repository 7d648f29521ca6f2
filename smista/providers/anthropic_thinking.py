"""How each generation of Claude is told how much to think.

Claude 4.6 and newer think adaptively and take an effort; older ones take a budget in tokens.
"""

import re
from typing import Any, Final

from smista.core.history import Role
from smista.core.intents import Effort
from smista.core.prompt import Prompt

_NAME: Final = re.compile(r"claude-(?:([a-z]+)-)?(\d+)(?:-(\d{1,2}))?(?!\d)")
_NEWEST: Final = (99, 0)
_ADAPTIVE: Final = (4, 6)
_XHIGH: Final = (4, 7)
_FIRST: Final = (3, 7)
_FIRST_EFFORT: Final = ("opus", (4, 5))
_LEAST: Final = 1024
_BUDGETS: Final = {Effort.MEDIUM: 4096, Effort.HIGH: 12_288, Effort.XHIGH: 24_576}


def thinking(prompt: Prompt, *, limit: int) -> dict[str, Any]:
    """Return the members of the request that carry the prompt's effort; *limit* is its
    `max_tokens`, of which thinking is a part."""
    if prompt.effort is None:
        return {}
    line, version = _generation(prompt.model)
    if version >= _ADAPTIVE:
        # Newer models hide what they think unless asked, text between tool calls included.
        how = {"type": "adaptive", "display": "summarized"}
        return {"thinking": how, "output_config": {"effort": _level(prompt.effort, version)}}
    fields: dict[str, Any] = {}
    if (line, version) == _FIRST_EFFORT:
        fields["output_config"] = {"effort": _level(prompt.effort, version)}
    budget = min(_BUDGETS.get(prompt.effort, 0), limit // 2)
    # A turn that began with thinking has to show it again with each tool result, so in the
    # middle of one these models go on without.
    if version >= _FIRST and budget >= _LEAST and not _is_within_turn(prompt):
        fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return fields


def _generation(model: str) -> tuple[str, tuple[int, int]]:
    found = _NAME.match(model)
    if found is None:
        return "", _NEWEST
    return found[1] or "", (int(found[2]), int(found[3] or 0))


def _level(effort: Effort, version: tuple[int, int]) -> str:
    if effort is Effort.XHIGH and version < _XHIGH:
        return Effort.HIGH.value
    return effort.value


def _is_within_turn(prompt: Prompt) -> bool:
    return bool(prompt.messages) and prompt.messages[-1].role is not Role.USER
