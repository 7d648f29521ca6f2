"""Many sessions alive, many of them streaming: is each delta there, in order, at what weight?"""

import re

import trio

from bench.callers import checked
from bench.figures import Figure
from bench.house import House, open_house
from bench.line import Line, open_line
from bench.processes import cpu_ms, rss_mib
from bench.script import COUNTED

LIVE = 1_000
STREAMING = 200
_MAKERS = 20
_LOOKS = 1.0
_COUNT = re.compile(rb'"delta":"(\d+) "')
_MB = 1.048576


async def measure() -> list[Figure]:
    """Return deltas that went wrong, the router's memory, and its processor time meanwhile."""
    async with open_house() as house:
        sessions = await _alive(house)
        weights = [rss_mib(house.pid) * _MB]
        before, begun = cpu_ms(house.pid), trio.current_time()
        wrong: list[float] = []
        async with trio.open_nursery() as looking:
            looking.start_soon(_weigh, house, weights)
            async with trio.open_nursery() as nursery:
                for session in sessions[:STREAMING]:
                    nursery.start_soon(_count, house, session, wrong)
            looking.cancel_scope.cancel()
        busy = (cpu_ms(house.pid) - before) / (trio.current_time() - begun) / 10
    return [
        Figure(name="crowd: deltas lost or moved", samples=[sum(wrong)], unit="", at_most=0),
        Figure(name="crowd: router's memory", samples=[max(weights)], unit="MB", at_most=250),
        Figure(name="crowd: router's CPU", samples=[busy], unit="% core"),
    ]


async def _alive(house: House) -> list[str]:
    """Return LIVE sessions, each with one turn behind it."""
    sessions: list[str] = []

    async def make() -> None:
        async with open_line(house.port) as line:
            sessions.extend([await _used(house, line) for _ in range(LIVE // _MAKERS)])

    async with trio.open_nursery() as nursery:
        for _ in range(_MAKERS):
            nursery.start_soon(make)
    return sessions


async def _used(house: House, line: Line) -> str:
    session = await house.new_session(line)
    checked(await line.ask(house.execute(session)))
    return session


async def _count(house: House, session: str, wrong: list[float]) -> None:
    async with open_line(house.port) as line:
        answer = checked(await line.ask(house.execute(session, "count")))
    heard = [int(number) for number in _COUNT.findall(answer.raw)]
    wrong.append(misplaced(heard))


def misplaced(heard: list[int]) -> int:
    """Return how many places of the count hold something else, or nothing."""
    wanted = range(COUNTED)
    off = sum(number != place for number, place in zip(heard, wanted, strict=False))
    return off + abs(COUNTED - len(heard))


async def _weigh(house: House, weights: list[float]) -> None:
    while True:
        await trio.sleep(_LOOKS)
        weights.append(rss_mib(house.pid) * _MB)
