"""`python -m bench.model`: the demo model in a process of its own, which tells when it is asked.

It prints its port, then a line for each request and for each held answer whose client left, with
the time of the system's monotonic clock in nanoseconds, which other processes share.
"""

import os
import time
from functools import partial

import trio

from bench.script import bench_script
from smista.demo.server import Seen, serve_demo_model


async def main() -> None:
    async with trio.open_nursery() as nursery:

        def seen(request: Seen) -> None:
            _tell("seen", time.monotonic_ns())
            if request.asked.user.startswith("hold"):
                nursery.start_soon(_tell_when_left, request)

        serve = partial(serve_demo_model, script=bench_script(), seen=seen)
        _tell("port", await nursery.start(serve))


async def _tell_when_left(request: Seen) -> None:
    await request.left.wait()
    _tell("left", time.monotonic_ns())


def _tell(word: str, number: int) -> None:
    os.write(1, b"%s %d\n" % (word.encode(), number))


if __name__ == "__main__":
    trio.run(main)
