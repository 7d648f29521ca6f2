"""How fast a break stops the model and is answered, while fifty other streams run."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from bench.figures import Figure
from bench.house import House, open_house
from bench.line import Line, open_line

OTHERS = 50
ROUNDS = 100


async def measure() -> list[Figure]:
    """Return the two waits from the moment at which the break is sent."""
    async with (
        open_house() as house,
        _others(house),
        open_line(house.port) as talk,
        open_line(house.port) as control,
    ):
        waits = [await _break(house, talk, control) for _ in range(ROUNDS)]
    closed, answered = zip(*waits, strict=True)
    return [
        Figure(name="break to model's connection closed", samples=closed, p99_at_most=10),
        Figure(name="break to HTTP answer", samples=answered, p99_at_most=30),
    ]


@asynccontextmanager
async def _others(house: House) -> AsyncGenerator[None]:
    """Keep OTHERS streams running, ten deltas a second each."""
    speaking = trio.Semaphore(0)

    async def listen() -> None:
        async with open_line(house.port) as line:
            request = house.execute(await house.new_session(line), "trickle")
            answer = await line.begin(request)
            speaking.release()
            await line.finish(answer)

    async with trio.open_nursery() as nursery:
        for _ in range(OTHERS):
            nursery.start_soon(listen)
        for _ in range(OTHERS):
            await speaking.acquire()
        yield
        nursery.cancel_scope.cancel()


async def _break(house: House, talk: Line, control: Line) -> tuple[float, float]:
    """Return milliseconds until the model lost its connection, and until the answer came."""
    session = await house.new_session(control)
    house.told.forget()
    turn = await talk.begin(house.execute(session, "hold"))
    while b"I begin" not in turn.raw:
        await talk.more(turn)
    answer = await control.ask(house.brk(session))
    left = await house.told.next_left()
    await talk.finish(turn)
    return (left - answer.asked) / 1e6, answer.milliseconds
