"""A Trio loop in a thread, for tests that must be synchronous; its time stands still."""

import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import trio
import trio.testing


class Portal:
    """Runs one loop around *house*; `call` runs a step and waits until the loop is quiet."""

    def __init__(self, house: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        self.clock = trio.testing.MockClock()
        self._ready: queue.Queue[Any] = queue.Queue()
        self._house = house
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()
        self._token, self.house = self._ready.get(timeout=10)

    def _loop(self) -> None:
        trio.run(self._main, clock=self.clock)

    async def _main(self) -> None:
        self._stop = trio.Event()
        async with self._house() as house:
            self._ready.put((trio.lowlevel.current_trio_token(), house))
            await self._stop.wait()

    def call(self, step: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        async def quiet() -> Any:
            result = await step(*args)
            await trio.testing.wait_all_tasks_blocked()
            return result

        return trio.from_thread.run(quiet, trio_token=self._token)

    def jump(self, seconds: float) -> None:
        async def step() -> None:
            self.clock.jump(seconds)

        self.call(step)

    def close(self) -> None:
        trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
        self._thread.join(10)


HouseFactory = Callable[[], AsyncGenerator[Any]]
