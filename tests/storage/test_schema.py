from collections.abc import AsyncIterator

import pytest

from smista.core.errors import StorageError
from smista.storage.bridge import Bridge, RowExists, Target
from smista.storage.schema import MIGRATIONS, TABLES, migrate

FIRST = "DEFINE TABLE first SCHEMALESS; CREATE first SET n = 1"
SECOND = "DEFINE TABLE second SCHEMALESS; UPDATE first SET n += 1"
BROKEN = "UPDATE first SET n = 99; THROW 'no'"


@pytest.fixture
async def bridge() -> AsyncIterator[Bridge]:
    bridge = Bridge(Target(url="mem://", namespace="test", database="test"))
    await bridge.open()
    yield bridge
    await bridge.close()


async def first(bridge: Bridge) -> list[int]:
    (values,) = await bridge.query("SELECT VALUE n FROM first", {})
    return values


async def test_all_tables_are_defined(bridge: Bridge) -> None:
    await migrate(bridge)
    (info,) = await bridge.query("INFO FOR DB", {})
    assert set(info["tables"]) == set(TABLES)
    assert len(TABLES) == 25


async def test_an_older_database_moves_forward_once(bridge: Bridge) -> None:
    await migrate(bridge, (FIRST,))
    await migrate(bridge, (FIRST, SECOND))
    await migrate(bridge, (FIRST, SECOND))
    assert await first(bridge) == [2]


async def test_a_failed_migration_leaves_the_one_before(bridge: Bridge) -> None:
    await migrate(bridge, (FIRST,))
    with pytest.raises(StorageError):
        await migrate(bridge, (FIRST, BROKEN))
    assert await first(bridge) == [1]
    await migrate(bridge, (FIRST, SECOND))
    assert await first(bridge) == [2]


async def test_a_newer_database_is_refused(bridge: Bridge) -> None:
    await migrate(bridge, (*MIGRATIONS, FIRST))
    with pytest.raises(StorageError, match="upgrade smista"):
        await migrate(bridge)


async def test_a_key_is_unique_to_its_owner_and_facts_without_one_are_not(bridge: Bridge) -> None:
    await migrate(bridge)
    for table in ("user_memory", "context_memory"):
        await bridge.query(f"CREATE {table}; CREATE {table}", {})
        await bridge.query(f"CREATE {table} SET owner_key = 'u editor'", {})
        await bridge.query(f"CREATE {table} SET owner_key = 'u shell'", {})
        with pytest.raises(RowExists):
            await bridge.query(f"CREATE {table} SET owner_key = 'u editor'", {})
