"""An explanation → text for a terminal, or JSON. Pure: it returns text and prints nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cli.visible import visible_line
from smista.core.decision import Decision, Item, Refusal
from smista.core.explain import Explanation, WeighedRule
from smista.core.model_ref import plain
from smista.core.views import CURRENCY, classification_view, routing_view
from smista.local.catalog_file import CachedCatalog

NO_FACTS: Final = (
    "no facts about models are cached yet, so no model can be judged; "
    "start the router once (smista start) and ask again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """*spots* maps the number of a routing rule to the line it stands in, *keyword_spot* is that
    of the classification rule that matched."""

    explanation: Explanation
    catalog: CachedCatalog | None
    now: datetime
    spots: dict[int, str]
    keyword_spot: str | None = None


def as_text(it: Explained) -> str:
    """Return the whole decision, one part after the other."""
    explanation = it.explanation
    parts = [
        _part("intent", [_intent(it)]),
        _part("rules", [_rule(rule, it.spots) for rule in explanation.rules] or ["no rules"]),
        _part("models", _chain(it)),
        _part("context", list(_table(explanation.items)) or ["nothing goes along"]),
        _part("tools", [f"{name}: {mode}" for name, mode in explanation.tools.items()]),
        _part("cost", [_cost(explanation)]),
        _part("outcome", [_outcome(explanation)]),
    ]
    return "\n\n".join(parts)


def facts_line(it: Explained) -> str:
    """Return where the facts about models come from and how old they are."""
    if it.catalog is None:
        return NO_FACTS
    count = len(it.catalog.models)
    return (
        f"facts about {count} model{'' if count == 1 else 's'} as the router last listed them, "
        f"{_age(it.now - it.catalog.written_at)} ago"
    )


def as_json(it: Explained) -> dict[str, Any]:
    """Return the same for a program."""
    explanation = it.explanation
    outcome = explanation.outcome
    written = None if it.catalog is None else it.catalog.written_at.isoformat()
    result: dict[str, Any] = {
        "catalog": {"written_at": written, "note": facts_line(it)},
        "classification": classification_view(explanation.classification),
        "rules": [_rule_members(rule, it.spots) for rule in explanation.rules],
        "models": [
            {
                "model": str(judged.model),
                "serves": judged.serves,
                "reason": judged.reason,
                **({} if judged.code is None else {"code": judged.code}),
            }
            for judged in explanation.chain
        ],
        "context": [_item_members(item) for item in explanation.items],
        "tools": {name: str(mode) for name, mode in explanation.tools.items()},
    }
    if isinstance(outcome, Refusal):
        error = outcome.error
        return {**result, "error": {"code": error.code, "message": error.message}}
    cost = {"min": plain(outcome.cost.min), "max": plain(outcome.cost.max), "currency": CURRENCY}
    return {
        **result,
        "routing": {**routing_view(outcome.routing), "reason": outcome.routing.reason},
        "estimated_cost": {**cost, "known": outcome.cost.known},
    }


def _part(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"  {visible_line(line)}" for line in lines)])


def _intent(it: Explained) -> str:
    made = it.explanation.classification
    confidence = f", {made.confidence} confidence" if made.confidence else ""
    spot = f"  [{it.keyword_spot}]" if it.keyword_spot else ""
    return f"{made.intent}: {made.reason}{confidence}{spot}"


def _rule(rule: WeighedRule, spots: dict[int, str]) -> str:
    mark = "->" if rule.chosen else "= " if rule.matched else "- "
    spot = f"  [{spots[rule.number]}]" if rule.number in spots else ""
    return f"{mark} {rule.reason}{spot}"


def _chain(it: Explained) -> list[str]:
    lines = [
        f"{'->' if judged.serves else '- '} {judged.model}: {judged.reason}"
        for judged in it.explanation.chain
    ]
    return lines or ["no rule matches and there is no default route"]


def _table(items: Iterable[Item]) -> Iterable[str]:
    rows = [
        (
            "in " if item.included else "out",
            item.kind,
            f"~{item.tokens} tokens",
            " ".join(_marks(item)),
            f"{item.label}: {item.reason}",
        )
        for item in items
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row in rows:
        head = "  ".join(row[column].ljust(widths[column]) for column in range(4))
        yield f"{head}  {row[4]}"


def _marks(item: Item) -> Iterable[str]:
    if item.required:
        yield "required"
    if item.restricted:
        yield "restricted"


def _cost(explanation: Explanation) -> str:
    outcome = explanation.outcome
    if isinstance(outcome, Refusal):
        return "nothing: no model is called"
    if not outcome.cost.known:
        return f"unknown: {outcome.descriptor.ref} has no price"
    limit = f", limit {plain(outcome.cost_limit)}" if outcome.cost_limit is not None else ""
    low, high = plain(outcome.cost.min), plain(outcome.cost.max)
    return f"{low} to {high} {CURRENCY}{limit}"


def _outcome(explanation: Explanation) -> str:
    outcome = explanation.outcome
    if isinstance(outcome, Refusal):
        return f"refused, {outcome.error.code}: {outcome.error.message}"
    return f"{outcome.descriptor.ref}{_where(outcome)}: {outcome.routing.reason}"


def _where(decision: Decision) -> str:
    return " (this machine)" if decision.descriptor.local else " (remote)"


def _age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"


def _rule_members(rule: WeighedRule, spots: dict[int, str]) -> dict[str, Any]:
    members = {
        "name": rule.name,
        "model": str(rule.model),
        "matched": rule.matched,
        "chosen": rule.chosen,
        "reason": rule.reason,
    }
    return {**members, "where": spots[rule.number]} if rule.number in spots else members


def _item_members(item: Item) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "label": item.label,
        "tokens": item.tokens,
        "required": item.required,
        "restricted": item.restricted,
        "included": item.included,
        "reason": item.reason,
    }
