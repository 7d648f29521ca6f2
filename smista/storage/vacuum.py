"""Gives space back: copies the living rows of an embedded store into a new directory.

The engine's log only grows, all of it is read at each start, and what was deleted stays in it. So
a store that is mostly dead, or that a session was deleted from, is copied when it is opened.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import trio

from smista.core.errors import StorageError
from smista.storage import codec, paths
from smista.storage.bridge import Bridge, Target
from smista.storage.rows import Row
from smista.storage.schema import KEYED, RANGED, UNOWNED, VACUUM, migrate
from smista.storage.values import Key, Ref

_log = logging.getLogger("smista.storage")

THRESHOLD: Final = 256 * 2**20
AT_ONCE: Final = 8 * 2**20
"""Bytes up to which a store that something was deleted from is copied: about a second."""
PATIENCE: Final = 30.0
"""Seconds that a copy may take: who starts a router waits for it, but not for ever."""

_PAGE: Final = 128
_SAMPLE: Final = 200
_TRIED: Final = "UPSERT $mark CONTENT { tried: $size } RETURN NONE"
_OVERHEAD: Final = 200  # bytes of the log for a row beyond its values


async def due(bridge: Bridge, directory: Path, *, threshold: int) -> bool:
    """Say if the open store in *directory* is to be copied."""
    size = paths.size(directory)
    (marks,) = await bridge.query("SELECT * FROM $mark", {"mark": VACUUM})
    mark: Row = marks[0] if marks else {}
    wanted = bool(mark.get("wanted"))
    if wanted and size <= AT_ONCE:
        return _has_space(directory, size)
    # A start must not take long for little: what is mostly alive stays as it is.
    large = wanted or size > max(threshold, 2 * mark.get("tried", 0))
    if not large or 2 * await _living(bridge) >= size:
        return False
    return _has_space(directory, size)


def _has_space(directory: Path, size: int) -> bool:
    if shutil.disk_usage(directory).free < size:
        _log.warning("the store keeps its size of %d bytes: no space for a copy", size)
        return False
    return True


async def _living(bridge: Bridge) -> float:
    """Return about how many bytes the living rows take."""
    total = 0.0
    for table in (*UNOWNED, *RANGED, *KEYED):
        text = f"SELECT count() FROM {table} GROUP ALL; SELECT * FROM {table} LIMIT $some"
        counted, sample = await bridge.query(text, {"some": _SAMPLE})
        if sample:
            mean = len(codec.encode("", {"rows": sample})) / len(sample)
            total += counted[0]["count"] * (mean + _OVERHEAD)
    return total


async def copied(bridge: Bridge, target: Target, directory: Path, *, patience: float) -> bool:
    """Copy the living rows of *bridge* to paths.fresh(*directory*); False if that failed.

    Rows of sessions that do not exist are left behind. After *patience* seconds it is given up,
    until more is deleted or the store has twice the size.
    """
    size = paths.size(directory)
    _log.info("copying the living rows of the store, which has %d bytes", size)
    try:
        with trio.move_on_after(patience):
            await _copy(
                bridge, Bridge(replace(target, url=f"surrealkv://{paths.fresh(directory)}"))
            )
            return True
        await bridge.query(_TRIED, {"mark": VACUUM, "size": size})
        error: object = f"its copy would take more than {patience} s"
    except StorageError as failure:
        error = failure
    _log.warning("the store keeps its size of %d bytes: %s", size, error)
    return False


async def _copy(source: Bridge, fresh: Bridge) -> None:
    await fresh.open()
    try:
        await migrate(fresh)
        await _Copy(source, fresh).run()
    finally:
        await fresh.close()


class _Copy:
    """One copy under way; it counts what it reads and writes."""

    def __init__(self, source: Bridge, fresh: Bridge) -> None:
        self._source = source
        self._fresh = fresh
        self._read = Counter[str]()
        self._written = Counter[str]()

    async def run(self) -> None:
        """Copy everything; raises StorageError if a row was missed."""
        for table in UNOWNED:
            (addresses,) = await self._source.query(f"SELECT VALUE id FROM {table}", {})
            await self._named(table, addresses)
        (sessions,) = await self._source.query("SELECT VALUE id FROM session", {})
        for table in KEYED:
            await self._named(table, [Ref(table, session.key) for session in sessions])
        keys = {session.key for session in sessions}
        for table in RANGED:
            await self._ranged(table, keys)
        # Rows of runs are asked for by name, so those without a session are not seen.
        await _verify(self._source, self._read, (*UNOWNED, *RANGED))
        await _verify(self._fresh, self._written, (*UNOWNED, *KEYED, *RANGED))

    async def _named(self, table: str, addresses: Sequence[Ref]) -> None:
        for start in range(0, len(addresses), _PAGE):
            some = {"some": addresses[start : start + _PAGE]}
            (rows,) = await self._source.query("SELECT * FROM $some", some)
            self._read[table] += len(rows)
            await self._insert(table, rows)

    async def _ranged(self, table: str, sessions: Set[Key]) -> None:
        """Copy a table of [session, …] keys, each page from behind the last key of the one before.

        NONE sorts before every key and [] behind.
        """
        begin, values = "[NONE, NONE]", dict[str, Any]()
        while True:
            text = f"SELECT * FROM {table}:{begin}..[[], NONE] LIMIT {_PAGE}"
            (page,) = await self._source.query(text, values)
            self._read[table] += len(page)
            await self._insert(table, [row for row in page if row["id"].key[0] in sessions])
            if len(page) < _PAGE:
                return
            values = {f"k{n}": part for n, part in enumerate(page[-1]["id"].key)}
            begin = f"[{', '.join(f'${name}' for name in values)}]>"

    async def _insert(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            await self._fresh.query(f"INSERT INTO {table} $rows RETURN NONE", {"rows": rows})
            self._written[table] += len(rows)


async def _verify(bridge: Bridge, rows: Mapping[str, int], tables: Iterable[str]) -> None:
    for table in tables:
        (counted,) = await bridge.query(f"SELECT count() FROM {table} GROUP ALL", {})
        if (counted[0]["count"] if counted else 0) != rows[table]:
            raise StorageError(f"the copy of {table} is not whole")
