"""`smista demo-model`: a deterministic model server on loopback, plain Trio and h11.

It waits only where the script says so, keeps connections alive, and refuses to know any provider.
"""

import hmac
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import h11
import trio

from smista.demo import chat_completions
from smista.demo.answer import answer, tokens
from smista.demo.asked import Asked, BadBody
from smista.demo.formats import Format, find_fact, find_format
from smista.demo.script import Cut, ErrorStep, Failure, Hold, Pause, Script, Step

MAX_BODY: Final = 64 * 1024 * 1024
_READ: Final = 65536
_JSON: Final = "application/json"
_KEYS: Final = (("authorization", "Bearer "), ("x-api-key", ""), ("x-goog-api-key", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it came in. *left* is set when its client left before the answer's end."""

    number: int
    asked: Asked
    headers: Mapping[str, str] = field(repr=False)
    left: trio.Event = field(default_factory=trio.Event)


async def serve_demo_model(
    *,
    script: Script,
    host: str = "127.0.0.1",
    port: int = 0,
    seen: Callable[[Seen], None] | None = None,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve *script* until cancelled; the bound port is the started value.

    *seen* is called with every model request before it is answered. Raises OSError if the
    port is taken.
    """
    listeners = await trio.open_tcp_listeners(port, host=host)
    model = _Model(script=script, seen=seen)
    async with trio.open_nursery() as connections:
        serve = partial(trio.serve_listeners, model.serve, handler_nursery=connections)
        await connections.start(serve, listeners)
        task_status.started(listeners[0].socket.getsockname()[1])


class _ClientLeft(Exception):
    """The client closed its connection before the answer was complete."""


class _Model:
    """What all connections share: the script, the number of requests, the observer."""

    def __init__(self, *, script: Script, seen: Callable[[Seen], None] | None) -> None:
        self.script = script
        self._seen = seen
        self._count = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await _Connection(self, stream).serve()
            except (trio.BrokenResourceError, _ClientLeft):
                return  # a client may leave at any moment; nothing is owed to it

    def admit(self, asked: Asked, headers: Mapping[str, str]) -> Seen:
        self._count += 1
        request = Seen(number=self._count, asked=asked, headers=headers)
        if self._seen is not None:
            self._seen(request)
        return request

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Tell if the client may ask: the script wants no key, or this is it."""
        if self.script.api_key is None:
            return True
        shown = (headers.get(name, "").removeprefix(prefix) for name, prefix in _KEYS)
        return any(hmac.compare_digest(k.encode(), self.script.api_key.encode()) for k in shown)


class _Connection:
    """One client connection: requests one after the other."""

    def __init__(self, model: _Model, stream: trio.SocketStream) -> None:
        self._model = model
        self._stream = stream
        self._http = h11.Connection(h11.SERVER)
        self._wire: Format = chat_completions

    async def serve(self) -> None:
        """Answer requests until one side wants no more."""
        try:
            while (request := await self._next_request()) is not None:
                await self._respond(*request)
                if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                    return
                self._http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                await self._fail(Failure(status=error.error_status_hint, message=str(error)))

    async def _next_request(self) -> tuple[h11.Request, bytes] | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            match await self._next_event():
                case h11.Request() as request:
                    head = request
                case h11.Data(data=data):
                    body += data
                    if len(body) > MAX_BODY:
                        raise h11.RemoteProtocolError("the body is too large", 413)
                case h11.EndOfMessage() if head is not None:
                    return head, bytes(body)
                case _:
                    return None

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._stream.receive_some(_READ))
        return event

    async def _respond(self, request: h11.Request, body: bytes) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        method, path = request.method.decode(), request.target.decode("ascii").partition("?")[0]
        asks = find_format(path) if method == "POST" else None
        self._wire = asks or chat_completions
        if not self._model.knows(headers):
            await self._fail(Failure(status=401, message="this script wants another API key"))
        elif asks is not None:
            await self._complete(body, path, headers)
        elif (fact := find_fact(method, path, headers)) is not None:
            await self._whole(200, fact(self._model.script, body))
        else:
            await self._fail(Failure(status=404, message="the demo model has no such path"))

    async def _complete(self, body: bytes, path: str, headers: Mapping[str, str]) -> None:
        try:
            asked = self._wire.read_request(body, path)
        except BadBody as error:
            await self._fail(Failure(status=400, message=str(error)))
            return
        request = self._model.admit(asked, headers)
        steps = answer(self._model.script, asked, call=request.number)
        try:
            await self._say(asked, steps)
        except (trio.BrokenResourceError, _ClientLeft):
            request.left.set()
            raise

    async def _say(self, asked: Asked, steps: tuple[Step, ...]) -> None:
        match steps[0]:
            case ErrorStep(error=failure):
                await self._fail(failure)
            case _ if asked.stream:
                await self._stream_steps(asked, steps)
            case _:
                await self._whole_steps(asked, steps)

    async def _stream_steps(self, asked: Asked, steps: tuple[Step, ...]) -> None:
        writer = self._wire.create_writer(asked, tokens(asked, steps))
        head = h11.Response(status_code=200, headers=[("content-type", self._wire.STREAM_TYPE)])
        await self._send(head, h11.Data(data=writer.begin()))
        for step in steps:
            match step:
                case Pause() | Hold():
                    await self._idle(step)
                case ErrorStep(error=failure):
                    await self._send(h11.Data(data=writer.error(failure)), h11.EndOfMessage())
                    return
                case Cut():
                    self._http.send_failed()
                    return
                case _:
                    for piece in writer.step(step):
                        await self._send(h11.Data(data=piece))
        ending = writer.end(tokens(asked, steps))
        await self._send(h11.Data(data=ending), h11.EndOfMessage())

    async def _whole_steps(self, asked: Asked, steps: tuple[Step, ...]) -> None:
        for step in steps:
            match step:
                case Pause() | Hold():
                    await self._idle(step)
                case ErrorStep(error=failure):
                    await self._fail(failure)
                    return
                case Cut():
                    self._http.send_failed()
                    return
                case _:
                    continue
        await self._whole(200, self._wire.whole_body(asked, steps, tokens(asked, steps)))

    async def _idle(self, step: Pause | Hold) -> None:
        """Wait as long as *step* says, but notice a client that leaves."""
        seconds = step.pause_ms / 1000 if isinstance(step, Pause) else math.inf
        with trio.move_on_after(seconds):
            while data := await self._stream.receive_some(_READ):
                self._http.receive_data(data)
            raise _ClientLeft

    async def _fail(self, failure: Failure) -> None:
        wait = failure.retry_after
        more = [] if wait is None else [("retry-after", wait)]
        await self._whole(failure.status, self._wire.error_body(failure), more)

    async def _whole(
        self, status: int, body: bytes, more: list[tuple[str, str]] | None = None
    ) -> None:
        kind = _JSON if _is_json(body) else "text/html"
        headers = [("content-type", kind), ("content-length", str(len(body))), *(more or [])]
        response = h11.Response(status_code=status, headers=headers)
        await self._send(response, h11.Data(data=body), h11.EndOfMessage())

    async def _send(self, *events: h11.Event) -> None:
        data = b"".join(self._http.send(event) or b"" for event in events)
        await self._stream.send_all(data)


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True
