"""Sessions under load: turns at a fixed pace, a crowd that streams, and many that sleep."""

from bench import crowd, paced, sleepers
from bench.figures import Figure


async def measure() -> list[Figure]:
    """Return the figures of all three, one after the other."""
    return [*await paced.measure(), *await crowd.measure(), *await sleepers.measure()]
