"""`python -m bench.sleepers`: 10,000 sessions are touched and sleep; what memory they leave behind.

A process of its own that has in memory what a router has: its code, and an open store. Sessions
are kept beside that store and have no history, for loading 10,000 of them would take a minute.
Actors sleep after seconds instead of the usual minute, and memory is given back as often as in a
router.
"""

import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

import trio

from actors.directory import Directory, open_directory
from actors.memory import find_trim, give_back
from actors.parts import Durations, Parts
from bench.figures import Figure
from bench.house import environment
from bench.processes import rss_mib
from smista.core.messages import Break
from smista.core.records import Session, SessionState
from smista.ports.sessions import Call
from smista.providers.registry import open_registry
from smista.storage.memory import MemoryJournal
from smista.storage.surreal import open_surreal

SESSIONS: Final = 10_000
_IDLE: Final = 10.0
_LOOKS: Final = 0.25
_OWNER: Final = "01997c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"


async def measure() -> list[Figure]:
    """Return the memory of the process before, with all awake, and after, in MB."""
    done = await trio.run_process(
        [sys.executable, "-m", "bench.sleepers"], capture_stdout=True, env=environment(), cwd="/"
    )
    before, awake, after = json.loads(done.stdout)
    each = (awake - before) * 1024 / SESSIONS
    return [
        Figure(name="sleepers: an awake session", samples=[each], unit="KB"),
        Figure(name="sleepers: after / before", samples=[after / before], unit="", at_most=1.2),
    ]


class _Empty(MemoryJournal):
    """Sessions without a history: the memory journal looks for one in all rows it holds."""

    async def load(
        self, session: Session, *, messages: int | None = 400, at: datetime | None = None
    ) -> SessionState:
        await trio.lowlevel.checkpoint()
        return SessionState(session=session)


async def main() -> None:
    parts = partial(Parts, journal=_Empty(), slots=trio.CapacityLimiter(8))
    async with (
        _weight_of_a_router(),
        open_registry([]) as providers,
        open_directory(parts(providers=providers, durations=Durations(idle=_IDLE))) as house,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(partial(give_back, lambda: house.awake, find_trim(), every=_LOOKS))
        create = partial(house.create, _OWNER, title="b", scope=None, key_id=None)
        sessions = [(await create()).id for _ in range(SESSIONS)]
        await _touch(house, sessions[:100])
        before = await _asleep(house)
        await _touch(house, sessions)
        if house.awake != SESSIONS:
            raise RuntimeError(f"{house.awake} sessions are awake, not {SESSIONS}: too slow")
        awake = _megabytes()
        print(json.dumps([before, awake, await _asleep(house)]))
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _weight_of_a_router() -> AsyncGenerator[None]:
    import_module("actors.daemon")
    with tempfile.TemporaryDirectory(prefix="smista-bench-") as place:
        async with open_surreal(str(Path(place, "db"))):
            yield


async def _touch(house: Directory, sessions: list[str]) -> None:
    for session in sessions:
        reader = await house.tell(Call(user_id=_OWNER, session_id=session, message=Break()))
        await reader.wait_events()
        reader.close()


async def _asleep(house: Directory) -> float:
    """Return the memory once every session sleeps."""
    while house.awake:  # noqa: ASYNC110  # an actor tells nobody that it sleeps
        await trio.sleep(_LOOKS)
    await trio.sleep(4 * _LOOKS)  # the memory is given back a moment later
    return _megabytes()


def _megabytes() -> float:
    return rss_mib(os.getpid()) * 1.048576


if __name__ == "__main__":
    trio.run(main)
