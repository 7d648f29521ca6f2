"""Worth of discardable context, and the merging of candidates that are the same thing twice."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from smista.core.candidates import Candidate, Kind, Origin
from smista.core.marks import Mark
from smista.core.paths import spellings

_WORTH: Final = {
    Origin.FILE: 5000,
    Origin.DIFF: 4000,
    Origin.HISTORY: 3000,
    Origin.MEMORY: 2000,
    Origin.OFFERED_SKILL: 1000,
    Origin.INSTRUCTION: 0,
    Origin.INVOKED_SKILL: 0,
    Origin.RUN: 0,
}
_AFFINITY: Final = 500
_RECENCY: Final = 499
Key = tuple[str, str]
_MERGED_BY_PATH: Final = frozenset({Kind.FILE, Kind.INSTRUCTION, Kind.SKILL})


class Ranked(NamedTuple):
    """A candidate with its marks and what it is worth; required ones are never weighed."""

    candidate: Candidate
    mark: Mark
    score: int


def recency(index: int, count: int) -> int:
    """Return the bonus of history message *index* of *count*, the oldest being 0."""
    return index * _RECENCY // (count - 1) if count > 1 else 0


def rank(found: Sequence[Candidate], marks: Sequence[Mark]) -> list[Ranked]:
    """Return *found* with its scores, in the same order."""
    count = sum(1 for candidate in found if candidate.origin is Origin.HISTORY)
    index = 0
    ranked: list[Ranked] = []
    for candidate, mark in zip(found, marks, strict=True):
        score = _WORTH[candidate.origin] + _AFFINITY * mark.affine
        if candidate.origin is Origin.HISTORY:
            score += recency(index, count)
            index += 1
        ranked.append(Ranked(candidate, mark, score))
    return ranked


def merge(ranked: Iterable[Ranked], root: str) -> list[Ranked]:
    """Return *ranked* with twins (same path or same content) merged.

    The required one wins, then the higher score; the first position and the strictest mark stay.
    A diff is not the file it changes, and what was said is not said twice: messages merge with
    other material only, those of this run with nothing.
    """
    slots: list[Ranked | None] = []
    by_key: dict[Key, int] = {}
    for entry in ranked:
        looked_up, filed = _keys(entry.candidate, root)
        twins = [by_key[key] for key in looked_up if key in by_key]
        home = min(twins, default=len(slots))
        if not twins:
            slots.append(entry)
        else:
            _join(slots, by_key, sorted(set(twins)), entry)
        for key in filed:
            by_key[key] = home
    return [slot for slot in slots if slot is not None]


def _join(
    slots: list[Ranked | None], by_key: dict[Key, int], twins: list[int], entry: Ranked
) -> None:
    home, *others = twins
    for slot in (*reversed(others), home):
        other = slots[slot]
        slots[slot] = None
        entry = entry if other is None else _better(other, entry)
    slots[home] = entry
    if others:
        by_key |= {key: home for key, slot in by_key.items() if slot in others}


def _better(first: Ranked, second: Ranked) -> Ranked:
    def worth(entry: Ranked) -> tuple[bool, int]:
        return entry.mark.required is not None, entry.score

    winner, other = (second, first) if worth(second) > worth(first) else (first, second)
    restricted = winner.mark.restricted or other.mark.restricted
    mark = winner.mark._replace(restricted=restricted)
    names = (*winner.candidate.also, *_other_names(winner.candidate, other.candidate))
    candidate = winner.candidate._replace(also=tuple(dict.fromkeys(names)))
    return Ranked(candidate, mark, winner.score)


def _other_names(winner: Candidate, other: Candidate) -> tuple[str, ...]:
    names = (other.path, *other.also)
    return tuple(name for name in names if name and name != winner.path)


def _keys(candidate: Candidate, root: str) -> tuple[list[Key], list[Key]]:
    """Return the keys a twin may be filed under, and those to file *candidate* under."""
    text = candidate.text
    if candidate.origin in {Origin.RUN, Origin.DIFF}:
        return [], []
    if candidate.origin is Origin.HISTORY:
        return ([("text", text)], [("said", text)]) if text else ([], [])
    keys: list[Key] = []
    if candidate.path is not None and candidate.kind in _MERGED_BY_PATH:
        keys.append(("path", spellings(candidate.path, root)[0]))
    if text:
        keys.append(("text", text))
    return ([*keys, ("said", text)] if text else keys), keys
