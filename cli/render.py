"""Events → text for a terminal. Pure: it returns text and prints nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cli.remembered import remembered_lines
from cli.visible import visible_line
from smista.core.events import (
    Event,
    ReasoningDeltaEvent,
    Status,
    TextDeltaEvent,
    ToolCallRequested,
    ToolCallStarted,
    TurnEnd,
    UsageEvent,
)


@dataclass(frozen=True, slots=True)
class Said:
    """*answer* goes to stdout, *aside* is a whole line for stderr."""

    answer: str = ""
    aside: str = ""


def render(event: Event) -> Said:
    """Return what a person should see of *event*; what was remembered about them comes first."""
    said = _said(event)
    lines = remembered_lines(event.data) if isinstance(event, TurnEnd) else ()
    return replace(said, aside="\n".join((*lines, *filter(None, (said.aside,)))))


def _said(event: Event) -> Said:
    match event:
        case TextDeltaEvent(delta):
            return Said(answer=delta)
        case TurnEnd(Status.ERROR, data):
            return Said(aside=f"error: {error_line(data)}")
        case TurnEnd(Status.COMPLETED, data):
            return Said(aside=outcome_line(data))
        case TurnEnd(Status.IDLE):
            return Said(aside="stopped")
        case ReasoningDeltaEvent() | ToolCallStarted() | ToolCallRequested() | UsageEvent():
            return Said()
        case TurnEnd():
            return Said()


def error_line(data: Mapping[str, Any]) -> str:
    """Return code, message and, where models were tried, why each was passed over."""
    error: Mapping[str, Any] = data.get("error", {})
    message = str(error.get("message", ""))
    line = visible_line(f"{error.get('code', 'internal_error')}: {message}")
    attempts = error.get("details", {}).get("attempts", [])
    return line + "".join(f"\n  {visible_line(_tried(each, message))}" for each in attempts)


def _tried(attempt: Mapping[str, Any], message: str) -> str:
    """Return one attempt; a reason that *message* has told is not told again."""
    parts = [str(attempt.get("model")), str(attempt.get("code"))]
    reason = str(attempt.get("reason") or "")
    return ": ".join(parts if reason in message else [*parts, reason])


def outcome_line(data: Mapping[str, Any]) -> str:
    """Return intent, rule, model and cost of a completed run on one line."""
    intent: Mapping[str, Any] = data.get("classification", {})
    routing: Mapping[str, Any] = data.get("routing", {})
    parts = [
        f"{intent.get('intent', '?')} ({intent.get('reason', '')})",
        routing_words(routing),
        usage_words(data.get("usage", {})),
    ]
    if not str(data.get("message", {}).get("content", "")).strip():
        parts.insert(0, "the answer is empty")
    return visible_line(" · ".join(part for part in parts if part))


def routing_words(routing: Mapping[str, Any]) -> str:
    """Return the rule and the model: `rule 'x' -> provider/model`, or why there is no rule."""
    model = f"{routing.get('provider', '?')}/{routing.get('model', '?')}"
    if routing.get("override_used"):
        return f"{model} (as you asked)"
    rule = routing.get("matched_rule")
    words = f"rule {rule}" if rule else f"default route -> {model}"
    if routing.get("fallback_used"):
        words += f", served by the fallback {model}"
    return words


def usage_words(usage: Mapping[str, Any]) -> str:
    """Return tokens and cost; what the provider did not say is left out."""
    counts = [
        f"{usage[name]} {word}"
        for name, word in (("input_tokens", "in"), ("output_tokens", "out"))
        if name in usage
    ]
    words = f"{' + '.join(counts)} tokens" if counts else ""
    cost = usage.get("actual_cost", usage.get("estimated_cost"))
    if cost is None:
        return words
    return f"{words}, {cost} {usage.get('currency', 'USD')}" if words else f"{cost} USD"
