"""A decision as the API and the trace show it: pure, from values to JSON members."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from smista.core.candidates import PROMPT_LABEL, Kind
from smista.core.decision import Classification, Decision, Item, Refusal, Routing
from smista.core.errors import SmistaError
from smista.core.model_ref import plain
from smista.core.prompt import Prompt
from smista.core.records import ContextReference
from smista.core.route import attempt_body
from smista.core.snapshot import Attempt
from smista.core.stream import Usage

CURRENCY: Final = "USD"
_WHOLE_DIFF: Final = "current git diff"


def classification_view(made: Classification) -> dict[str, Any]:
    """Return the `classification` of turns and previews (*The classification result*)."""
    confidence = None if made.confidence is None else made.confidence.value
    return {
        "intent": made.intent.value,
        "source": made.source.value,
        "reason": made.reason,
        **_present(matched_rule=made.matched_rule, confidence=confidence),
    }


def routing_view(routing: Routing) -> dict[str, Any]:
    """Return the `routing` of a turn (*The routing outcome*)."""
    return {"task_type": routing.task_type.value, **_outcome(routing)}


def context_view(items: Sequence[Item]) -> dict[str, Any]:
    """Return what was included and what was not, named for people.

    The prompt itself goes without saying, and a diff that stayed whole is named once.
    """
    return {
        "included": _labels(items, included=True),
        "excluded": _labels(items, included=False),
    }


def preview_view(decision: Decision) -> dict[str, Any]:
    """Return the body of *Preview a route*."""
    context = context_view(decision.items)
    cost = decision.cost
    reason = decision.routing.reason
    if not cost.known:
        reason += f"; the price of {decision.descriptor.ref} is unknown, so the cost shows as 0"
    return {
        "classification": classification_view(decision.classification),
        "routing": {
            "intent": decision.routing.task_type.value,
            **_outcome(decision.routing),
            "reason": reason,
        },
        "included_context": context["included"],
        "excluded_context": context["excluded"],
        "estimated_cost": {
            "min": plain(cost.min),
            "max": plain(cost.max),
            "currency": CURRENCY,
        },
        "required_permissions": [
            {"permission": name, "mode": mode.value}
            for name, mode in sorted(decision.permissions.items())
        ],
    }


def usage_view(usage: Usage, cost: Decimal | None) -> dict[str, Any]:
    """Return the *Usage members* of one model call; what is not known is left out."""
    view = _counts(usage)
    if usage.input_tokens is not None and usage.output_tokens is not None:
        view["total_tokens"] = usage.input_tokens + usage.output_tokens
    if cost is not None:
        view |= {"estimated_cost": plain(cost), "actual_cost": plain(cost), "currency": CURRENCY}
    return view


def classification_payload(made: Classification) -> dict[str, Any]:
    """Return the payload of a `classification` event."""
    return classification_view(made)


def routing_payload(
    routing: Routing, prompt: Prompt | None = None, attempts: Sequence[Attempt] = ()
) -> dict[str, Any]:
    """Return the payload of a `routing_decision` event.

    *attempts* are the candidates passed over. A fallback is asked with parameters of its own:
    *prompt* tells which.
    """
    told = {**_outcome(routing), "reason": routing.reason, **_passed_over(attempts)}
    if prompt is None or not routing.fallback_used:
        return told
    effort = None if prompt.effort is None else prompt.effort.value
    limit = prompt.max_output_tokens
    return {**told, "parameters": _present(effort=effort, max_output_tokens=limit)}


def failure_payload(routing: Routing, error: SmistaError, tries: int) -> dict[str, Any]:
    """Return the payload of a `routing_decision` event for a model that was asked and failed."""
    told = {**_outcome(routing), "reason": error.message, "error": error.code}
    return told if tries == 1 else {**told, "tries": tries}


def _passed_over(attempts: Sequence[Attempt]) -> dict[str, Any]:
    return {"attempts": [attempt_body(attempt) for attempt in attempts]} if attempts else {}


def refusal_payload(refusal: Refusal) -> dict[str, Any]:
    """Return the payload of a `routing_decision` event for a turn that no model serves.

    It names what was asked for first; without any route both names are empty.
    """
    primary = refusal.primary
    return {
        "provider": "" if primary is None else primary.provider,
        "model": "" if primary is None else primary.model,
        **_present(matched_rule=refusal.matched_rule),
        "fallback_used": False,
        "override_used": refusal.override_used,
        "reason": refusal.error.message,
        "error": refusal.error.code,
        **_passed_over(refusal.attempts),
    }


def selection_payload(item: Item | ContextReference) -> dict[str, Any]:
    """Return the payload of a `context_selection` event."""
    return {
        "kind": item.kind,
        "included": item.included,
        "reason": item.reason,
        **_present(path=item.path),
    }


def cost_payload(
    routing: Routing, usage: Usage, cost: Decimal | None, served: str | None = None
) -> dict[str, Any]:
    """Return the payload of a `cost` event; what is not known is left out.

    *served* is the provider's own name for the model that answered, told where it is another.
    """
    return {
        "provider": routing.provider,
        "model": routing.model,
        **_present(served_model=served if served != routing.model else None),
        **_counts(usage),
        **_present(cost=None if cost is None else plain(cost)),
    }


def _outcome(routing: Routing) -> dict[str, Any]:
    return {
        "provider": routing.provider,
        "model": routing.model,
        **_present(matched_rule=routing.matched_rule),
        "fallback_used": routing.fallback_used,
        "override_used": routing.override_used,
    }


def _labels(items: Sequence[Item], *, included: bool) -> list[str]:
    whole = _diff_is_whole(items)
    labels = [
        _WHOLE_DIFF if item.kind == Kind.DIFF and whole else item.label
        for item in items
        if item.included is included and item.label != PROMPT_LABEL
    ]
    return list(dict.fromkeys(labels))


def _diff_is_whole(items: Iterable[Item]) -> bool:
    return len({item.included for item in items if item.kind == Kind.DIFF}) <= 1


def _counts(usage: Usage) -> dict[str, Any]:
    return _present(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
