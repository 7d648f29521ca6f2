"""Remembered facts ⇄ rows. Pure. Their keys are [owner, id], so an owner's are one range.

`owner_key` is there on keyed facts alone, and unique: the engine itself sees to it that an owner
has one fact under one key.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from smista.core.errors import StorageError
from smista.core.facts import newest_first
from smista.core.records import ForgottenFact, MemoryRecord, MemoryScope, TurnRecord
from smista.core.secret import Plain
from smista.storage.rows import Row, key, key_text, ref, row, secret_from_text, secret_text, within
from smista.storage.values import Ref

TABLES: Final = {
    MemoryScope.USER: ("user_memory", "user_memory_content"),
    MemoryScope.SESSION: ("context_memory", "context_memory_content"),
}
"""Where facts lie, and where their texts do."""


def fact_rows(record: TurnRecord) -> list[Row]:
    """Return the rows of all facts of *record*; each text comes before the row that names it."""
    return [each for fact in record.facts for each in _rows(record, fact)]


def fact_drops(record: TurnRecord) -> list[Ref]:
    """Return where the facts lie that *record* forgets."""
    return [place for fact in record.forgotten for place in _places(record, fact)]


def places(scope: MemoryScope, owner_id: str, fact_id: str) -> list[Ref]:
    """Return the addresses of a fact's row and of its text."""
    return [within(table, owner_id, fact_id) for table in TABLES[scope]]


def facts_from(
    scope: MemoryScope, bases: Iterable[Row], contents: Iterable[Row]
) -> tuple[MemoryRecord, ...]:
    """Return the facts, newest first; *contents* are in no order."""
    texts = {content["id"].key: content["content"] for content in contents}
    return newest_first(_fact_from(scope, base, texts.get(base["id"].key)) for base in bases)


def has_all_texts(bases: Iterable[Row], contents: Iterable[Row]) -> bool:
    return {base["id"].key for base in bases} <= {content["id"].key for content in contents}


def _rows(record: TurnRecord, fact: MemoryRecord) -> Sequence[Row]:
    base, content = _places(record, fact)
    if fact.scope is MemoryScope.USER:
        return _user_rows(record, fact, base, content)
    owner = {"session": ref("session", record.session_id), "user": ref("user", record.user_id)}
    return (
        row(content, content=secret_text(fact.content)),
        row(base, **owner, **_columns(fact, record.session_id)),
    )


def _user_rows(record: TurnRecord, fact: MemoryRecord, base: Ref, content: Ref) -> Sequence[Row]:
    if not isinstance(fact.content, Plain):
        raise StorageError("a user's fact cannot be sealed: its table holds plain text")
    return (
        row(content, content=fact.content.text),
        row(base, user=ref("user", record.user_id), **_columns(fact, record.user_id)),
    )


def _columns(fact: MemoryRecord, owner_id: str) -> dict[str, Any]:
    return {
        "key": fact.key,
        "owner_key": None if fact.key is None else f"{key(owner_id)} {fact.key}",
        "restricted": fact.restricted,
        "created_at": fact.created_at,
        "updated_at": fact.updated_at,
    }


def _places(record: TurnRecord, fact: MemoryRecord | ForgottenFact) -> list[Ref]:
    own = fact.scope is MemoryScope.SESSION
    return places(fact.scope, record.session_id if own else record.user_id, fact.id)


def _fact_from(scope: MemoryScope, base: Row, content: str | None) -> MemoryRecord:
    if content is None:
        raise StorageError("a remembered fact has lost its text; forget it, or restore a backup")
    sealable = secret_from_text(content) if scope is MemoryScope.SESSION else Plain(content)
    if sealable is None:
        raise StorageError("a remembered fact has lost its text; forget it, or restore a backup")
    return MemoryRecord(
        id=key_text(base["id"]),
        scope=scope,
        content=sealable,
        key=base.get("key"),
        created_at=base["created_at"],
        updated_at=base["updated_at"],
        restricted=base.get("restricted") is not False,
    )
