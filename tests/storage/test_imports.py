"""What opening a store loads: it is most of the router's start and much of its memory."""

import subprocess
import sys

OPENS_A_STORE = """
import sys, trio
from smista.storage.surreal import open_surreal

async def main():
    async with open_surreal("mem://"):
        print(*sorted({"aiohttp", "requests"} & set(sys.modules)))

trio.run(main)
"""


def test_a_store_is_opened_without_http_clients() -> None:
    run = subprocess.run(
        [sys.executable, "-c", OPENS_A_STORE], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == ""
