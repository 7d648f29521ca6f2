"""Execute and continue: parse, tell, relay. The turn itself lives elsewhere and outlives us.

Answered beside Quart: the relay holds the one reader of a turn and gives it back whatever
happens to the client, and it is the path that has to be quick.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

import trio

from smista.core.errors import AnswerTimeout, InternalError, RouterBusy, SmistaError
from smista.core.events import Event, TurnEnd, failed
from smista.core.messages import Break, Execute, Inject, Message
from smista.front.asgi import (
    ASGIReceiveCallable,
    ASGISendCallable,
    ClientGone,
    HTTPScope,
    body_reader,
    respond,
)
from smista.front.asked import Asked, header_map
from smista.front.auth import Auth
from smista.front.bodies import CONTINUATION, EXECUTE, read_body
from smista.front.faults import log_fault
from smista.front.ids import session_uuid
from smista.front.mask import needles
from smista.front.rates import AddressRates
from smista.front.replies import Reply, error_reply, json_reply
from smista.front.settings import FrontSettings
from smista.front.sse import KEEP_ALIVE, STREAM_HEADERS, frames
from smista.ports.sessions import Call, Sessions, TurnReader

CONTINUE: Final = "continue"
_TEMPLATE: Final = "/api/v1/sessions/{session_id}/"

Address = IPv4Address | IPv6Address | None


class Turns:
    """Answers the two endpoints that run a turn."""

    def __init__(
        self, sessions: Sessions, auth: Auth, rates: AddressRates, settings: FrontSettings
    ) -> None:
        self._sessions = sessions
        self._auth = auth
        self._rates = rates
        self._settings = settings

    async def answer(
        self,
        scope: HTTPScope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        *,
        session_id: str,
        action: str,
        address: Address,
    ) -> None:
        """Serve one request; returns when it is answered or its client has left."""
        asked = Asked(
            headers=header_map(scope["headers"]),
            query={},
            read=body_reader(
                receive,
                limit=self._settings.max_request_body_bytes,
                timeout=self._settings.durations.body,
            ),
            template=_TEMPLATE + action,
            session_id=session_id,
        )
        relay = _Relay(asked, send, self._settings)
        try:
            call = await self._call(asked, action, address)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
                await relay.run(call, self._sessions)
                nursery.cancel_scope.cancel()
        except SmistaError as error:
            await relay.refuse(error)
        except ClientGone:
            return

    async def _call(self, asked: Asked, action: str, address: Address) -> Call:
        try:
            call = await self._parsed(asked, action)
        except SmistaError:
            self._charge(action, address)
            raise
        if not isinstance(call.message, Break | Inject):
            self._charge(action, address)
        return call

    def _charge(self, action: str, address: Address) -> None:
        # Everything else was charged at the gate; only here a break must always come through.
        if action == CONTINUE and (error := self._rates.charge(address)):
            raise error

    async def _parsed(self, asked: Asked, action: str) -> Call:
        identity = await self._auth.verify(asked.headers.get("authorization"))
        session_id = session_uuid(asked.session_id)
        message: Message
        if action == CONTINUE:
            message = await read_body(asked, CONTINUATION)
        else:
            message = Execute(request=await read_body(asked, EXECUTE))
        return Call(
            user_id=identity.user_id,
            session_id=session_id,
            message=message,
            credentials=asked.provider_keys(),
            idempotency_key=asked.idempotency_key(),
        )


class _Relay:
    """From one turn to one client, buffered or as a stream."""

    def __init__(self, asked: Asked, send: ASGISendCallable, settings: FrontSettings) -> None:
        self._asked = asked
        self._send = send
        self._keep_alive = settings.durations.keep_alive
        self._deadline = trio.current_time() + settings.request_timeout
        self._keys = asked.secrets()
        self._hidden = needles(self._keys)
        self._streaming = False

    async def run(self, call: Call, sessions: Sessions) -> None:
        """Tell and relay; every error, foreseen or not, becomes the client's answer."""
        try:
            await self._relay(call, sessions)
        except SmistaError as error:
            await self.refuse(error)
        except Exception as fault:  # A supervisor: one broken answer must not end the daemon.
            await self.refuse(log_fault(fault, self._asked.template, self._keys))

    async def refuse(self, error: SmistaError) -> None:
        """Answer *error*: as its own status, or as the turn end of a stream that is open."""
        if self._streaming:
            await self._write([failed(error)])
        else:
            await respond(self._send, error_reply(error, self._keys))

    async def _relay(self, call: Call, sessions: Sessions) -> None:
        reader = await self._tell(call, sessions)
        try:
            if self._asked.wants_stream:
                await self._stream(reader, early=isinstance(call.message, Inject))
            else:
                await respond(self._send, await self._buffered(reader))
        finally:
            reader.close()

    async def _tell(self, call: Call, sessions: Sessions) -> TurnReader:
        with trio.move_on_at(self._deadline):
            return await sessions.tell(call)
        raise RouterBusy("the router was too busy to begin in time; try again")

    async def _buffered(self, reader: TurnReader) -> Reply:
        with trio.move_on_at(self._deadline):
            return self._ended(await _last(reader))
        raise AnswerTimeout("the turn takes longer than a buffered answer may; it goes on")

    def _ended(self, end: TurnEnd) -> Reply:
        if end.error is not None:
            return error_reply(end.error, self._keys)
        return json_reply(end.envelope()).masked_for(self._keys)

    async def _stream(self, reader: TurnReader, *, early: bool) -> None:
        """Relay the turn's events. *early*: its client wants to know first that it was taken."""
        with trio.move_on_after(self._keep_alive):
            await reader.wait_opened()
        events: Sequence[Event] = reader.ready()
        match events:
            case [TurnEnd(error=SmistaError() as error)]:
                raise error
            case _:
                await self._open()
        if early and not events:
            await self._write([])
        # The head goes out with the first event, or with the comment that stands for a silence.
        while await self._write(events or await self._next(reader)):
            events = reader.ready()

    async def _open(self) -> None:
        headers = list(STREAM_HEADERS)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        self._streaming = True

    async def _next(self, reader: TurnReader) -> Sequence[Event]:
        """Return what comes next; nothing after a silence."""
        with trio.move_on_after(self._keep_alive):
            return await reader.wait_events() or [_without_end()]
        return []

    async def _write(self, events: Sequence[Event]) -> bool:
        """Send *events* in one piece, a comment if there are none; say whether more may follow."""
        said, ended = _until_end(events)
        body = frames(said, self._keys, self._hidden) if said else KEEP_ALIVE
        await self._send({"type": "http.response.body", "body": body, "more_body": not ended})
        return not ended


def _until_end(events: Sequence[Event]) -> tuple[Sequence[Event], bool]:
    for index, event in enumerate(events):
        if isinstance(event, TurnEnd):
            return events[: index + 1], True
    return events, False


async def _last(reader: TurnReader) -> TurnEnd:
    while events := await reader.wait_events():
        if isinstance(events[-1], TurnEnd):
            return events[-1]
    return _without_end()


def _without_end() -> TurnEnd:
    return failed(InternalError("the turn ended without an outcome; look at the session"))


async def _cancel_when_gone(receive: ASGIReceiveCallable, scope: trio.CancelScope) -> None:
    while (await receive())["type"] == "http.request":
        continue
    scope.cancel()
