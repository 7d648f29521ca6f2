"""Restart policy for service tasks: a fault is logged and tried again, a lasting one is raised."""

import logging
from collections.abc import Awaitable, Callable

import trio

log = logging.getLogger("smista.services")

TRIES = 5
PAUSE = 1.0
FORGET = 600.0  # seconds without a fault after which the count begins anew


async def supervise(name: str, service: Callable[[], Awaitable[None]]) -> None:
    """Run *service*; restart it after a fault, at most TRIES times in a row, then re-raise."""
    faults = 0
    while True:
        began = trio.current_time()
        try:
            await service()
        except Exception:
            faults = 1 if trio.current_time() - began > FORGET else faults + 1
            log.exception("service %s failed (%s in a row)", name, faults)
            if faults >= TRIES:
                raise
            await trio.sleep(PAUSE * 2**faults)
        else:
            return
