"""When the router is killed: at a moment of the protocol, never at a time.

A moment is something that a client does or hears of; they are counted by kind.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from typing import Any, NamedTuple

import httpx

from smista.net import create_client
from smista.sdk.client import Client, ClientConfig
from tests.e2e.house import PATIENCE, Router


class Moment(StrEnum):
    BETWEEN = "a message is about to be sent"
    WRITTEN = "a message was written"
    ANSWERED = "the answer's head arrived"
    HEARD = "an event was heard"
    PAUSED = "a pause is being thought about"


class Point(NamedTuple):
    """The *nth* time (from 1) that *moment* passes, since the kill before."""

    moment: Moment
    nth: int


class Fate:
    """Kills *router* when the next of its points passes, and has it started again."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.passed: Counter[Moment] = Counter()
        self.kills = 0
        self.life = 1
        self._points: list[Point] = []
        self._dead = False

    @contextmanager
    def deciding(self, points: Sequence[Point]) -> Iterator[None]:
        """Have *points* pass, in this order, in the body."""
        self._points, self.passed, self.kills = list(points), Counter(), 0
        yield
        self._points = []

    def meet(self, moment: Moment) -> None:
        self.passed[moment] += 1
        if self._points[:1] == [Point(moment, self.passed[moment])]:
            del self._points[0]
            self.strike()

    def strike(self) -> None:
        if not self._dead:
            self.router.kill()
            self.kills, self._dead = self.kills + 1, True
            self.passed.clear()

    def revive(self, life: int) -> None:
        """Start the router again, if nobody else has; *life* is the one that broke off."""
        if life < self.life:
            return
        assert self._dead, f"the router hung up: {self.router.process.output[-2000:]}"
        self._dead = False
        self.router.start()
        self.life += 1

    async def watch(self, request: httpx.Request) -> None:
        """Count the moments of *request*, if a turn is asked for."""
        if request.url.path.endswith(("/execute", "/continue")):
            request.extensions["trace"] = self._trace

    async def _trace(self, name: str, _: dict[str, Any]) -> None:
        if name == "http11.send_request_body.complete":
            self.meet(Moment.WRITTEN)
        elif name == "http11.receive_response_headers.complete":
            self.meet(Moment.ANSWERED)


@asynccontextmanager
async def open_watched_client(config: ClientConfig, fate: Fate) -> AsyncGenerator[Client]:
    """Lend a client whose requests *fate* knows of."""
    timeout = httpx.Timeout(PATIENCE, pool=None)
    async with create_client(config.url, local=True, timeout=timeout) as http:
        http.event_hooks = {"request": [fate.watch]}
        yield Client(http, config, None)
