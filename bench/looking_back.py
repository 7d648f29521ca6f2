"""What it costs to look back: a page of a long trace, its usage, and the usage of all sessions.

Measured twice on the disk: with the one session of 10,000 events, and among ten times as many.
`python -m bench.looking_back --events 1000000` measures among more.
"""

import argparse
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import trio

from bench.figures import Figure, in_turns, table
from bench.storage import plain_turn
from smista.core.ids import new_uuid7
from smista.core.records import EventType, Session
from smista.core.session_copy import as_new
from smista.core.usage import UsageBy, UsageQuery
from smista.front.replies import json_reply
from smista.front.views import spending_view, trace_view, usage_view
from smista.ports.journal import Journal
from smista.storage.surreal import open_surreal

EVENTS: Final = 10_000
MORE: Final = 100_000
ROUNDS: Final = 40
PAGE: Final = 50
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MS: Final = int(_AT.timestamp() * 1000)
_USERS: Final = 10
"""Among how many users the sessions are: usage over all is that of one of them."""


async def measure(events: int = MORE) -> list[Figure]:
    """Return a page and the sums of a session of 10,000 events, alone and among *events*."""
    async with _filled() as (journal, session):
        alone = await _looks(journal, session)
        await _add(journal, session, events // EVENTS - 1)
        among = await _looks(journal, session)
    name = f"among {events:,} events"
    aims = {"trace page": 50.0, "usage": 100.0}
    return [
        *(Figure(name=what, samples=alone[what], at_most=aims.get(what)) for what in alone),
        *(
            Figure(
                name=f"{what}, {name}",
                samples=among[what],
                baseline=alone[what],
                at_most=aims.get(what),
            )
            for what in among
        ),
    ]


@asynccontextmanager
async def _filled() -> AsyncGenerator[tuple[Journal, Session]]:
    with tempfile.TemporaryDirectory(prefix="smista-bench-") as place:
        async with open_surreal(str(Path(place, "db"))) as journal:
            session = _session(0)
            await journal.create_session(session)
            for turn in range(-(-EVENTS // len(EventType))):
                record = replace(plain_turn(session, turn), input=None)
                await journal.record_turn(record)
            yield journal, session


def _session(number: int) -> Session:
    return Session(
        id=new_uuid7(_MS, 1 + number),
        user_id=new_uuid7(_MS, 2**40 + number % _USERS),
        title="looked back at",
        created_at=_AT,
        updated_at=_AT,
    )


async def _add(journal: Journal, session: Session, count: int) -> None:
    copy = await journal.read_out(session)
    for number in range(1, count + 1):
        await journal.take_in(as_new(copy, _session(number)))


async def _looks(journal: Journal, session: Session) -> dict[str, list[float]]:
    async def page() -> None:
        events = await journal.trace(session.id, offset=EVENTS - PAGE, limit=PAGE)
        json_reply(trace_view(session.id, events))

    async def usage() -> None:
        json_reply(usage_view(await journal.usage(session.id)))

    async def spending() -> None:
        sums = await journal.spending(session.user_id, UsageQuery(by=UsageBy.DAY))
        json_reply(spending_view(UsageBy.DAY, sums))

    looks = {"trace page": page, "usage": usage, "usage of all sessions": spending}
    return await in_turns(ROUNDS, looks)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="looking_back", description=__doc__)
    parser.add_argument("--events", type=int, default=MORE)
    asked = parser.parse_args(arguments)
    figures = trio.run(partial(measure, asked.events))
    print(table(figures))
    return 1 if any(figure.missed for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
