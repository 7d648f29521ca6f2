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
_UNIQUE: Final = frozenset({Origin.RUN, Origin.DIFF})
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
    register = _Register()
    for entry in ranked:
        candidate = entry.candidate
        if candidate.origin in _UNIQUE:
            slots.append(entry)
            continue
        said, path = candidate.origin is Origin.HISTORY, _merge_path(candidate, root)
        twins = register.twins(candidate.text, path, said=said)
        home = min(twins) if twins else len(slots)
        if twins:
            _join(slots, twins, home, entry)
            register.move(twins, home)
        else:
            slots.append(entry)
        register.file(candidate.text, path, home, said=said)
    return [slot for slot in slots if slot is not None]


class _Register:
    """Says under which slots the twins of a candidate are, by path and by content."""

    def __init__(self) -> None:
        self._paths: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._said: dict[str, int] = {}
        self._moved: dict[int, int] = {}

    def twins(self, text: str, path: str, *, said: bool) -> set[int]:
        tables = [(self._texts, text)]
        if not said:
            tables += [(self._said, text), (self._paths, path)]
        return {self._home(table[key]) for table, key in tables if key in table}

    def file(self, text: str, path: str, slot: int, *, said: bool) -> None:
        if text:
            (self._said if said else self._texts)[text] = slot
        if path:
            self._paths[path] = slot

    def move(self, slots: set[int], home: int) -> None:
        # Noted once and followed later: to rewrite the tables would cost all that is in them.
        self._moved |= dict.fromkeys(slots - {home}, home)

    def _home(self, slot: int) -> int:
        home = slot
        while home in self._moved:
            home = self._moved[home]
        if home != slot:
            self._moved[slot] = home
        return home


def _merge_path(candidate: Candidate, root: str) -> str:
    if candidate.path is None or candidate.kind not in _MERGED_BY_PATH:
        return ""
    return spellings(candidate.path, root)[0]


def _join(slots: list[Ranked | None], twins: set[int], home: int, entry: Ranked) -> None:
    for slot in sorted(twins, reverse=True):
        other = slots[slot]
        slots[slot] = None
        entry = entry if other is None else _better(other, entry)
    slots[home] = entry


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
