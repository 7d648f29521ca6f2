"""What the router weighs when it idles, and what each thousand turns add."""

from itertools import pairwise

from bench.callers import turn_rate
from bench.figures import Figure
from bench.house import open_house
from bench.processes import rss_mib

CALLERS = 10
BATCHES = 3
EACH = 60


async def measure() -> list[Figure]:
    """Return resident memory; the first batch, which fills caches, is not counted as growth."""
    async with open_house() as house:
        idle = rss_mib(house.pid)
        weights = []
        for _ in range(1 + BATCHES):
            await turn_rate(house, callers=CALLERS, each=EACH)
            weights.append(rss_mib(house.pid))
    per_thousand = 1000 / (CALLERS * EACH)
    growth = [(after - before) * per_thousand for before, after in pairwise(weights)]
    return [
        Figure(name="router's memory, idle", samples=[idle], unit="MiB", at_most=110),
        Figure(name="router's memory, warm", samples=[weights[0]], unit="MiB"),
        Figure(name="memory per 1,000 turns", samples=growth, unit="MiB"),
    ]
