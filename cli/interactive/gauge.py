"""The status line: what the run is taken for, who serves it, by which rule, and what it costs."""

from collections.abc import Mapping
from typing import Any

from cli.interactive.screen import Screen
from cli.render import usage_words
from cli.visible import visible_line


class Gauge:
    """What is known of the newest run."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._mode = ""
        self._route: tuple[str, ...] = ()
        self._usage: Mapping[str, Any] = {}
        self._activity = ""

    def set_mode(self, mode: str) -> None:
        """Show *mode*: what is set for all prompts to come."""
        self._mode = mode
        self._show()

    def begin(self) -> None:
        self._route, self._usage, self._activity = (), {}, ""
        self._show()

    def foresee(self, preview: Mapping[str, Any]) -> None:
        """Show the decision that the run begins with, unless a turn has told of its own."""
        if not self._route:
            self.turned(preview)

    def calls(self, tool: str) -> None:
        self._activity = f"calls {tool}"
        self._show()

    def used(self, usage: Mapping[str, Any]) -> None:
        """Add the figures of one model call."""
        self._usage = _sum(self._usage, usage)
        self._show()

    def turned(self, data: Mapping[str, Any]) -> None:
        """Take what a turn says of itself."""
        self._activity = ""
        intent: Mapping[str, Any] = data.get("classification") or {}
        routing: Mapping[str, Any] = data.get("routing") or {}
        if routing:
            self._route = tuple(_route(intent, routing))
        if usage := data.get("usage"):
            self._usage = usage
        self._show()

    def _show(self) -> None:
        parts = (self._mode, *self._route, usage_words(self._usage), self._activity)
        self._screen.status([visible_line(part) for part in parts if part])


def _route(intent: Mapping[str, Any], routing: Mapping[str, Any]) -> list[str]:
    rule = routing.get("matched_rule")
    why = f"rule {str(rule).partition(' -> ')[0]}" if rule else "default route"
    if routing.get("override_used"):
        why = "as you asked"
    if routing.get("fallback_used"):
        why += ", a fallback"
    model = f"{routing.get('provider', '?')}/{routing.get('model', '?')}"
    return [str(intent.get("intent", "?")), model, why]


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return both figures added; money is written in decimals."""
    from decimal import Decimal

    total = {**one, **other}
    for name in ("input_tokens", "output_tokens"):
        if name in one and name in other:
            total[name] = one[name] + other[name]
    for name in ("actual_cost", "estimated_cost"):
        if name in one and name in other:
            total[name] = format(Decimal(str(one[name])) + Decimal(str(other[name])), "f")
    return total
