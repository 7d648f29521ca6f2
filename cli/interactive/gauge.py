"""The status line: what the run is taken for, who serves it, by which rule, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cli.interactive.screen import Screen
from cli.render import usage_words
from cli.visible import visible_line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Route:
    intent: str
    provider: str
    model: str
    why: str


class Gauge:
    """What is known of the newest run."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._mode = ""
        self._route: _Route | None = None
        self._usage: Mapping[str, Any] = {}
        self._activity = ""

    def set_mode(self, mode: str) -> None:
        """Show *mode*: what is set for all prompts to come."""
        self._mode = mode
        self._show()

    def begin(self) -> None:
        self._route, self._usage, self._activity = None, {}, ""
        self._show()

    def foresee(self, preview: Mapping[str, Any]) -> None:
        """Show the decision that the run begins with, unless a turn has told of its own."""
        if self._route is None:
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
            self._route = _route(intent, routing)
        if usage := data.get("usage"):
            self._usage = usage
        self._show()

    def _show(self) -> None:
        """Say it ever shorter; what is left in the narrowest terminal is model and cost."""
        route, usage, cost = self._route, usage_words(self._usage), _cost(self._usage)
        if route is None:
            forms = [(self._mode, usage, self._activity), (self._mode, cost)]
        else:
            known = (route.intent, f"{route.provider}/{route.model}", route.why)
            forms = [
                (self._mode, *known, usage, self._activity),
                (self._mode, *known, cost, self._activity),
                (route.intent, route.model, route.why, cost, self._activity),
                (route.intent, route.model, cost),
                (route.model, cost),
            ]
        self._screen.status([_joined(form) for form in forms])


def _joined(form: tuple[str, ...]) -> str:
    return visible_line(" · ".join(part for part in form if part))


def _cost(usage: Mapping[str, Any]) -> str:
    """Return the cost alone; where it is not known, the tokens."""
    words = usage_words(usage)
    return words.rpartition(", ")[2]


def _route(intent: Mapping[str, Any], routing: Mapping[str, Any]) -> _Route:
    rule = routing.get("matched_rule")
    why = f"rule {str(rule).partition(' -> ')[0]}" if rule else "default route"
    if routing.get("override_used"):
        why = "as you asked"
    if routing.get("fallback_used"):
        why += ", a fallback"
    return _Route(
        intent=str(intent.get("intent", "?")),
        provider=str(routing.get("provider", "?")),
        model=str(routing.get("model", "?")),
        why=why,
    )


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
