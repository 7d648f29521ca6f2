"""How many deltas a second get through when the model says all it can, and none is lost."""

import time
from functools import partial

import trio

from bench.callers import WrongAnswer, checked
from bench.figures import Figure
from bench.house import House, direct, open_house
from bench.line import Answer, open_line
from bench.script import FLOOD

ROUNDS = 5
STREAMS = 10
_DELTA = b'"text_delta"'
_DIRECT_DELTA = b'"content":"word'


async def measure() -> list[Figure]:
    """Return the rates of one stream and of ten, beside one that comes from the model itself."""
    async with open_house() as house:
        direct_rates, one, ten = [], [], []
        for _ in range(ROUNDS):
            direct_rates.append(await _direct_rate(house))
            one.append(await _rate(house, streams=1))
            ten.append(await _rate(house, streams=STREAMS))
    flood = partial(Figure, unit="deltas/s", baseline=direct_rates)
    return [
        Figure(name="flood, direct from the model", samples=direct_rates, unit="deltas/s"),
        flood(name="flood, one stream", samples=one, at_least=5_000),
        flood(name=f"flood, {STREAMS} streams in all", samples=ten, at_least=5_000),
    ]


async def _direct_rate(house: House) -> float:
    async with open_line(house.told.port) as line:
        return _counted(await line.ask(direct("flood")), _DIRECT_DELTA)


def _counted(answer: Answer, mark: bytes) -> float:
    """Return deltas per second. Raises WrongAnswer if their number is wrong."""
    count = answer.raw.count(mark)
    if count != FLOOD:
        raise WrongAnswer(f"{count} deltas of {FLOOD} came through")
    return FLOOD * 1000 / answer.milliseconds


async def _rate(house: House, *, streams: int) -> float:
    begun = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(streams):
            nursery.start_soon(_flood, house)
    return streams * FLOOD / (time.perf_counter() - begun)


async def _flood(house: House) -> None:
    async with open_line(house.port) as line:
        session = await house.new_session(line)
        _counted(checked(await line.ask(house.execute(session, "flood"))), _DELTA)
