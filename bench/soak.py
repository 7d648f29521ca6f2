"""`python -m bench.soak`: plain turns for longer, with some that are broken off, and what becomes
of errors, memory and rate meanwhile. Ends after a number of turns or of minutes, what comes first.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import trio

from bench.callers import TURNS_A_SESSION, WrongAnswer, checked
from bench.house import SETTINGS, House, open_house
from bench.line import Broken, Line, open_line
from bench.processes import cpu_ms, rss_mib, until_sigterm

_REPORTS: Final = 10.0
_BREAK_EVERY: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """*most*: turns in all; *until*: a time of Trio's clock."""

    callers: int
    most: int
    until: float


@dataclass(slots=True)
class Tally:
    """What has happened so far."""

    begun: int = 0
    done: int = 0
    broken_off: int = 0
    errors: Counter[str] = field(default_factory=Counter[str])


async def soak(*, callers: int, most: int, minutes: float) -> Tally:
    """Run the load and print a line every ten seconds."""
    tally = Tally()
    async with until_sigterm(), open_house() as house:
        bounds = Bounds(callers=callers, most=most, until=trio.current_time() + minutes * 60)
        async with trio.open_nursery() as reports:
            reports.start_soon(_report, house, tally)
            async with trio.open_nursery() as nursery:
                for _ in range(callers):
                    nursery.start_soon(_call, house, tally, bounds)
            reports.cancel_scope.cancel()
        print(_line(house, tally))
    return tally


async def _call(house: House, tally: Tally, bounds: Bounds) -> None:
    while not _over(tally, bounds):
        try:
            async with open_line(house.port) as line, open_line(house.port) as control:
                await _session(house, line, control, tally, bounds)
        except (Broken, WrongAnswer, OSError, trio.BrokenResourceError) as error:
            # What a soak is for: it is counted, and the caller goes on with new connections.
            tally.errors[f"{type(error).__name__}: {str(error)[-200:]}"] += 1


def _over(tally: Tally, bounds: Bounds) -> bool:
    return tally.begun >= bounds.most or trio.current_time() >= bounds.until


async def _session(house: House, line: Line, control: Line, tally: Tally, bounds: Bounds) -> None:
    session = await house.new_session(line)
    plain, held, brk = house.execute(session), house.execute(session, "hold"), house.brk(session)
    for _ in range(TURNS_A_SESSION):
        if _over(tally, bounds):
            return
        tally.begun += 1
        if tally.begun % _BREAK_EVERY == 0:
            await _broken_off(line, control, held, brk)
            tally.broken_off += 1
        else:
            checked(await line.ask(plain))
        tally.done += 1


async def _broken_off(line: Line, control: Line, held: bytes, brk: bytes) -> None:
    turn = await line.begin(held)
    while b"I begin" not in turn.raw:
        await line.more(turn)
    answer = await control.ask(brk)
    await line.finish(turn)
    if not answer.ok or b'"status":"idle"' not in turn.raw:
        raise WrongAnswer(f"{answer.raw!r} and {turn.raw[-300:]!r}")


async def _report(house: House, tally: Tally) -> None:
    while True:
        await trio.sleep(_REPORTS)
        print(_line(house, tally), flush=True)


def _line(house: House, tally: Tally) -> str:
    return (
        f"{time.strftime('%H:%M:%S')}  {tally.done} turns, {tally.broken_off} of them broken off,"
        f" {sum(tally.errors.values())} errors, router {rss_mib(house.pid):.1f} MiB,"
        f" {cpu_ms(house.pid) / 1000:.1f} s CPU"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--callers", type=int, default=10)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=5.0)
    asked = parser.parse_args(arguments)
    print(SETTINGS.format(port="PORT", model_port="PORT"))
    tally = trio.run(partial(soak, callers=asked.callers, most=asked.turns, minutes=asked.minutes))
    for error, count in tally.errors.most_common(10):
        print(f"{count} x {error}", file=sys.stderr)
    return 1 if tally.errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
