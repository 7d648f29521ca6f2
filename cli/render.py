"""Events → text for a terminal. Pure: it returns text and prints nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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
from smista.sdk.answers import TraceEntry


@dataclass(frozen=True, slots=True)
class Said:
    """*answer* goes to stdout, *aside* is a whole line for stderr."""

    answer: str = ""
    aside: str = ""


def render(event: Event) -> Said:
    """Return what a person should see of *event*."""
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


def timeline(events: Iterable[TraceEntry]) -> str:
    """Return the trace of a session, one step a line, a blank line before each new turn."""
    lines: list[str] = []
    prompted = True
    for event in events:
        opens = _is_prompt(event)
        if opens or (event.event_type == "classification" and not prompted):
            lines += [""] if lines else []
        prompted = opens
        clock = event.created_at.strftime("%H:%M:%S")
        lines.append(visible_line(f"{clock}  {event.event_type:<18}{_step(event)}"))
    return "\n".join(lines)


def _is_prompt(event: TraceEntry) -> bool:
    payload: Mapping[str, Any] = event.payload.get("plaintext", {})
    return event.event_type == "message" and payload.get("role") == "user"


def _step(event: TraceEntry) -> str:
    if "plaintext" not in event.payload:
        return f"sealed ({event.provider}/{event.model})"
    payload: Mapping[str, Any] = event.payload["plaintext"]
    match event.event_type:
        case "classification":
            return f"{payload.get('intent')}: {payload.get('reason')}"
        case "routing_decision":
            return f"{routing_words({**payload, 'matched_rule': event.matched_rule})}: " + str(
                payload.get("reason")
            )
        case "context_selection":
            verb = "in " if payload.get("included") else "out"
            name = payload.get("path") or payload.get("kind")
            return f"{verb} {name}: {payload.get('reason')}"
        case "tool_call":
            return _call(payload)
        case "approval":
            reason = f": {payload['reason']}" if payload.get("reason") else ""
            return f"{payload.get('decision')} ({payload.get('target_type')}){reason}"
        case "cost":
            cost = {**payload, "actual_cost": payload.get("cost")}
            known = {name: value for name, value in cost.items() if value is not None}
            return f"{payload.get('provider')}/{payload.get('model')}: {usage_words(known)}"
        case "message":
            return f"{payload.get('role')} message"
        case _:
            return ""


def _call(payload: Mapping[str, Any]) -> str:
    detail = payload.get("error") or payload.get("result") or payload.get("arguments") or ""
    text = str(detail)
    short = text if len(text) <= 100 else f"{text[:100]}…"
    return f"{payload.get('tool_name')} {payload.get('status')} {short}".rstrip()
