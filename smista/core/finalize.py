"""Fits the ranked candidates into the chosen model's budget: included or not, each with why."""

from collections.abc import Sequence
from itertools import compress
from typing import Final, NamedTuple

from smista.core.candidates import Candidate, Kind, Origin
from smista.core.decision import Item
from smista.core.exchanges import Exchange
from smista.core.model_ref import ModelDescriptor
from smista.core.rank import Ranked
from smista.core.request import Skill
from smista.core.tokens import effective_budget, text_bytes, text_tokens

KEPT: Final = "fits the budget"
_TOO_BIG: Final = "does not fit what is left of the budget"
_UNSERVED: Final = "no model serves this turn"


class Selection(NamedTuple):
    """*items* tells of every candidate, in order; *held* are the included ones."""

    items: tuple[Item, ...]
    held: tuple[Candidate, ...]


def with_skill_bodies(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Return *ranked* with offered skills in full, for a model that cannot ask for them."""
    return [_in_full(entry) for entry in ranked]


def finalize(
    ranked: Sequence[Ranked], model: ModelDescriptor, max_bytes: int, *, closed: bool = False
) -> Selection:
    """Keep all required candidates and, best first, as many others as fit *model*.

    One that does not fit is left out, and a smaller one after it may still be taken. Required
    candidates are known to fit: routing passed over every model where they do not. *closed*: what
    is sealed and was not opened had no room before, and gets none that became free since.
    """
    tokens, size = effective_budget(model), max_bytes
    kept = [entry.mark.required is not None for entry in ranked]
    reasons = [entry.mark.required or "" for entry in ranked]
    for entry in compress(ranked, kept):
        tokens -= entry.candidate.tokens
        size -= entry.candidate.size
    rest = [number for number, held in enumerate(kept) if not held]
    rest.sort(key=lambda number: -ranked[number].score)
    for number in rest:
        weight, length = ranked[number].candidate.tokens, ranked[number].candidate.size
        objection = _objection(ranked[number], model)
        crowded = weight > tokens or length > size
        if objection is None and (crowded or (closed and _is_closed(ranked[number].candidate))):
            objection = _TOO_BIG
        reasons[number] = objection or KEPT
        if objection is None:
            kept[number] = True
            tokens -= weight
            size -= length
    items = tuple(map(_item, ranked, kept, reasons))
    return Selection(items, tuple(entry.candidate for entry in compress(ranked, kept)))


def unserved(ranked: Sequence[Ranked]) -> tuple[Item, ...]:
    """Return the candidates of a turn that no model serves: all left out."""
    return tuple(_item(entry, False, entry.mark.restricted or _UNSERVED) for entry in ranked)


def _objection(entry: Ranked, model: ModelDescriptor) -> str | None:
    broken = _broken(entry.candidate)
    if broken is not None:
        return broken
    if entry.mark.restricted is not None and not model.local:
        return f"restricted for remote models: {entry.mark.restricted}"
    return None


def _is_closed(candidate: Candidate) -> bool:
    source = candidate.source
    return isinstance(source, Exchange) and not all(m.opened for m in source.messages)


def _broken(candidate: Candidate) -> str | None:
    return candidate.source.broken if isinstance(candidate.source, Exchange) else None


def _item(entry: Ranked, included: bool, reason: str) -> Item:
    candidate = entry.candidate
    return Item(
        kind=str(candidate.kind),
        label=candidate.label,
        tokens=candidate.tokens,
        required=entry.mark.required is not None,
        restricted=entry.mark.restricted is not None,
        included=included,
        reason=reason,
        path=candidate.path if candidate.kind is not Kind.MESSAGE else None,
    )


def _in_full(entry: Ranked) -> Ranked:
    source = entry.candidate.source
    if entry.candidate.origin is not Origin.OFFERED_SKILL or not isinstance(source, Skill):
        return entry
    text = source.content
    body = entry.candidate._replace(text=text, tokens=text_tokens(text), size=text_bytes(text))
    return entry._replace(candidate=body)
