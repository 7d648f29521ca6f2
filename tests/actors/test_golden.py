"""Every path once: what the trace tells and what every table holds, row by row.

`GOLDEN=write` writes what is found in the place of what is expected; read the change then.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from smista.core.events import Status
from smista.core.records import EventType, TraceEvent
from smista.storage.memory import MemoryJournal
from smista.storage.schema import TABLES
from smista.storage.values import Ref
from tests.actors.all_paths import FAR_SAYS, MODELS, NEAR_SAYS, play, providers
from tests.actors.house import USER, open_quick
from tests.contract.stores import on_surreal
from tests.fakes import Stall

_USERS = ("user", "user_memory", "user_memory_content")
"""Tables whose rows outlive every session."""
GOLDEN = Path(__file__).parent / "golden"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"2026-01-01T00:00:00\.[0-9]{6}(?:\+00:00|Z)")
_SHORT = re.compile(r"\(id [0-9a-f]{6,}\)")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


class Names:
    """Gives ids, times and digests names by the order in which they are met."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._counted: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        for kind, pattern in (("id", _ID), ("digest", _DIGEST)):
            text = pattern.sub(lambda found, kind=kind: self._name(kind, found[0]), text)
        return _SHORT.sub("(id <short>)", _TIME.sub("<time>", text))

    def _name(self, kind: str, text: str) -> str:
        if text not in self._given:
            self._counted[kind] += 1
            self._given[text] = f"<{kind} {self._counted[kind]}>"
        return self._given[text]


def _plain(value: Any) -> Any:
    match value:
        case Ref():
            return f"{value.table}:{_plain(value.key)}"
        case UUID() | Decimal():
            return str(value)
        case datetime():
            return value.isoformat(timespec="microseconds")
        case tuple() | list():
            return [_plain(each) for each in value]
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case _:
            return value


def _lines(rows: Iterable[Mapping[str, Any]], names: Names) -> list[str]:
    return [names(json.dumps(_plain(row), ensure_ascii=False)) for row in rows]


def _dump(rows: Mapping[Ref, Mapping[str, Any]]) -> str:
    names = Names()
    parts: list[str] = []
    for table in TABLES:
        found = [row for address, row in rows.items() if address.table == table]
        parts += [f"== {table}: {len(found)}", *_lines(found, names)]
    return "\n".join(parts) + "\n"


def _same_as(name: str, text: str) -> None:
    file = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text.splitlines() == file.read_text(encoding="utf-8").splitlines()


async def _played(rows):
    """Play every path on *rows*; return how the runs ended and what the trace of each tells."""
    stall = Stall()
    far, near = providers(stall)
    async with open_quick(far, near, models=MODELS, journal=MemoryJournal(rows)) as house:
        ends = await play(house, stall)
        sessions = sorted(await house.journal.sessions(USER), key=lambda each: each.id)
        traces = {each.title: await house.journal.trace(each.id, limit=999) for each in sessions}
    assert (len(far.prompts), len(near.prompts)) == (len(FAR_SAYS), len(NEAR_SAYS))
    return ends, traces


async def test_every_path_leaves_the_rows_and_events_it_should():
    rows: dict[Ref, Any] = {}
    ends, traces = await _played(rows)
    assert {name: end for name, end in ends.items() if end is not Status.COMPLETED} == {
        "a break": Status.IDLE,
        "a failure": Status.ERROR,
        "a ceiling kept": Status.IDLE,
        "no route": Status.ERROR,
    }
    assert {event.event_type for events in traces.values() for event in events} == set(EventType)
    names = Names()
    parts: list[str] = []
    for title, events in traces.items():
        parts += [f"== {title}", *_lines(map(_told, events), names)]
    _same_as("trace.jsonl", "\n".join(parts) + "\n")
    _same_as("tables.jsonl", _dump(rows))


def _told(event: TraceEvent) -> dict[str, Any]:
    return {
        "event": event.event_type,
        "task": event.task_type,
        "model": f"{event.provider}/{event.model}",
        "rule": event.matched_rule,
        "payload": event.payload,
    }


async def test_no_table_is_left_out_and_no_key_is_stored():
    rows: dict[Ref, Any] = {}
    await _played(rows)
    empty = set(TABLES) - {address.table for address in rows}
    # Only a live run has an input; tokens are the front's; the number is the store's.
    assert empty == {
        "auth_token",
        "session_run_input",
        "session_run_input_content",
        "schema_meta",
    }
    assert "ghp_" not in str(rows)


async def test_a_deleted_session_leaves_no_row_and_the_users_memory_stays():
    rows: dict[Ref, Any] = {}
    await _played(rows)
    kept = {address: row for address, row in rows.items() if address.table in _USERS}
    async with open_quick(models=MODELS, journal=MemoryJournal(rows)) as house:
        for session in await house.journal.sessions(USER):
            others = {address for address in rows if session.id not in str(address)}
            await house.directory.delete(USER, session.id)
            assert session.id not in str(rows)
            assert set(rows) == {address for address in others if session.id not in str(address)}
    assert rows == kept


async def test_in_the_engine_too_nothing_of_a_deleted_session_is_left():
    stall = Stall()
    far, near = providers(stall)
    async with (
        on_surreal() as store,
        open_quick(far, near, models=MODELS, journal=store.journal) as house,
    ):
        ends = await play(house, stall)
        before = await store.counts()
        for session in await store.journal.sessions(USER):
            await house.directory.delete(USER, session.id)
        after = await store.counts()
    assert before["session"] == len(ends) + 1
    assert after == {name: before[name] for name in _USERS}
