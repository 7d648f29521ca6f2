"""The tables, as numbered migrations in text that servers of either major version understand.

Columns are not declared: the engine would drop unknown ones silently or refuse them, depending on
its version. rows.py and its neighbours say what each row holds, docs/storage.md why.
"""

from collections.abc import Sequence
from typing import Final

from smista.core.errors import StorageError
from smista.storage.bridge import Bridge
from smista.storage.rows import INPUT
from smista.storage.values import Ref

VERSION: Final = Ref("schema_meta", "version")
VACUUM: Final = Ref("schema_meta", "vacuum")
"""`wanted`: what was deleted is still in the log; `tried`: its size when a copy took too long."""

RANGED: Final = (
    "session_message",
    "session_message_content",
    "session_context_reference",
    "trace_event",
    "trace_event_content",
    "session_routing_decision",
    "session_approval",
    "session_tool_call",
    "session_tool_call_content",
    "session_diff",
    "session_diff_content",
    "session_plan",
    "session_plan_content",
    "context_memory",
    "context_memory_content",
    "idempotency_record",
)
"""Tables whose keys begin with the session: [session, position] or [session, …, id]."""

KEYED: Final = (*INPUT, "session_run_state")
"""Tables with at most one row a session, under the session's own key."""

UNOWNED: Final = ("user", "auth_token", "session", "user_memory", "user_memory_content")
"""Tables with keys of their own."""

TABLES: Final = (
    *UNOWNED,
    *RANGED,
    *KEYED,
    "schema_meta",
)


def _tables(names: Sequence[str]) -> str:
    return ";".join(f"DEFINE TABLE IF NOT EXISTS {name} SCHEMALESS" for name in names)


def _index(table: str, column: str) -> str:
    kind = " UNIQUE" if column == _OWNER_KEY else ""
    return f"DEFINE INDEX IF NOT EXISTS {table}_{column} ON {table} FIELDS {column}{kind}"


# Owner and key of a keyed fact in one column: an index over two would count a missing key as one.
_OWNER_KEY: Final = "owner_key"

INDEXES: Final = (
    ("session", "user"),
    ("user_memory", "user"),
    ("user_memory", _OWNER_KEY),
    ("context_memory", _OWNER_KEY),
)

MIGRATIONS: Final = (
    ";".join((_tables(TABLES), *(_index(table, column) for table, column in INDEXES))),
)


async def migrate(bridge: Bridge, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring the database forward to the last of *migrations*; raises StorageError if it is newer.

    Each one commits together with its number, so a crash in between repeats nothing.
    """
    found = await _number(bridge)
    if found > len(migrations):
        raise StorageError(
            f"this database has schema {found}, this smista knows {len(migrations)}; upgrade smista"
        )
    for number, text in enumerate(migrations[found:], found + 1):
        stamp = "UPSERT $version CONTENT { number: $number } RETURN NONE"
        values = {"version": VERSION, "number": number}
        await bridge.query(f"BEGIN;{text};{stamp};COMMIT;", values)


async def _number(bridge: Bridge) -> int:
    await bridge.query("DEFINE TABLE IF NOT EXISTS schema_meta SCHEMALESS", {})
    rows = (await bridge.query("SELECT * FROM $version", {"version": VERSION}))[0]
    return int(rows[0]["number"]) if rows else 0
