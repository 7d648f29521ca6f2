"""Stands in for a SurrealDB server: its socket protocol before the engine of the wheel, in memory.

usage: stand_in.py PORT (0: any). Prints the port it listens on.
"""

import asyncio
import sys

import cbor2
from surrealdb._surrealdb_ext import AsyncEmbeddedDB
from websockets.asyncio.server import ServerConnection, serve


class StandIn:
    """One engine for all connections; it does not bear overlapping writes, so calls queue."""

    def __init__(self) -> None:
        self._engine = AsyncEmbeddedDB("mem://")
        self._turn = asyncio.Lock()

    async def answer(self, frame: bytes) -> bytes:
        try:
            async with self._turn:
                return await self._engine.execute(frame)
        except (RuntimeError, ValueError) as error:
            # A server answers with the error where the engine raises.
            told = {"code": -32000, "message": str(error)}
            return cbor2.dumps({"id": cbor2.loads(frame)["id"], "error": told})

    async def talk(self, connection: ServerConnection) -> None:
        async for frame in connection:
            assert isinstance(frame, bytes)
            await connection.send(await self.answer(frame))


async def main(port: int) -> None:
    stand_in = StandIn()
    protocols = {"subprotocols": ["cbor"], "max_size": None}
    async with serve(stand_in.talk, "127.0.0.1", port, **protocols) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)  # noqa: T201
        await server.serve_forever()


asyncio.run(main(int(sys.argv[1])))
