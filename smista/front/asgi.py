"""The few ASGI messages that are sent without Quart."""

from collections.abc import Awaitable, Callable

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope

from smista.core.errors import AnswerTimeout, RequestTooLarge
from smista.front.replies import Reply

__all__ = [
    "ASGIReceiveCallable",
    "ASGISendCallable",
    "ClientGone",
    "HTTPScope",
    "body_reader",
    "respond",
    "too_large",
]


class ClientGone(Exception):
    """The client left before its request was whole; nobody is there to be answered."""


def too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"the body is larger than {limit} bytes; send less", limit=limit)


async def respond(send: ASGISendCallable, reply: Reply) -> None:
    """Send *reply* whole."""
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": reply.raw_headers(),
        }
    )
    await send({"type": "http.response.body", "body": reply.body, "more_body": False})


def body_reader(
    receive: ASGIReceiveCallable, *, limit: int, timeout: float
) -> Callable[[], Awaitable[bytes]]:
    """Return a function that reads the body once.

    It raises RequestTooLarge, AnswerTimeout after *timeout* seconds, or ClientGone.
    """

    async def read() -> bytes:
        with trio.move_on_after(timeout):
            return await _whole(receive, limit)
        raise AnswerTimeout("the request body did not arrive in time; send it again")

    return read


async def _whole(receive: ASGIReceiveCallable, limit: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        body += message["body"]
        if len(body) > limit:
            raise too_large(limit)
        if not message["more_body"]:
            return bytes(body)
