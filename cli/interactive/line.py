"""The router as a session meets it: found anew when it was lost, or when the policy changed."""

from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager

import trio

from cli.connection import open_router, prove
from cli.surroundings import Surroundings
from smista.core.model_ref import ModelRef
from smista.local.config_files import ConfigFile
from smista.sdk.client import Client
from smista.sdk.errors import Unreachable


class RouterLine:
    """Holds one signed-in client at a time."""

    def __init__(self, here: Surroundings) -> None:
        self._here = here
        self._one_at_a_time = trio.Lock()
        self._held = 0
        self._stack: AsyncExitStack | None = None
        self._client: Client | None = None
        self._made_for: tuple[ConfigFile, ModelRef | None] | None = None

    async def client(self, config: ConfigFile, override: ModelRef | None) -> Client:
        """Return a client of the user's own router, which has just proved that it is that.

        Raises what `open_router` raises.
        """
        async with self._one_at_a_time:
            if self._client is not None and self._held:
                await prove(self._here, self._client)
                return self._client
            if self._client is not None and self._made_for == (config, override):
                try:
                    await prove(self._here, self._client)
                except Unreachable:
                    pass  # it may be back elsewhere, or be started
                else:
                    return self._client
            return await self._open(config, override)

    @contextmanager
    def held(self) -> Generator[None]:
        """Keep the client as it is: a run goes on over it."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    async def _open(self, config: ConfigFile, override: ModelRef | None) -> Client:
        await self.close()
        stack = AsyncExitStack()
        router = open_router(self._here, config, override=override)
        self._client = await stack.enter_async_context(router)
        self._stack, self._made_for = stack, (config, override)
        return self._client

    async def close(self) -> None:
        stack, self._stack, self._client = self._stack, None, None
        if stack is not None:
            await stack.aclose()
