"""What a router tells of an encrypted session, opened and added up on the user's machine."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from smista.core.model_ref import plain
from smista.sdk.answers import RememberedFact, StoredMessage, TraceEntry
from smista.sdk.errors import is_object
from smista.sdk.sealing import Sealer, UnknownEnvelope

_COUNTS: Final = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_CURRENCY: Final = "USD"
_COST: Final = "cost"
_MEMBERS: Final = {"entry": "content", "calls": "text"}
"""Format of a sealed message → the member that holds what was said."""


def is_sealed(content: Mapping[str, Any]) -> bool:
    """Return whether *content*, of a message or a trace event, is sealed."""
    return "encrypted" in content


async def open_trace(sealer: Sealer, entries: Sequence[TraceEntry]) -> tuple[TraceEntry, ...]:
    """Return *entries* with their payloads in clear. Raises SealingError."""
    sealed = {f"trace:{each.id}": each for each in entries if is_sealed(each.payload)}
    texts = await sealer.open({name: e.payload["encrypted"] for name, e in sealed.items()})
    payloads = {sealed[name].id: _payload(name, text) for name, text in texts.items()}
    return tuple(
        each.model_copy(update={"payload": {"plaintext": payloads[each.id]}})
        if is_sealed(each.payload)
        else each
        for each in entries
    )


async def open_messages(
    sealer: Sealer, messages: Sequence[StoredMessage]
) -> tuple[StoredMessage, ...]:
    """Return *messages* with their texts in clear. Raises SealingError."""
    sealed = {str(each.reference): each for each in messages if is_sealed(each.content)}
    texts = await sealer.open({name: m.content["encrypted"] for name, m in sealed.items()})
    return tuple(
        each.model_copy(update={"content": {"plaintext": _said(each, texts[str(each.reference)])}})
        if is_sealed(each.content)
        else each
        for each in messages
    )


async def open_facts(sealer: Sealer, facts: Sequence[RememberedFact]) -> tuple[RememberedFact, ...]:
    """Return *facts* with key and content in clear. Raises SealingError."""
    sealed = {f"memory:{each.id}": each for each in facts if is_sealed(each.content)}
    texts = await sealer.open({name: f.content["encrypted"] for name, f in sealed.items()})
    told = {sealed[name].id: _payload(name, text) for name, text in texts.items()}
    return tuple(_told(each, told.get(each.id)) for each in facts)


def _told(fact: RememberedFact, payload: Mapping[str, Any] | None) -> RememberedFact:
    if payload is None:
        return fact
    content = {"plaintext": str(payload.get("content", ""))}
    return fact.model_copy(update={"key": payload.get("key"), "content": content})


def _said(message: StoredMessage, text: str) -> str:
    """Return what *message* says: answers and texts with calls are sealed with more than that."""
    member = _MEMBERS.get(message.format or "")
    return text if member is None else str(_payload(str(message.reference), text).get(member, ""))


def usage_of(entries: Iterable[TraceEntry]) -> dict[str, Any]:
    """Return what `GET …/usage` tells, from opened *entries*: a router cannot add up sealed ones.

    The entries should be all of a session's. Events that are no costs, or sealed, are passed over.
    """
    rows = [
        (entry, entry.payload["plaintext"])
        for entry in entries
        if entry.event_type == _COST and is_object(entry.payload.get("plaintext"))
    ]
    by_model: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    by_task: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry, row in rows:
        by_model[entry.provider, entry.model].append(row)
        by_task[entry.task_type].append(row)
    return {
        "total": _totals([row for _, row in rows]),
        "by_model": [
            {"provider": provider, "model": model, **_totals(some), "request_count": len(some)}
            for (provider, model), some in by_model.items()
        ],
        "by_task_type": [
            {"task_type": task, **_figures(some), "request_count": len(some)}
            for task, some in by_task.items()
        ],
    }


def _payload(reference: str, text: str) -> dict[str, Any]:
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise UnknownEnvelope(reference, "what was sealed there cannot be read") from error
    if not is_object(payload):
        raise UnknownEnvelope(reference, "what was sealed there cannot be read")
    return payload


def _totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    figures = _figures(rows)
    counts = [figures[name] for name in _COUNTS[:2] if name in figures]
    total = {"total_tokens": sum(counts)} if counts else {}
    currency = {"currency": _CURRENCY} if "estimated_cost" in figures else {}
    return {**figures, **total, **currency}


def _figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of what *rows* know; what none of them knows is left out."""
    known = {
        name: [row[name] for row in rows if isinstance(row.get(name), int)] for name in _COUNTS
    }
    figures: dict[str, Any] = {name: sum(counts) for name, counts in known.items() if counts}
    costs = [cost for row in rows if (cost := _money(row.get(_COST))) is not None]
    return {**figures, "estimated_cost": plain(sum(costs, Decimal(0)))} if costs else figures


def _money(text: object) -> Decimal | None:
    try:
        cost = Decimal(text) if isinstance(text, str) else None
    except InvalidOperation:
        return None
    return cost if cost is not None and cost.is_finite() else None
