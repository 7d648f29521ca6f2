"""Opening and closing a SurrealDB store, and the two ways through it: read, and write.

Knows the order of opening (lock, settings, engine, schema, repair) and nothing of what is stored.
"""

import logging
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from smista.storage import paths
from smista.storage.bridge import Bridge, Target
from smista.storage.repair import probe, repair
from smista.storage.rows import Unit
from smista.storage.schema import migrate
from smista.storage.vacuum import PATIENCE, THRESHOLD, copied, due
from smista.storage.writer import Statements, Writer

_log = logging.getLogger("smista.storage")

_CACHE: Final = "64MiB"


@dataclass(frozen=True, slots=True)
class Store:
    """Reads run side by side, writes through the one writer."""

    bridge: Bridge
    writer: Writer

    async def read(self, text: str, **values: Any) -> list[Any]:
        """Return one result for each statement of *text*."""
        return await self.bridge.query(text, values)

    async def write(self, work: Unit) -> None:
        await self.writer.write(work)

    def offer(self, text: str, **values: Any) -> None:
        """Run statements that write, later; nobody waits, and if they fail only the log tells."""
        self.writer.offer(Statements(text=text, values=values))

    async def change(self, text: str, **values: Any) -> list[Any]:
        """Run statements that write, as one transaction; return what they answered, in order."""
        return await self.writer.write(Statements(text=text, values=values))


@asynccontextmanager
async def open_directory_store(
    directory: Path,
    target: Target,
    *,
    durable: bool,
    vacuum_above: int = THRESHOLD,
    patience: float = PATIENCE,
) -> AsyncGenerator[Store]:
    """Open the embedded store in *directory*, this process's alone, mended and migrated.

    *vacuum_above*: bytes from which on a store that is mostly dead is copied; *patience*: how many
    seconds that may take.
    """
    _set_engine_up(durable=durable)
    paths.prepare(directory)
    with paths.held(directory):
        paths.settle(directory)
        clean = paths.begin(directory)
        with _private_files():
            bridge = await _open_ready(target, clean=clean)
            if await _copied_if_due(bridge, target, directory, vacuum_above, patience):
                bridge = await _open_ready(target, clean=True)
        writer = Writer(bridge, partial(_mend, bridge))
        try:
            paths.tighten(directory)
            async with _served(bridge, writer) as store:
                yield store
        finally:
            await bridge.close()
            paths.tighten(directory)
            if not writer.broken:
                paths.finish(directory)


async def _open_ready(target: Target, *, clean: bool) -> Bridge:
    bridge = Bridge(target)
    await bridge.open()
    try:
        await _ready(bridge, clean=clean)
    except BaseException:
        await bridge.close()
        raise
    return bridge


async def _copied_if_due(
    bridge: Bridge, target: Target, directory: Path, vacuum_above: int, patience: float
) -> bool:
    """Give space back if it is time; True: *bridge* is closed, and the store to be opened anew."""
    try:
        if not await due(bridge, directory, threshold=vacuum_above):
            return False
        done = await copied(bridge, target, directory, patience=patience)
    except BaseException:
        await bridge.close()
        raise
    await bridge.close()
    if done:
        try:
            paths.exchange(directory)
        except OSError as error:
            _log.warning("the store keeps its size: %s", error)
    paths.settle(directory)
    return True


@asynccontextmanager
async def open_plain_store(target: Target, *, durable: bool = True) -> AsyncGenerator[Store]:
    """Open a store that has no files of ours: in memory, or a server."""
    # A directory opened later in this process has to live with the settings of the first open.
    _set_engine_up(durable=durable)
    bridge = Bridge(target)
    await bridge.open()
    try:
        await migrate(bridge)
        async with _served(bridge, Writer(bridge, partial(_reconnect, bridge))) as store:
            yield store
    finally:
        await bridge.close()


@asynccontextmanager
async def _served(bridge: Bridge, writer: Writer) -> AsyncGenerator[Store]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.serve)
        try:
            yield Store(bridge, writer)
        finally:
            writer.close()


async def _ready(bridge: Bridge, *, clean: bool) -> None:
    await migrate(bridge)
    if not clean:
        await repair(bridge)


async def _mend(bridge: Bridge) -> None:
    """Replace a handle whose log failed: it stays broken even when there is space again."""
    await bridge.reopen()
    await _ready(bridge, clean=False)
    await probe(bridge)


async def _reconnect(bridge: Bridge) -> None:
    # A server mends its own log, and other routers may be writing: no sweep from here.
    await bridge.reopen()
    await probe(bridge)


def _set_engine_up(*, durable: bool) -> None:
    # The engine reads these once a process, at its first open; the cache would take half the RAM.
    os.environ["SURREAL_SYNC_DATA"] = "true" if durable else "false"
    os.environ["SURREAL_SURREALKV_MAX_VALUE_CACHE_SIZE"] = _CACHE


@contextmanager
def _private_files() -> Generator[None]:
    # The engine makes its files with the process's umask.
    old = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(old)
