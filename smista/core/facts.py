"""Remembered facts by name: their ids, how a short one is told and understood, what is recalled.

Pure. A fact is named by its key, by its whole id, or by the beginning of its handle.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from smista.core.envelopes import content_size
from smista.core.ids import new_uuid7, run_ms
from smista.core.records import MemoryRecord, MemoryScope
from smista.core.secret import Envelope, Opened, Plain, Sealed
from smista.core.snapshot import Fact

MOST_FACTS: Final[Mapping[MemoryScope, int]] = {MemoryScope.USER: 200, MemoryScope.SESSION: 100}
MOST_TEXT: Final[Mapping[MemoryScope, int]] = {
    MemoryScope.USER: 40_000,
    MemoryScope.SESSION: 20_000,
}
"""How many facts, and how many characters of them together, one owner may have."""

_HANDLE: Final = 10
SHORTEST: Final = 6
_LEAST: Final = 4
_HEX: Final = frozenset("0123456789abcdef")


def keyed_id(owner_id: str, key: str) -> str:
    """Return the id of the fact that *owner_id* (a UUIDv7) has under *key*.

    It is always the same, so that two who write under one key at once write one row.
    """
    digest = sha256(f"{owner_id}\0{key}".encode("utf-8", "replace")).digest()
    return new_uuid7(run_ms(owner_id), int.from_bytes(digest[:10], "big") >> 6)


def handle(fact_id: str) -> str:
    """Return the part of an id that tells facts apart: the rest is the time of its making."""
    return fact_id.replace("-", "")[-_HANDLE:]


def short_ids(facts: Iterable[str]) -> dict[str, str]:
    """Return for each id the shortest beginning of its handle that means no other of them."""
    handles = {fact: handle(fact) for fact in facts}
    ordered = sorted(handles.values())
    lengths: dict[str, int] = {}
    for place, own in enumerate(ordered):
        beside = ordered[max(0, place - 1) : place] + ordered[place + 1 : place + 2]
        shared = max((_shared(own, other) for other in beside), default=0)
        lengths[own] = min(max(SHORTEST, shared + 1), _HANDLE)
    return {fact: own[: lengths[own]] for fact, own in handles.items()}


def named(facts: Iterable[MemoryRecord], name: str) -> list[MemoryRecord]:
    """Return the facts that *name* may mean: one if it is clear, several if it is not.

    A key comes before an id, and a whole id before the beginning of a handle.
    """
    known = list(facts)
    wanted = name.strip().lower()
    found = [fact for fact in known if fact.key == name] or [f for f in known if f.id == wanted]
    if found or len(wanted) < _LEAST or not _HEX.issuperset(wanted):
        return found
    return [fact for fact in known if handle(fact.id).startswith(wanted)]


def newest_first(facts: Iterable[MemoryRecord]) -> tuple[MemoryRecord, ...]:
    return tuple(sorted(facts, key=lambda fact: (fact.updated_at, fact.id), reverse=True))


def recalled(facts: Iterable[MemoryRecord]) -> tuple[Fact, ...]:
    """Return what may go into a prompt, newest first, each owner's within its bounds.

    A sealed fact counts as what its ciphertext says, opened or not.
    """
    kept: list[MemoryRecord] = []
    counts = dict.fromkeys(MemoryScope, 0)
    sizes = dict.fromkeys(MemoryScope, 0)
    for fact in newest_first(facts):
        length = _length(fact)
        # Routers that share a store may together write more than one of them would let in.
        full = counts[fact.scope] >= MOST_FACTS[fact.scope]
        if full or sizes[fact.scope] + length > MOST_TEXT[fact.scope]:
            continue
        counts[fact.scope] += 1
        sizes[fact.scope] += length
        kept.append(fact)
    return _facts(kept)


def _facts(kept: Sequence[MemoryRecord]) -> tuple[Fact, ...]:
    short = short_ids(fact.id for fact in kept)
    return tuple(
        Fact(
            id=fact.id,
            scope=fact.scope.value,
            text=text_of(fact) or "",
            key=fact.key,
            restricted=fact.restricted,
            short=short[fact.id],
            sealed=envelope_of(fact),
        )
        for fact in kept
    )


def _length(fact: MemoryRecord) -> int:
    envelope = envelope_of(fact)
    return len(text_of(fact) or "") if envelope is None else content_size(envelope)


def envelope_of(fact: MemoryRecord) -> Envelope | None:
    """Return what storage holds of a fact that is sealed."""
    return fact.content.envelope if isinstance(fact.content, Sealed | Opened) else None


def text_of(fact: MemoryRecord) -> str | None:
    """Return what the fact says, None if it is sealed."""
    return fact.content.text if isinstance(fact.content, Plain) else None


def _shared(one: str, other: str) -> int:
    """Return how many characters two handles have in common at their beginning."""
    pairs = zip(one, other, strict=True)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), len(one))
