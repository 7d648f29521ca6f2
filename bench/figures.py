"""What a measurement says, and the one table that shows it. Measures nothing itself."""

import math
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One thing measured. *at_most* and *at_least* are aims for the median, *p99_at_most* for p99.

    *baseline* holds samples of something comparable, taken in turns with *samples*: on a busy
    machine the ratio of the two says more than either.
    """

    name: str
    samples: Sequence[float]
    unit: str = "ms"
    baseline: Sequence[float] = ()
    at_most: float | None = None
    at_least: float | None = None
    p99_at_most: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        """Return the smallest sample that 95 of 100 do not exceed."""
        return self._percentile(0.95)

    @property
    def p99(self) -> float:
        return self._percentile(0.99)

    def _percentile(self, share: float) -> float:
        return sorted(self.samples)[math.ceil(share * len(self.samples)) - 1]

    @property
    def ratio(self) -> float | None:
        return self.median / statistics.median(self.baseline) if self.baseline else None

    @property
    def missed(self) -> bool:
        """Say whether the median, or p99, is on the wrong side of an aim."""
        too_much = self.at_most is not None and self.median > self.at_most
        too_little = self.at_least is not None and self.median < self.at_least
        too_slow_at_times = self.p99_at_most is not None and self.p99 > self.p99_at_most
        return too_much or too_little or too_slow_at_times


async def in_turns(
    rounds: int, contenders: Mapping[str, Callable[[], Awaitable[object]]]
) -> dict[str, list[float]]:
    """Run every contender once a round, so that noise hits all; return milliseconds by name."""
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            begun = time.perf_counter()
            await contender()
            samples[name].append((time.perf_counter() - begun) * 1000)
    return samples


_NUMBERS = frozenset({1, 2, 3, 4, 6})
HEAD = ("figure", "n", "median", "p95", "p99", "unit", "x baseline", "aim")


def table(figures: Iterable[Figure]) -> str:
    """Return one line per figure, in columns."""
    rows = [HEAD, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(_line(row, widths) for row in rows)


def _row(figure: Figure) -> tuple[str, ...]:
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return (
        figure.name,
        str(len(figure.samples)),
        f"{figure.median:,.2f}",
        f"{figure.p95:,.2f}",
        f"{figure.p99:,.2f}",
        figure.unit,
        ratio,
        _aim(figure),
    )


def _aim(figure: Figure) -> str:
    aims = (
        ("<=", figure.at_most),
        (">=", figure.at_least),
        ("p99 <=", figure.p99_at_most),
    )
    said = " ".join(f"{sign} {aim:g}" for sign, aim in aims if aim is not None)
    if not said:
        return ""
    return f"{said} {'MISSED' if figure.missed else 'met'}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    # Names and words to the left, numbers to the right.
    cells = [
        cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
