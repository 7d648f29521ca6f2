"""A place among the turns that are served at once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from smista.core.errors import RouterBusy


@asynccontextmanager
async def slot(limiter: trio.CapacityLimiter, *, patience: float) -> AsyncGenerator[None]:
    """Hold a place in *limiter*; raises RouterBusy if none is free within *patience* seconds."""
    holder = object()
    try:
        limiter.acquire_on_behalf_of_nowait(holder)
    except trio.WouldBlock:
        with trio.move_on_after(patience) as waiting:
            await limiter.acquire_on_behalf_of(holder)
        if waiting.cancelled_caught:
            raise RouterBusy("the router serves as many turns as it may; try again") from None
    try:
        yield
    finally:
        limiter.release_on_behalf_of(holder)
