"""A database that an older smista wrote is opened, and everything in it is found.

`old/version_1.json` holds the first migration and rows of every kind as that version wrote them.
A version that was released stays as it is: what follows it is a migration of its own.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from smista.core.errors import StorageError
from smista.core.phase import Idle
from smista.core.records import CallStatus, MemoryRecord, MemoryScope
from smista.core.secret import Plain
from smista.core.usage import UsageQuery
from smista.storage.bridge import Bridge, Target
from smista.storage.schema import MIGRATIONS, TABLES, VERSION, migrate
from smista.storage.store import open_plain_store
from smista.storage.surreal import SurrealJournal
from smista.storage.values import Ref
from tests.contract.builders import AT, USER, id_of, request_of, said, turn

OLD = json.loads((Path(__file__).parent / "old" / "version_1.json").read_text("utf-8"))
SESSION = id_of(10)
BROKEN = "DELETE session; REMOVE TABLE session_message; THROW 'no'"


def _value(stored: Any) -> Any:
    match stored:
        case {"ref": [table, key]}:
            return Ref(table, tuple(k) if isinstance(k := _value(key), list) else k)
        case {"uuid": text}:
            return UUID(text)
        case {"time": text}:
            return datetime.fromisoformat(text)
        case {"decimal": text}:
            return Decimal(text)
        case {"object": members}:
            return {name: _value(each) for name, each in members.items()}
        case list():
            return [_value(each) for each in stored]
        case _:
            return stored


async def _write_old(bridge: Bridge) -> None:
    """Make the database as version 1 made it, with the rows it wrote."""
    stamp = "UPSERT $version CONTENT { number: 1 }"
    await bridge.query(f"{OLD['migration']};{stamp}", {"version": VERSION})
    for row in map(_value, OLD["rows"]):
        await bridge.query("INSERT INTO " + row["id"].table + " $rows", {"rows": [row]})


@pytest.fixture
async def old() -> AsyncIterator[Bridge]:
    bridge = Bridge(Target(url="mem://", namespace="test", database="test"))
    await bridge.open()
    await _write_old(bridge)
    yield bridge
    await bridge.close()


@asynccontextmanager
async def served(bridge: Bridge) -> AsyncIterator[SurrealJournal]:
    """Serve what is in *bridge*, brought forward, by a copy of it in a store of its own."""
    await migrate(bridge)
    rows = {name: (await bridge.query(f"SELECT * FROM {name}", {}))[0] for name in TABLES}
    target = Target(url="mem://", namespace="test", database="served")
    async with open_plain_store(target) as store:
        for name, found in rows.items():
            if name != "schema_meta" and found:
                await store.change(f"INSERT INTO {name} $rows", rows=found)
        yield SurrealJournal(store)


def test_the_old_rows_are_of_every_kind() -> None:
    tables = {row["object"]["id"]["ref"][0] for row in OLD["rows"]}
    # That version wrote no facts.
    facts = {"user_memory", "user_memory_content", "context_memory", "context_memory_content"}
    assert tables == set(TABLES) - facts - {"schema_meta"}


def test_a_released_migration_is_never_changed() -> None:
    assert MIGRATIONS[0] == OLD["migration"]


async def test_everything_is_found_after_moving_forward(old: Bridge) -> None:
    async with served(old) as journal:
        assert (await journal.user(USER)).api_key_hash == "h"
        assert (await journal.token(id_of(5))).token_hash == "t"
        (session,) = await journal.sessions(USER, scope="/p")
        state = await journal.load(session)
        assert [m.text for m in state.messages] == ["do it", "reading", "pass", "more", "half"]
        assert state.run.phase == Idle()
        assert state.messages[-1].interrupted
        assert state.input.request == request_of("do it")
        (call,) = state.calls.values()
        assert (call.status, call.result, call.masked, call.format) == (
            CallStatus.COMPLETED,
            Plain("pass"),
            (),
            None,
        )
        assert state.diffs[call.id].body == Plain("+x")
        assert state.plan.content == Plain("1. look")
        assert state.disclosed == {"openai"}
        assert [each.key for each in state.answered] == ["again"]
        assert state.facts == ()
        assert len(await journal.trace(SESSION)) == 4
        (used,) = await journal.usage(SESSION)
        assert (used.requests, used.input_tokens, used.cost) == (2, 3, "0.35")
        (spent,) = await journal.spending(USER, UsageQuery())
        assert (spent.group, spent.cost) == (("ollama", "m"), "0.35")
        copy = await journal.read_out(session)
        assert (len(copy.messages), len(copy.routing), len(copy.approvals)) == (4, 1, 2)


async def test_work_goes_on_in_it_and_is_deleted_whole(old: Bridge) -> None:
    async with served(old) as journal:
        session = await journal.session(USER, SESSION)
        fact = MemoryRecord(
            id=id_of(700),
            scope=MemoryScope.SESSION,
            content=Plain("tabs"),
            created_at=AT,
            updated_at=AT,
        )
        await journal.record_turn(
            turn(session, messages=(said(4, "user", "and on"),), facts=(fact,), drop_input=True)
        )
        state = await journal.load(session)
        assert state.messages[-1].text == "and on"
        assert state.facts == (fact,)
        await journal.delete_session(SESSION)
        assert await journal.sessions(USER) == ()
        assert await journal.trace(SESSION) == ()


async def test_a_migration_that_fails_leaves_the_old_version_usable(old: Bridge) -> None:
    with pytest.raises(StorageError):
        await migrate(old, (*MIGRATIONS, BROKEN))
    (stamp,) = (await old.query("SELECT * FROM $version", {"version": VERSION}))[0]
    assert stamp["number"] == len(MIGRATIONS)
    async with served(old) as journal:
        (session,) = await journal.sessions(USER)
        assert len((await journal.load(session)).messages) == 5
