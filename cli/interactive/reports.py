"""Answers of the router as a person reads them. Pure: it returns text and prints nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from smista.core.model_ref import ModelDescriptor, ModelRef, ProviderDescriptor, Unavailable
from smista.sdk.answers import SessionSummary

AUTO: Final = "auto"


def preview_report(preview: Mapping[str, Any]) -> str:
    """Return what the router would do with a prompt (*Preview a route*)."""
    intent: Mapping[str, Any] = preview.get("classification", {})
    routing: Mapping[str, Any] = preview.get("routing", {})
    cost: Mapping[str, Any] = preview.get("estimated_cost", {})
    rows = [
        ("intent", f"{intent.get('intent')}: {intent.get('reason')}"),
        ("model", f"{routing.get('provider')}/{routing.get('model')}"),
        ("rule", str(routing.get("matched_rule") or "none, the default route")),
        ("why", str(routing.get("reason"))),
        ("cost", f"{cost.get('min')} to {cost.get('max')} {cost.get('currency', 'USD')}"),
        *_context(preview, "included_context", "sent"),
        *_context(preview, "excluded_context", "left out"),
        *_permissions(preview.get("required_permissions", [])),
    ]
    return table(rows)


def _context(preview: Mapping[str, Any], member: str, title: str) -> Iterator[tuple[str, str]]:
    things: Sequence[object] = preview.get(member, [])
    for number, thing in enumerate(things or ["nothing"]):
        yield (title if number == 0 else "", str(thing))


def _permissions(entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for number, entry in enumerate(entries):
        title = "tools" if number == 0 else ""
        yield (title, f"{entry.get('permission')}: {entry.get('mode')}")


def providers_report(providers: Iterable[ProviderDescriptor]) -> str:
    """Return each provider and whether what is sent to it leaves this machine's network."""
    rows = [
        (each.id, f"{each.display_name}, {'local' if each.local else 'remote'}")
        for each in providers
    ]
    return table(rows) or "the router knows no provider"


def unavailable_report(entries: Iterable[Unavailable]) -> str:
    """Return on one line which providers could not list their models, and why."""
    names = [f"{each.provider} ({each.reason.replace('_', ' ')})" for each in entries]
    return f"not listed: {', '.join(names)}"


def session_choice(summary: SessionSummary, begun: str | None, *, here: bool) -> str:
    """Return one line for the list of sessions. *begun* is its first prompt, where known."""
    title = begun or summary.title or "a session without a title"
    return f"{clock(summary.updated_at)}  {title}{'  (this one)' if here else ''}"


def clock(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def model_choice(model: ModelDescriptor) -> str:
    """Return one line for the list of models."""
    name = f"  {model.display_name}" if model.display_name else ""
    return f"{model.provider}/{model.model}{name}{'' if model.local else '  (remote)'}"


def named_model(text: str, models: Iterable[ModelDescriptor]) -> ModelRef | list[ModelRef]:
    """Return the model that *text* names, or all that it could mean; none at all if unknown."""
    wanted = text.strip().casefold()
    found = [
        ModelRef(provider=each.provider, model=each.model)
        for each in models
        if wanted
        in {
            f"{each.provider}/{each.model}".casefold(),
            each.model.casefold(),
            (each.display_name or "").casefold(),
        }
    ]
    return found[0] if len(found) == 1 else found


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Return *rows* in two columns, one row a line."""
    width = max((len(left) for left, _ in rows), default=0)
    return "\n".join(f"{left.ljust(width)}  {right}".rstrip() for left, right in rows)
