"""What a commit and a load cost: on the disk, synced, beside a bare append that is synced too."""

import os
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import trio

from bench.figures import Figure, in_turns
from bench.house import execute_body
from smista.core.ids import new_uuid7, row_id
from smista.core.intents import TaskIntent
from smista.core.records import (
    ContextReference,
    EventType,
    RoutingRecord,
    RunInput,
    RunState,
    Session,
    StoredMessage,
    TraceEvent,
    TurnRecord,
)
from smista.core.request import ExecuteRequest
from smista.core.secret import Plain
from smista.ports.journal import Journal
from smista.storage.surreal import open_surreal

ROUNDS = 150
CALLERS = 16
BATCHES = 6
EACH = 10
_PAGE = 4096
_AT = datetime(2026, 1, 1, tzinfo=UTC)
_MS = int(_AT.timestamp() * 1000)
_MODEL = ("openai-compat:bench", "demo")
_REQUEST = ExecuteRequest.model_validate(execute_body("go on"))


async def measure() -> list[Figure]:
    """Return commits of one caller and of sixteen, and the load of a session of forty messages."""
    with tempfile.TemporaryDirectory(prefix="smista-bench-") as place:
        store = str(Path(place, "db"))
        with open(Path(place, "log"), "ab", buffering=0) as log:  # noqa: ASYNC230
            async with open_surreal(store) as journal:
                alone = await in_turns(
                    ROUNDS,
                    {
                        "append": partial(_append, log.fileno()),
                        "commit": (await _caller(journal, 0)).commit,
                    },
                )
                rates = [await _rate(journal, batch) for batch in range(BATCHES)]
                loads = await _loads(journal)
    return [
        Figure(name="append and fsync of 4 KiB", samples=alone["append"]),
        Figure(name="commit of a turn", samples=alone["commit"], baseline=alone["append"]),
        Figure(name=f"commits, {CALLERS} callers", samples=rates, unit="turns/s"),
        Figure(name="load of a session, 40 messages", samples=loads),
    ]


class _Caller:
    """Commits one plain turn after the other into one session."""

    def __init__(self, journal: Journal, session: Session) -> None:
        self._journal = journal
        self.session = session
        self._turns = 0

    async def commit(self) -> None:
        await self._journal.record_turn(plain_turn(self.session, self._turns))
        self._turns += 1


async def _append(file: int) -> None:
    os.write(file, bytes(_PAGE))
    os.fsync(file)


async def _caller(journal: Journal, number: int) -> _Caller:
    owner = new_uuid7(_MS, 1)
    session = Session(
        id=new_uuid7(_MS, 1000 + number), user_id=owner, title="b", created_at=_AT, updated_at=_AT
    )
    await journal.create_session(session)
    return _Caller(journal, session)


async def _rate(journal: Journal, batch: int) -> float:
    callers = [await _caller(journal, 1 + batch * CALLERS + n) for n in range(CALLERS)]

    async def commit(caller: _Caller) -> None:
        for _ in range(EACH):
            await caller.commit()

    begun = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for caller in callers:
            nursery.start_soon(commit, caller)
    return CALLERS * EACH / (time.perf_counter() - begun)


async def _loads(journal: Journal) -> list[float]:
    caller = await _caller(journal, 100_000)
    for _ in range(20):
        await caller.commit()
    samples = await in_turns(ROUNDS, {"load": partial(journal.load, caller.session)})
    return samples["load"]


def plain_turn(session: Session, turn: int) -> TurnRecord:
    """Return what turn number *turn* of *session* leaves: question, answer, and why so."""
    run_id = new_uuid7(_MS + turn, int(session.id.replace("-", "")[-8:], 16))
    provider, model = _MODEL
    said = partial(StoredMessage, run_id=run_id, format="text", created_at=_AT)
    user = said(uuid=_id(run_id, 0), n=turn * 2, role="user", content=Plain("go on"))
    answer = replace(user, uuid=_id(run_id, 1), n=turn * 2 + 1, role="assistant")
    events = tuple(_event(kind) for kind in EventType)
    return TurnRecord(
        session_id=session.id,
        user_id=session.user_id,
        at=_AT,
        run=RunState(
            run_id=run_id,
            turn=1,
            updated_at=_AT,
            messages=turn * 2 + 2,
            events=(turn + 1) * len(events),
            references=(turn + 1) * 3,
            run_references=turn * 3,
        ),
        input=RunInput(run_id=run_id, request=_REQUEST, created_at=_AT),
        messages=(user, replace(answer, content=Plain("An answer. " * 30))),
        routing=(
            RoutingRecord(
                id=_id(run_id, 2),
                task_type=TaskIntent.CHAT,
                provider=provider,
                model=model,
                reason="the default route",
                created_at=_AT,
            ),
        ),
        references=(ContextReference(kind="file", included=True, reason="attached", path="a"),) * 3,
        first_reference=turn * 3,
        references_id=_id(run_id, 3),
        events=events,
        first_event=turn * len(events),
        events_id=_id(run_id, 4),
    )


def _event(kind: EventType) -> TraceEvent:
    provider, model = _MODEL
    payload = {"provider": provider, "model": model, "reason": "why it was so, in a few words"}
    return TraceEvent(
        event_type=kind,
        task_type=TaskIntent.CHAT,
        provider=provider,
        model=model,
        created_at=_AT,
        payload=payload,
    )


def _id(run_id: str, n: int) -> str:
    return row_id(run_id, 1, n, 0, "session_message")
