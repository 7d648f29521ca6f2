"""Names of tools in the narrower alphabet of a wire format, and back."""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from smista.core.prompt import Prompt

_MARK: Final = 8


def wire_names(names: Iterable[str], *, unsafe: re.Pattern[str], limit: int) -> dict[str, str]:
    """Return our name → name on the wire, no two alike and none longer than *limit*.

    *unsafe* matches each character the format does not take. Equal sets give equal names,
    whatever their order.
    """
    given: dict[str, str] = {}
    for name in sorted(set(names), key=lambda name: (_plain(name, unsafe) != name, name)):
        plain = _plain(name, unsafe)
        fits = plain != "" and len(plain) <= limit and plain not in given.values()
        given[name] = plain if fits else _marked(name, plain, limit)
    return given


def prompt_names(prompt: Prompt, *, unsafe: re.Pattern[str], limit: int) -> dict[str, str]:
    """Return our name → name on the wire of all tools that *prompt* offers or tells of."""
    offered = [tool.name for tool in prompt.tools]
    called = [call.name for message in prompt.messages for call in message.calls]
    return wire_names([*offered, *called], unsafe=unsafe, limit=limit)


def foreign(names: dict[str, str]) -> dict[str, str]:
    """Return wire name → our name for those of *names* that differ."""
    return {wire: ours for ours, wire in names.items() if wire != ours}


def _plain(name: str, unsafe: re.Pattern[str]) -> str:
    plain = unsafe.sub("_", name)
    # Some formats want a letter or an underscore first.
    return plain if plain[:1].isalpha() or plain[:1] in ("_", "") else f"_{plain}"


def _marked(name: str, plain: str, limit: int) -> str:
    mark = sha256(name.encode("utf-8", "replace")).hexdigest()[:_MARK]
    return f"{plain[: limit - _MARK - 1] or 'tool'}_{mark}"
