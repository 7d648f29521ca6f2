"""The trace of a session as a person reads it: what was asked, decided, done and spent. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from cli.render import routing_words, usage_words
from cli.visible import visible_line
from smista.sdk.answers import StoredMessage, TraceEntry
from smista.sdk.errors import is_object

SEALED: Final = "sealed"
_CUT: Final = 100
_INDENT: Final = " " * 20
_RULE: Final = "rule {} of your classification rules"


class Step(NamedTuple):
    """One event: its *word*, what is said of it, and lines below it."""

    word: str
    text: str
    below: tuple[str, ...] = ()


def timeline(events: Iterable[TraceEntry], said: Sequence[str] = ()) -> str:
    """Return the trace, one step a line, a blank line before each new turn.

    *said* are the texts of the session's messages, up to the last one that the events tell of.
    """
    lines: list[str] = []
    shown = list(events)
    told = sum(event.event_type == "message" for event in shown)
    texts, prompted, day = iter(said[-told:] if told <= len(said) else ()), True, ""
    for event in shown:
        opens = _is_prompt(event)
        if opens or (event.event_type == "classification" and not prompted):
            lines += [""] if lines else []
        prompted = opens
        date = event.created_at.strftime("%Y-%m-%d")
        if date != day:
            lines.append(f"{date} (UTC)")
            day = date
        lines += _lines(event, next(texts, None) if event.event_type == "message" else None)
    return "\n".join(lines)


def said_in(messages: Iterable[StoredMessage]) -> list[str]:
    """Return the texts of a fetched session's messages, as the trace tells of them."""
    told = (message for message in messages if message.role in ("user", "assistant"))
    return [str(message.content.get("plaintext", SEALED)) for message in told]


def _lines(event: TraceEntry, said: str | None) -> Iterator[str]:
    step = _step(event, said)
    clock = event.created_at.strftime("%H:%M:%S")
    yield visible_line(f"{clock}  {step.word:<10}{step.text}").rstrip()
    for text in step.below:
        yield visible_line(f"{_INDENT}{text}")


def _is_prompt(event: TraceEntry) -> bool:
    payload: Mapping[str, Any] = event.payload.get("plaintext", {})
    return event.event_type == "message" and payload.get("role") == "user"


def _step(event: TraceEntry, said: str | None) -> Step:
    if "plaintext" not in event.payload:
        words = {"routing_decision": "route", "context_selection": "context", "tool_call": "tool"}
        word = words.get(event.event_type, event.event_type)
        return Step(word[:9], f"{SEALED} ({event.provider}/{event.model})")
    payload: Mapping[str, Any] = event.payload["plaintext"]
    match event.event_type:
        case "message":
            return _message(payload, said)
        case "classification":
            return Step("intent", _intent(payload))
        case "routing_decision":
            return _route(event, payload)
        case "context_selection":
            verb = "in " if payload.get("included") else "out"
            name = payload.get("path") or payload.get("kind")
            return Step("context", f"{verb} {name}: {payload.get('reason')}")
        case "tool_call":
            return _call(payload)
        case "approval":
            reason = f": {payload['reason']}" if payload.get("reason") else ""
            return Step(
                "approval", f"{payload.get('decision')} ({payload.get('target_type')}){reason}"
            )
        case "cost":
            return Step("cost", _cost(payload))
        case other:
            return Step(other[:9], "")


def _message(payload: Mapping[str, Any], said: str | None) -> Step:
    role = payload.get("role")
    word = {"user": "asked", "assistant": "answered"}.get(str(role), str(role))
    model = "" if role == "user" else f"{payload.get('provider')}/{payload.get('model')}"
    cut = ", interrupted" if payload.get("interrupted") else ""
    if said is None:
        return Step(word, (model or "by you") + cut)
    text = _short(" ".join(said.split()))
    return Step(word, text + (f"  ({model}{cut})" if model else ""))


def _intent(payload: Mapping[str, Any]) -> str:
    rule = payload.get("matched_rule")
    where = f" ({_RULE.format(rule + 1)})" if isinstance(rule, int) else ""
    sure = f", {payload['confidence']} confidence" if payload.get("confidence") else ""
    return f"{payload.get('intent')}: {payload.get('reason')}{where}{sure}"


def _route(event: TraceEntry, payload: Mapping[str, Any]) -> Step:
    attempts = [each for each in _list(payload.get("attempts")) if is_object(each)]
    below = tuple(_passed_over(attempt) for attempt in attempts)
    reason = str(payload.get("reason"))
    if payload.get("error"):
        model = f"{payload.get('provider')}/{payload.get('model')}"
        named = f"{model} " if payload.get("model") else ""
        tries = f" (try {payload['tries']})" if payload.get("tries") else ""
        return Step("failed", f"{named}{payload['error']}{tries}: {reason}", below)
    if attempts:
        reason = reason.partition(f"; {attempts[0].get('model')} was passed over")[0]
    words = routing_words({**payload, "matched_rule": event.matched_rule})
    return Step("route", f"{words}: {reason}", below)


def _passed_over(attempt: Mapping[str, Any]) -> str:
    return f"passed over {attempt.get('model')}: {attempt.get('reason')}"


def _call(payload: Mapping[str, Any]) -> Step:
    detail = payload.get("error") or payload.get("result") or payload.get("arguments") or ""
    masked = _list(payload.get("masked"))
    below = (f"left out: {', '.join(map(str, masked))}",) if masked else ()
    words = f"{payload.get('tool_name')} {payload.get('status')} {_short(str(detail))}"
    return Step("tool", words.rstrip(), below)


def _cost(payload: Mapping[str, Any]) -> str:
    known = {name: value for name, value in payload.items() if value is not None}
    if "cost" in known:
        known["actual_cost"] = known["cost"]
    served = f" (served as {known['served_model']})" if "served_model" in known else ""
    words = usage_words(known) or "nothing was reported"
    return f"{payload.get('provider')}/{payload.get('model')}{served}: {words}"


def _list(value: Any) -> Sequence[Any]:
    # What a router sends is not known to have the shape that ours has.
    return cast("Sequence[Any]", value) if isinstance(value, list) else []


def _short(text: str) -> str:
    return text if len(text) <= _CUT else f"{text[:_CUT]}…"
