"""The two journals that keep one contract, and a look at their rows."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from smista.storage.bridge import Target
from smista.storage.memory import MemoryJournal
from smista.storage.rows import Row
from smista.storage.schema import TABLES
from smista.storage.store import open_plain_store
from smista.storage.surreal import SurrealJournal
from smista.storage.values import Ref


@dataclass(frozen=True)
class Kept:
    """A journal, and a look at how many rows each table holds."""

    journal: Any
    counts: Callable[[], Awaitable[dict[str, int]]]


@asynccontextmanager
async def in_memory() -> AsyncIterator[Kept]:
    rows: dict[Ref, Row] = {}

    async def counts() -> dict[str, int]:
        return dict(Counter(ref.table for ref in rows))

    yield Kept(MemoryJournal(rows), counts)


@asynccontextmanager
async def on_surreal() -> AsyncIterator[Kept]:
    target = Target(url="mem://", namespace="test", database="test")
    async with open_plain_store(target) as store:

        async def counts() -> dict[str, int]:
            found: dict[str, int] = {}
            for table in set(TABLES) - {"schema_meta"}:
                ((row,),) = await store.read(f"SELECT count() FROM {table} GROUP ALL")
                found |= {table: row["count"]} if row["count"] else {}
            return found

        yield Kept(SurrealJournal(store), counts)


STORES = {"memory": in_memory, "surreal": on_surreal}
