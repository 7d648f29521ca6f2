"""Turns at a fixed pace: each begins when its time has come, however long the others take."""

from collections.abc import Iterator

import trio

from bench.callers import TURNS_A_SESSION, checked
from bench.clocked import NUMBERED
from bench.figures import Figure
from bench.house import House, open_house
from bench.line import Answer, open_line

SESSIONS = 16
A_SECOND = 100
ROUNDS = 2
WARM_UP = 160
_DELTA = b'"text_delta"'

Turns = dict[int, Answer]
"""What was heard of each turn, by its number."""


async def measure() -> list[Figure]:
    """Return what the router adds to a turn at 100 turns a second, in three parts."""
    async with open_house(model="bench.clocked") as house:
        numbers = iter(range(1_000_000))
        await _paced(house, numbers, count=WARM_UP)
        turns: Turns = {}
        begun = trio.current_time()
        for _ in range(ROUNDS):
            turns |= await _paced(house, numbers, count=SESSIONS * TURNS_A_SESSION)
        took = trio.current_time() - begun
        await house.told.wait_turns(turns)
    return [
        Figure(name="paced: turns", samples=[len(turns) / took], unit="turns/s"),
        Figure(name="paced: request to model asked", samples=_asked(house, turns), at_most=3),
        Figure(name="paced: first byte to first event", samples=_first(house, turns), at_most=2),
        Figure(name="paced: last byte to turn_end", samples=_last(house, turns), at_most=5),
    ]


def _asked(house: House, turns: Turns) -> list[float]:
    return [(house.told.turns[n].asked - turn.asked) / 1e6 for n, turn in turns.items()]


def _first(house: House, turns: Turns) -> list[float]:
    return [
        (turn.first_with(_DELTA) - house.told.turns[n].first) / 1e6 for n, turn in turns.items()
    ]


def _last(house: House, turns: Turns) -> list[float]:
    return [(turn.times[-1] - house.told.turns[n].last) / 1e6 for n, turn in turns.items()]


async def _paced(house: House, numbers: Iterator[int], *, count: int) -> Turns:
    """Run *count* turns in new sessions; the times are fixed before, so that no delay adds up."""
    turns: Turns = {}
    ready, go = [trio.Event() for _ in range(SESSIONS)], trio.Event()
    begin = 0.0

    async def call(place: int) -> None:
        async with open_line(house.port) as line:
            session = await house.new_session(line)
            mine = [next(numbers) for _ in range(count // SESSIONS)]
            requests = [house.execute(session, NUMBERED % number) for number in mine]
            ready[place].set()
            await go.wait()
            for turn, (number, request) in enumerate(zip(mine, requests, strict=True)):
                await trio.sleep_until(begin + (turn * SESSIONS + place) / A_SECOND)
                turns[number] = checked(await line.ask(request))

    async with trio.open_nursery() as nursery:
        for place in range(SESSIONS):
            nursery.start_soon(call, place)
        for event in ready:
            await event.wait()
        begin = trio.current_time()
        go.set()
    return turns
