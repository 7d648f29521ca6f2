"""What a call of the memory tool does to the facts there are. Pure; the arguments are a model's.

It refuses what looks like a key, what is too long, and what goes beyond an owner's bounds, and
says so in words that the model can act on. Nothing is dropped to make room.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from unicodedata import normalize

from smista.core.facts import (
    MOST_FACTS,
    MOST_TEXT,
    SHORTEST,
    keyed_id,
    named,
    short_ids,
    text_of,
)
from smista.core.key_shapes import find_keys
from smista.core.records import MemoryRecord, MemoryScope
from smista.core.secret import Plain

MOST_VALUE: Final = 1_000
MOST_KEY: Final = 100
_TOLD: Final = 5
_NAMED: Final = re.compile(
    r"(?<![^\W_])(pass(?:word|wd|phrase|code)|secret|token|api[ _-]?key)[\"']?\s{0,4}(?::|=|\bis\b)"
    r"\s{0,4}[\"'`]?(?=[^\sA-Za-z]{0,60}[A-Za-z])(?=[^\s\d]{0,60}\d|\w{1,60}[^\w\s.,;:'\"`-])\S{6}",
    re.IGNORECASE,
)
"""A secret that somebody says by name, and something behind it that is no plain word."""
_LASTS: Final = {MemoryScope.USER: "for all of the user's sessions", MemoryScope.SESSION: "here"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose facts are meant, and what a new one of theirs gets. *id* is a user's or a session's.

    *restricted*: restricted content is in view, so what is written now may hold some of it.
    *local*: the model may be told of restricted facts.
    """

    scope: MemoryScope
    id: str
    now: datetime
    new_id: Callable[[], str]
    restricted: bool = False
    local: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What the model is told, and the one fact that was written or dropped, if any was."""

    told: str
    is_error: bool = False
    written: MemoryRecord | None = None
    dropped: MemoryRecord | None = None


def remember(
    arguments: Mapping[str, Any], facts: Sequence[MemoryRecord], owner: Owner
) -> Remembered:
    """Carry out one call on *owner*'s *facts*. *arguments* have the tool's shape."""
    operation = arguments["operation"]
    key, value = _one_line(arguments.get("key")), (arguments.get("value") or "").strip()
    problem = _problem(operation, key, value)
    if problem is not None:
        return _refused(problem)
    meant = _meant(operation, key, facts)
    if len(meant) > 1:
        return _refused(_ambiguous(key, meant, owner))
    match operation:
        case "forget":
            return _forget(key, meant)
        case "update" if not meant:
            return _refused(
                f"nothing is remembered {_LASTS[owner.scope]} under {key!r};"
                " record it, or give the id that is shown with the fact"
            )
        case _:
            return _write(key, value, meant, facts, owner)


def _meant(operation: str, key: str, facts: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    if not key:
        return []
    found = named(facts, key)
    # A new topic may happen to begin as some id does; only a whole short id means that fact.
    chance = operation == "record" and len(key) < SHORTEST
    return [fact for fact in found if fact.key == key] if chance else found


def _problem(operation: str, key: str, value: str) -> str | None:
    if not key and operation != "record":
        return f"{operation} needs the key or the id of a fact"
    if not value and operation != "forget":
        return f"{operation} needs a value: the fact in a sentence"
    if len(key) > MOST_KEY or not key.isprintable():
        return f"a key has at most {MOST_KEY} printable characters"
    if len(value) > MOST_VALUE:
        return f"a fact has at most {MOST_VALUE} characters, this has {len(value)}; say it shorter"
    kind = _secret(key, value)
    if kind is not None:
        return (
            f"this looks like it holds a secret ({kind}), and secrets are not remembered;"
            " say where it is kept instead"
        )
    return None


def _secret(key: str, value: str) -> str | None:
    """Return what kind of secret the fact looks like. A word too many does no harm here."""
    found = find_keys(value) or find_keys(key)
    if found:
        return found[0].kind
    named = _NAMED.search(value) or _NAMED.search(f"{key}: {value}")
    return None if named is None else named[1].lower()


def _write(
    key: str,
    value: str,
    meant: Sequence[MemoryRecord],
    facts: Sequence[MemoryRecord],
    owner: Owner,
) -> Remembered:
    old = meant[0] if meant else None
    others = [fact for fact in facts if fact is not old]
    same = next((fact for fact in others if text_of(fact) == value), None)
    if old is None and not key and same is not None and same.restricted is owner.restricted:
        return Remembered(told=f"already remembered ({_id_of(same, facts)})")
    full = _full(value, others, owner, new=old is None)
    if full is not None:
        return _refused(full)
    content = Plain(value)
    if old is not None:
        fact = replace(old, content=content, updated_at=owner.now, restricted=owner.restricted)
    else:
        fact = MemoryRecord(
            id=keyed_id(owner.id, key) if key else owner.new_id(),
            scope=owner.scope,
            content=content,
            key=key or None,
            created_at=owner.now,
            updated_at=owner.now,
            restricted=owner.restricted,
        )
    done = "remembered" if old is None else "changed; remembered"
    # A remote model that named a restricted fact by its id does not learn its key from us.
    name = f"under {key!r}" if key else f"id {_id_of(fact, [*others, fact])}"
    return Remembered(told=f"{done} {_LASTS[owner.scope]} ({name})", written=fact)


def _full(value: str, others: Sequence[MemoryRecord], owner: Owner, *, new: bool) -> str | None:
    most, room = MOST_FACTS[owner.scope], MOST_TEXT[owner.scope]
    if new and len(others) >= most:
        return f"there are {most} facts already, which is the most; forget or update one first"
    taken = sum(len(text_of(fact) or "") for fact in others)
    if taken + len(value) > room:
        return f"the facts may have {room} characters together, and have {taken}; forget some first"
    return None


def _forget(key: str, meant: Sequence[MemoryRecord]) -> Remembered:
    if not meant:
        return _refused(f"nothing is remembered under {key!r}, so nothing was forgotten")
    return Remembered(told="forgotten", dropped=meant[0])


def _ambiguous(key: str, meant: Sequence[MemoryRecord], owner: Owner) -> str:
    """Say which facts *key* may mean; a remote model is not told the topics of restricted ones."""
    short = short_ids(fact.id for fact in meant)
    shown = [
        f"{short[fact.id]} ({fact.key})"
        if fact.key and (owner.local or not fact.restricted)
        else short[fact.id]
        for fact in meant[:_TOLD]
    ]
    more = f" and {len(meant) - _TOLD} more" if len(meant) > _TOLD else ""
    return f"{key!r} may mean {', '.join(shown)}{more}; give more of the id"


def _id_of(fact: MemoryRecord, facts: Sequence[MemoryRecord]) -> str:
    return short_ids(each.id for each in facts)[fact.id]


def _refused(why: str) -> Remembered:
    return Remembered(told=f"memory: {why}", is_error=True)


def _one_line(key: str | None) -> str:
    return " ".join(normalize("NFC", key or "").split())
