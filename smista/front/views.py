"""Values of the core → the JSON members of the API, word for word as documented."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

from smista.core.model_ref import Catalog, ModelDescriptor, ProviderDescriptor, plain
from smista.core.records import TraceEvent
from smista.core.secret import Envelope
from smista.core.usage import UsageBy
from smista.ports.journal import CostSum, UsageSum

CURRENCY = "USD"
Figures = CostSum | UsageSum
_GROUPS: Final = {
    UsageBy.MODEL: ("by_model", ("provider", "model")),
    UsageBy.INTENT: ("by_task_type", ("task_type",)),
    UsageBy.DAY: ("by_day", ("day",)),
    UsageBy.PROJECT: ("by_project", ("scope",)),
}
_OPTIONAL_PRICES = (
    "input_cost_per_million_tokens",
    "output_cost_per_million_tokens",
    "cache_read_cost_per_million_tokens",
    "cache_write_cost_per_million_tokens",
)


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def trace_view(session_id: str, events: Iterable[TraceEvent]) -> dict[str, Any]:
    return {"trace": {"session_id": session_id, "events": [_trace_event(e) for e in events]}}


def _trace_event(event: TraceEvent) -> dict[str, Any]:
    if isinstance(event.payload, Envelope):
        # Its id is part of what it was sealed with, so who opens it has to know it.
        payload: dict[str, Any] = {"encrypted": event.payload.model_dump()}
        own = {"id": event.id}
    else:
        payload, own = {"plaintext": {"type": event.event_type.value, **event.payload}}, {}
    return {
        **own,
        "event_type": event.event_type.value,
        "task_type": event.task_type.value,
        "provider": event.provider,
        "model": event.model,
        **_present(matched_rule=event.matched_rule),
        "created_at": event.created_at,
        "payload": payload,
    }


def usage_view(rows: Sequence[CostSum]) -> dict[str, Any]:
    """Return total and breakdowns; a figure that no row knows is left out."""
    by_model: dict[tuple[str, str], list[CostSum]] = defaultdict(list)
    by_task: dict[str, list[CostSum]] = defaultdict(list)
    for row in rows:
        by_model[row.provider, row.model].append(row)
        by_task[row.task_type].append(row)
    return {
        "total": _totals(rows),
        "by_model": [
            {"provider": provider, "model": model, **_totals(some), "request_count": _count(some)}
            for (provider, model), some in by_model.items()
        ],
        "by_task_type": [
            {"task_type": task, **_figures(some), "request_count": _count(some)}
            for task, some in by_task.items()
        ],
    }


def spending_view(by: UsageBy, sums: Sequence[UsageSum]) -> dict[str, Any]:
    """Return the total over all groups, and each group under its own names."""
    member, names = _GROUPS[by]
    groups = [
        {
            **_present(**dict(zip(names, each.group, strict=True))),
            **_totals([each]),
            "request_count": each.requests,
        }
        for each in sums
    ]
    return {"total": {**_totals(sums), "request_count": _count(sums)}, member: groups}


def _count(rows: Iterable[Figures]) -> int:
    return sum(row.requests for row in rows)


def _figures(rows: Sequence[Figures]) -> dict[str, Any]:
    costs = [Decimal(row.cost) for row in rows if row.cost is not None]
    return _present(
        input_tokens=_sum(row.input_tokens for row in rows),
        output_tokens=_sum(row.output_tokens for row in rows),
        cached_tokens=_sum(row.cached_tokens for row in rows),
        reasoning_tokens=_sum(row.reasoning_tokens for row in rows),
        estimated_cost=plain(sum(costs, Decimal(0))) if costs else None,
    )


def _totals(rows: Sequence[Figures]) -> dict[str, Any]:
    figures = _figures(rows)
    total = _sum(figures.get(name) for name in ("input_tokens", "output_tokens"))
    currency = CURRENCY if "estimated_cost" in figures else None
    return {**figures, **_present(total_tokens=total, currency=currency)}


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def providers_view(providers: Iterable[ProviderDescriptor]) -> dict[str, Any]:
    return {"providers": [provider.model_dump() for provider in providers]}


def models_view(catalog: Catalog) -> dict[str, Any]:
    """Return all models; `unavailable` is absent when every provider was listed."""
    view: dict[str, Any] = {"models": [_model(model) for model in catalog.models]}
    if catalog.unavailable:
        view["unavailable"] = [entry.model_dump(exclude_none=True) for entry in catalog.unavailable]
    return view


def _model(model: ModelDescriptor) -> dict[str, Any]:
    absent = {name for name in _OPTIONAL_PRICES if getattr(model, name) is None}
    return model.model_dump(exclude=absent)
