"""Gives back to the system what a crowd of sessions took and left, now that most of them sleep.

The C library keeps the holes between what is still in use; only where it knows how to return
them does anything happen here.
"""

import ctypes
import gc
from collections.abc import Callable
from functools import partial
from typing import Final

import trio

EVERY: Final = 15.0
CROWD: Final = 500
"""So many sessions have to have gone to sleep before looking for holes is worth its while."""


class Tide:
    """Remembers how many sessions were awake, and says when most of them sleep."""

    def __init__(self) -> None:
        self._most = 0

    def is_out(self, awake: int) -> bool:
        """Say whether half of a crowd has gone to sleep since this was last so."""
        self._most = max(self._most, awake)
        if self._most - awake < max(CROWD, awake):
            return False
        self._most = awake
        return True


async def give_back(
    awake: Callable[[], int], trim: Callable[[], object], *, every: float = EVERY
) -> None:
    """Call *trim*, in a thread, whenever half of a crowd has gone to sleep; never returns."""
    tide = Tide()
    while True:
        await trio.sleep(every)
        if tide.is_out(awake()):
            await trio.to_thread.run_sync(trim)


def find_trim() -> Callable[[], object]:
    """Return what makes the C library give memory back; elsewhere it only collects garbage."""
    own = ctypes.CDLL(None)
    if not hasattr(own, "malloc_trim"):
        return gc.collect
    return partial(_collect_and_trim, own.malloc_trim)


def _collect_and_trim(malloc_trim: Callable[[int], object]) -> None:
    gc.collect()
    malloc_trim(0)
