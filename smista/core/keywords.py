"""Keyword matching: whole words, exactly first, then within a fixed number of typing errors."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import OSA

_WORD: Final = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Return the lower-case alphanumeric runs of *text*, in order."""
    return _WORD.findall(text.lower())


def allowed_edits(keyword: str) -> int:
    """Return how many typing errors *keyword* forgives: its own length decides."""
    return 0 if len(keyword) <= 4 else 1 if len(keyword) <= 8 else 2


@dataclass(frozen=True, slots=True)
class Hit:
    """A keyword that was found; *typo* is the word that stands for it, None if it is exact."""

    keyword: str
    typo: str | None = None


class Wording:
    """The words of one prompt, arranged for look-ups. Built once a turn, never changed."""

    def __init__(self, text: str) -> None:
        self._words = words(text)
        self._distinct = dict.fromkeys(self._words)
        self._line = f" {' '.join(self._words)} "
        self._by_length: Mapping[int, Sequence[str]] = _bucketed(self._distinct)

    def find(self, keywords: tuple[str, ...]) -> Hit | None:
        """Return the first keyword that occurs: all exactly, in order, and only then fuzzily."""
        pairs = [(keyword, _keyword_words(keyword)) for keyword in keywords]
        for keyword, parts in pairs:
            if self._holds(parts):
                return Hit(keyword)
        for keyword, parts in pairs:
            if len(parts) == 1 and (typo := self._typo(parts[0])) is not None:
                return Hit(keyword, typo)
        return None

    def _holds(self, parts: tuple[str, ...]) -> bool:
        if len(parts) == 1:
            return parts[0] in self._distinct
        return bool(parts) and f" {' '.join(parts)} " in self._line

    def _typo(self, keyword: str) -> str | None:
        edits = allowed_edits(keyword)
        if not edits:
            return None
        near = [
            word
            for length in range(len(keyword) - edits, len(keyword) + edits + 1)
            for word in self._by_length.get(length, ())
        ]
        close = process.extract(keyword, near, scorer=OSA.distance, score_cutoff=edits, limit=None)
        # A word inside the other is a different word: `preview` is no slip for `review`.
        typos = [(d, i, w) for w, d, i in close if keyword not in w and w not in keyword]
        return min(typos)[2] if typos else None


@lru_cache(maxsize=4096)  # a policy's keywords come back with every turn; text in, words out
def _keyword_words(keyword: str) -> tuple[str, ...]:
    return tuple(words(keyword))


def _bucketed(distinct: Iterable[str]) -> dict[int, list[str]]:
    buckets: dict[int, list[str]] = {}
    for word in distinct:
        buckets.setdefault(len(word), []).append(word)
    return buckets
