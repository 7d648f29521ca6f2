"""Values ⇄ rows of users, tokens and sessions, and the pieces all rows share. Pure.

A row is a dict of columns; an absent column is an absent value. Nested payloads are
JSON text: the engine reads and writes text several times faster than objects.
"""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from smista.core.errors import StorageError
from smista.core.records import AuthToken, Session, User
from smista.core.secret import Envelope, Opened, Plain, Sealed, SecretContent
from smista.storage.values import MAX_DEPTH, Key, Ref, Unstorable, clean, clean_text

Row = Mapping[str, Any]

INPUT: Final = ("session_run_input", "session_run_input_content")
"""Tables of what a run was started with: one row a session, while the run is live."""

encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_DIGITS: Final = bytes(byte in b"0123456789" for byte in range(256))
_LONG_NUMBER: Final = b"\1" * 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Rows that commit together.

    *inserts* are new rows by table, merged with those of other units; *puts* are written over what
    is there, in order and after the inserts, so the last one makes the unit exist. *session*, if
    given, must exist and gets *touched* as its `updated_at` just before that last put. *drops* are
    deleted at the very end: what a half-written unit still needs must not be gone. *lease*, if
    given, is what the row of that last put must hold as its `lease` before.
    """

    inserts: Mapping[str, Sequence[Row]] = field(default_factory=dict[str, Sequence[Row]])
    puts: Sequence[Row] = ()
    drops: Sequence[Ref] = ()
    session: Ref | None = None
    touched: datetime | None = None
    lease: int | None = None


# Few, on purpose: a kept key holds the megabyte of memory that was filled around it, and a crowd
# of sessions that went to sleep would leave as many of them as there are keys.
@lru_cache(maxsize=256)
def key(text: str) -> UUID | str:
    """Return the key that *text* names: a UUID where it is one."""
    try:
        return UUID(text)
    except ValueError:
        return text


def ref(table: str, text: str) -> Ref:
    return Ref(table, key(text))


def within(table: str, session_id: str, *path: str) -> Ref:
    """Return the address of a row of a session, so that they lie together: [session, …, id]."""
    *kinds, text = path
    return Ref(table, (key(session_id), *map(clean_text, kinds), key(text)))


def row(address: Ref, /, **columns: Any) -> dict[str, Any]:
    """Return the cleaned row at *address*; None is left out."""
    present = {k: clean(v) for k, v in columns.items() if v is not None}
    return {"id": address, **present}


def json_text(value: Any) -> str:
    """Return *value* as compact JSON; raises Unstorable.

    Cleaning walks in Python, encoding does not: so the text is looked at, and only what looks
    doubtful is cleaned and encoded again.
    """
    try:
        text = encode(value)
        if not _doubtful(text):
            return text
    except (TypeError, ValueError, RecursionError):
        pass  # clean() knows more kinds, and says which one it refuses
    try:
        return encode(clean(value))
    except TypeError as error:
        raise Unstorable(f"a value cannot be stored as JSON: {error}") from None


def _doubtful(text: str) -> bool:
    """Say if *text* may hold a NUL, a lone surrogate, an integer beyond 64 bits, or be deep."""
    # A table and a search are ten times as fast as a pattern, and every stored payload comes here.
    if "\\u0000" in text or _LONG_NUMBER in text.encode("utf-8", "replace").translate(_DIGITS):
        return True
    return clean_text(text) is not text or text.count("[") + text.count("{") > MAX_DEPTH


@contextmanager
def reading(what: str) -> Generator[None]:
    """Tell rows that make no sense as StorageError: damaged, or written by a newer smista."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(
            f"the {what} as stored cannot be read ({type(error).__name__}); "
            "upgrade smista or restore a backup"
        ) from error


def by_table(rows: Iterable[Row]) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    for each in rows:
        tables.setdefault(each["id"].table, []).append(each)
    return tables


def secret_object(content: SecretContent) -> dict[str, Any]:
    """Return the schema's object for *content*."""
    match content:
        case Sealed(envelope) | Opened(envelope=envelope):
            return {"Encrypted": envelope.model_dump()}
        case Plain(text):
            return {"Plaintext": text}


def secret_text(content: SecretContent | None) -> str | None:
    match content:
        case None:
            return None
        case Sealed() | Opened():
            return json_text(secret_object(content))
        case Plain(text):
            return encode({"Plaintext": clean_text(text)})


def secret_from(stored: Mapping[str, Any]) -> SecretContent:
    match stored:
        case {"Plaintext": str(text)}:
            return Plain(text)
        case {"Encrypted": envelope}:
            return Sealed(Envelope.model_validate(envelope))
        case _:
            raise StorageError("stored content is damaged; restore a backup")


def secret_from_text(text: str | None) -> SecretContent | None:
    return None if text is None else secret_from(json.loads(text))


def key_text(address: Ref) -> str:
    """Return the row's own id: of a key of several parts, the last one."""
    own = address.key[-1] if isinstance(address.key, tuple) else address.key
    return str(own)


def user_row(user: User) -> dict[str, Any]:
    return row(
        ref("user", user.id),
        api_key_hash=user.api_key_hash,
        created_at=user.created_at,
        updated_at=user.updated_at,
        disabled_at=user.disabled_at,
    )


def user_from(stored: Row) -> User:
    return User(
        id=key_text(stored["id"]),
        api_key_hash=stored["api_key_hash"],
        created_at=stored["created_at"],
        updated_at=stored["updated_at"],
        disabled_at=stored.get("disabled_at"),
    )


def token_row(token: AuthToken) -> dict[str, Any]:
    return row(
        ref("auth_token", token.id),
        user=ref("user", token.user_id),
        token_hash=token.token_hash,
        created_at=token.created_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
    )


def token_from(stored: Row) -> AuthToken:
    return AuthToken(
        id=key_text(stored["id"]),
        user_id=key_text(stored["user"]),
        token_hash=stored["token_hash"],
        created_at=stored["created_at"],
        expires_at=stored["expires_at"],
        revoked_at=stored.get("revoked_at"),
    )


def session_row(session: Session) -> dict[str, Any]:
    return row(
        ref("session", session.id),
        user=ref("user", session.user_id),
        title=session.title,
        scope=session.scope,
        encrypted=session.encrypted,
        key_id=session.key_id,
        created_at=session.created_at,
        updated_at=session.updated_at,
        archived_at=session.archived_at,
    )


def session_from(stored: Row) -> Session:
    return Session(
        id=key_text(stored["id"]),
        user_id=key_text(stored["user"]),
        title=stored.get("title"),
        scope=stored.get("scope"),
        key_id=stored.get("key_id"),
        created_at=stored["created_at"],
        updated_at=stored["updated_at"],
        archived_at=stored.get("archived_at"),
    )


def place(session: UUID | str, n: int) -> Key:
    """Return the key of position *n* in *session*: positions sort, so pages are bounded ranges."""
    return (session, n)
