"""One TCP connection that speaks HTTP/1.1, and nothing else, to the application.

Instead of the stock server of hypercorn, whose writes to a reader that stalls can never be
cancelled and whose idle connections are never closed. The protocol itself is hypercorn's.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Request
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIReceiveEvent, ASGISendEvent, ConnectionState

from smista.core.errors import Forbidden, InvalidRequest
from smista.front.faults import log_fault
from smista.front.replies import error_reply
from smista.front.settings import FrontDurations

_READ_AT_MOST: Final = 65_536
_AT_REST: Final = (h11.IDLE, h11.DONE, h11.CLOSED, h11.MUST_CLOSE)

Application = Callable[[Any, Any, Any], Awaitable[None]]


class Connection:
    """Owns a stream, its protocol and the tasks of its requests. Ends with all of them."""

    def __init__(
        self,
        app: Application,
        config: Config,
        context: WorkerContext,
        stream: trio.SocketStream,
        durations: FrontDurations,
    ) -> None:
        self._stream = stream
        self._durations = durations
        self._writing = trio.Lock()
        self._scope = trio.CancelScope()
        self._idle_since: float | None = trio.current_time()
        self._write_since: float | None = None
        self._closing_since: float | None = None
        self._tasks = _Tasks(app)
        self._protocol = _Http11(
            app,  # type: ignore[arg-type]  # only handed back to _Tasks.spawn_app
            config,
            context,
            self._tasks,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            ConnectionState({}),
            ssl=False,
            client=stream.socket.getpeername()[:2],
            server=stream.socket.getsockname()[:2],
            send=self._take,
        )

    @property
    def idle(self) -> bool:
        """Whether no request is being read or served."""
        return self._idle_since is not None

    async def run(self) -> None:
        """Serve the connection until either side closes it."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    self._tasks.nursery = nursery
                    await self._read()
        finally:
            self._stream.socket.close()

    def abort(self) -> None:
        """Break every read, write and request of the connection, now."""
        self._stream.socket.close()
        self._scope.cancel()

    def reap(self, now: float) -> None:
        """Abort the connection if it is idle, stalled or lingering for too long."""
        waits = (
            (self._idle_since, self._durations.idle),
            (self._write_since, self._durations.send_stall),
            (self._closing_since, self._durations.linger),
        )
        if any(since is not None and now - since > most for since, most in waits):
            self.abort()

    async def _read(self) -> None:
        data = b"nothing yet"
        while data:
            try:
                data = bytes(await self._stream.receive_some(_READ_AT_MOST))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                break
            if self._closing_since is None:
                await self._protocol.handle(RawData(data))
        await self._protocol.handle(Closed())

    async def _take(self, event: Event) -> None:
        """Do what the protocol asks for: write, close, or note that it waits for a request.

        The last two never wait: they come right after the application was told that its request
        is over, upon which it cancels itself, and an await would end half way.
        """
        match event:
            case RawData(data=data):
                if data:
                    await self._write(data)
            case Closed():
                self._close()
            case Updated(idle=idle):
                self._idle_since = trio.current_time() if idle else None
            case _:
                raise AssertionError(f"the protocol sent {event!r}, which no connection can do")

    async def _write(self, data: bytes) -> None:
        if not await self._sent(data):
            await self._protocol.handle(Closed())

    async def _sent(self, data: bytes) -> bool:
        """Write *data*; return whether the peer is still there."""
        try:
            # Two tasks hardly ever write at once; the usual way costs no turn of the loop.
            self._writing.acquire_nowait()
        except trio.WouldBlock:
            await self._writing.acquire()
        self._write_since = trio.current_time()
        try:
            await self._stream.send_all(data)
        except trio.Cancelled:
            # Half a message may be on the wire: nothing can follow it.
            self.abort()
            raise
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        finally:
            self._write_since = None
            self._writing.release()
        return True

    def _close(self) -> None:
        if self._protocol.whole:
            self.abort()
            return
        # Bytes of a refused body are still coming. Closing now would reset the connection and
        # take the answer with it, so they are read and dropped for a while.
        self._closing_since = trio.current_time()
        try:
            self._stream.socket.shutdown(trio.socket.SHUT_WR)
        except OSError:
            self.abort()


class _Tasks:
    """Starts the application for each request, and is where its unforeseen errors end."""

    nursery: trio.Nursery

    def __init__(self, app: Application) -> None:
        self._app = app

    async def spawn_app(
        self,
        app: object,
        config: Config,
        scope: Any,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        """Start the application; return where the events of its request go."""
        inbox, outbox = trio.open_memory_channel[ASGIReceiveEvent](config.max_app_queue_size)
        self.nursery.start_soon(self._serve, scope, outbox.receive, send)
        return inbox.send

    async def _serve(
        self,
        scope: Any,
        receive: Callable[[], Awaitable[ASGIReceiveEvent]],
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # A supervisor: one broken request must not end the daemon.
            log_fault(error, "a request")
        await send(None)


class _Http11(H11Protocol):
    """Hypercorn's HTTP/1.1 without upgrades and with one write less."""

    _head = b""

    @property
    def whole(self) -> bool:
        """Whether the client has nothing more to send that belongs to a request."""
        return self.connection.their_state in _AT_REST

    async def _send_h11_event(self, event: Any) -> None:
        if isinstance(event, h11.Response):  # The head waits for the first bytes of its body.
            self._head = self._bytes_of(self._parting(event))
            return
        data, self._head = self._head + self._bytes_of(event), b""
        await self.send(RawData(data=data))

    def _parting(self, response: h11.Response) -> h11.Response:
        """Return *response*, which says so if the connection cannot outlive it.

        Answered before its body was read, a request ends its connection. A client that is not
        told would send its next one into the void.
        """
        if self.connection.their_state is not h11.SEND_BODY:
            return response
        headers = [
            pair for pair in response.headers.raw_items() if pair[0].lower() != b"connection"
        ]
        headers.append((b"connection", b"close"))
        return h11.Response(status_code=response.status_code, headers=headers)

    def _bytes_of(self, event: Any) -> bytes:
        try:
            return bytes(self.connection.send(event) or b"")  # pyright: ignore[reportUnknownArgumentType]
        except h11.LocalProtocolError:
            if self.connection.their_state != h11.ERROR:
                raise
            return b""

    async def _create_stream(self, request: h11.Request) -> None:
        # The stock protocol would hand a WebSocket handshake to another kind of stream, past
        # the rules for browsers. Here an Upgrade header is a header like any other.
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=self.connection_state,
            )
        )
        self.keep_alive_requests += 1

    async def _check_protocol(self, event: h11.Request) -> None:
        """Never change the protocol: the stock one would speak HTTP/2 to whoever asks."""

    async def _send_error_response(self, status_code: int) -> None:
        """Answer a head that is no HTTP; a missing or doubled Host is refused as forbidden."""
        # h11 checks the Host itself, and hypercorn passes on no more than a status.
        reason = str(sys.exc_info()[1])
        if "Host:" in reason:
            error = error_reply(Forbidden("send exactly one Host header that names this router"))
        else:
            error = error_reply(InvalidRequest("this is not an HTTP/1.1 request"))
            error = type(error)(status_code, error.body, error.headers)
        headers = [*error.raw_headers(), (b"connection", b"close")]
        headers += self.config.response_headers("h11")
        status = error.status
        await self._send_h11_event(h11.Response(status_code=status, headers=headers))
        await self._send_h11_event(h11.Data(data=error.body))
        await self._send_h11_event(h11.EndOfMessage())
