"""What tests of several routers share: the store's time, and clocks that draw apart."""

from datetime import UTC, datetime, timedelta

import trio

from tests.fakes import TickingClock


class StoreTime:
    """The store's clock: Trio's, and what a router slept through while its own stood still."""

    def __init__(self) -> None:
        self.missed = 0.0

    def now(self) -> datetime:
        seconds = trio.current_time() + self.missed
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


class Draws(TickingClock):
    """A clock whose randomness is not that of another router."""

    def __init__(self, router: str) -> None:
        super().__init__()
        self._drawn = ord(router) << 32
