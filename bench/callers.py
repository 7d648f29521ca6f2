"""Callers that run plain turns against a router, each in sessions of its own."""

import time
from functools import partial

import trio

from bench.house import House
from bench.line import Answer, open_line

TURNS_A_SESSION = 20
"""A longer session would measure its own history."""


class WrongAnswer(Exception):
    """A turn that did not complete."""


def checked(answer: Answer) -> Answer:
    """Return *answer*, the stream of a completed turn. Raises WrongAnswer for any other."""
    if b'"status":"completed"' not in b"".join(answer.pieces[-3:]):
        raise WrongAnswer(answer.raw.decode("utf-8", "replace")[-500:])
    return answer


async def turn_rate(house: House, *, callers: int, each: int) -> float:
    """Return turns per second of *callers* at once, each running *each* turns.

    The sessions are made before, so that only turns count.
    """
    ready = [trio.Event() for _ in range(callers)]
    go = trio.Event()
    async with trio.open_nursery() as nursery:
        for event in ready:
            nursery.start_soon(partial(_call, house, each, ready=event, go=go))
        for event in ready:
            await event.wait()
        begun = time.perf_counter()
        go.set()
    return callers * each / (time.perf_counter() - begun)


async def _call(house: House, count: int, *, ready: trio.Event, go: trio.Event) -> None:
    async with open_line(house.port) as line:
        sessions = [await house.new_session(line) for _ in range(-(-count // TURNS_A_SESSION))]
        requests = [house.execute(session) for session in sessions]
        ready.set()
        await go.wait()
        for number in range(count):
            checked(await line.ask(requests[number // TURNS_A_SESSION]))
