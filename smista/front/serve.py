"""Serves the application on a socket until it is asked to stop, and then does stop."""

from collections.abc import Awaitable, Callable
from functools import partial
from sys import maxsize
from typing import Any, Final

import trio
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from smista.front.connection import Application, Connection
from smista.front.faults import log_fault
from smista.front.settings import FrontSettings

_BACKLOG: Final = 512
_REQUESTS_AT_MOST: Final = 1_000_000


async def serve(
    app: Application,
    settings: FrontSettings,
    *,
    shutdown_trigger: Callable[[], Awaitable[Any]],
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve *app* until *shutdown_trigger* returns, then let requests end for the grace time.

    Reports the bound addresses as `http://host:port`. Raises OSError if the port is taken.
    Cancelling it breaks every connection at once.
    """
    listeners = await trio.open_tcp_listeners(settings.port, host=settings.host, backlog=_BACKLOG)
    server = _Server(app, settings)
    async with trio.open_nursery() as connections:
        connections.start_soon(server.reap)
        async with trio.open_nursery() as accepting:
            accept = partial(trio.serve_listeners, handler_nursery=connections)
            await accepting.start(accept, server.handle, listeners)
            task_status.started([_address(listener) for listener in listeners])
            await shutdown_trigger()
            accepting.cancel_scope.cancel()
        await server.drain()
        connections.cancel_scope.cancel()


def _address(listener: trio.SocketListener) -> str:
    host, port = listener.socket.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _config() -> Config:
    config = Config()
    config.include_server_header = False
    config.keep_alive_max_requests = _REQUESTS_AT_MOST
    # A full queue would hold a connection's reader for ever once its request is answered; what
    # waits there is bounded by the limit on bodies.
    config.max_app_queue_size = maxsize
    return config


class _Server:
    """Owns the set of living connections."""

    def __init__(self, app: Application, settings: FrontSettings) -> None:
        self._app = app
        self._durations = settings.durations
        self._config = _config()
        self._context = WorkerContext(None)
        self._living: set[Connection] = set()
        self._ended = trio.lowlevel.ParkingLot()

    async def handle(self, stream: trio.SocketStream) -> None:
        """Serve one connection; nothing it does can end the others."""
        try:
            connection = Connection(self._app, self._config, self._context, stream, self._durations)
        except OSError:
            return  # The peer left before it was looked at.
        self._living.add(connection)
        try:
            await connection.run()
        except Exception as error:  # A supervisor: one broken peer must not end the daemon.
            log_fault(error, "a connection")
        finally:
            self._living.discard(connection)
            self._ended.unpark_all()

    async def reap(self) -> None:
        """Look for connections that waited too long. One task serves them all, cheaply."""
        while True:
            await trio.sleep(self._durations.reap_every)
            now = trio.current_time()
            for connection in tuple(self._living):
                connection.reap(now)

    async def drain(self) -> None:
        """Close what is idle and wait for the rest, for the grace time at most."""
        await self._context.terminated.set()
        for connection in tuple(self._living):
            if connection.idle:
                connection.abort()
        with trio.move_on_after(self._durations.grace):
            while self._living:
                await self._ended.park()
