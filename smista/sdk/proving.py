"""Connections to a router of this machine prove whose router is at their other end.

Each is asked right after it was made, before anything else goes out on it: a router that dies
leaves its port to anybody, and a client that goes on would tell them what was meant for it.
"""

import json
from collections.abc import Sequence
from secrets import token_urlsafe
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import h11
import httpcore
import trio
from pydantic import SecretStr

from smista.core.challenge import CHALLENGE, proves
from smista.sdk.errors import Unproven, Unreachable, is_object

SECONDS: Final = 5.0
"""How long a living router may take to prove itself."""
_LARGEST: Final = 64 * 1024
_MADE: Final = "connection.connect_tcp.complete"


class Stream(Protocol):
    """A connection, as the HTTP client makes it."""

    async def read(self, max_bytes: int) -> bytes: ...

    async def write(self, buffer: bytes) -> None: ...

    async def aclose(self) -> None: ...

    def get_extra_info(self, info: str) -> Any: ...


class Proving:
    """Told of what the HTTP client does; lets no connection pass that does not prove itself.

    Raises Unproven, or Unreachable where nothing is answered.
    """

    def __init__(self, url: str, secrets: Sequence[SecretStr]) -> None:
        self._url = url
        self._secrets = tuple(secrets)

    async def __call__(self, event: str, info: dict[str, Any]) -> None:
        if event != _MADE:
            return
        stream: Stream = info["return_value"]
        proven = False
        try:
            with trio.fail_after(SECONDS):
                await self._challenge(stream)
            proven = True
        except trio.TooSlowError:
            raise Unreachable(self._url, "it is silent") from None
        except (httpcore.NetworkError, httpcore.TimeoutException, OSError) as error:
            raise Unreachable(self._url, "the connection broke") from error
        finally:
            if not proven:
                with trio.CancelScope(shield=True):
                    await stream.aclose()

    async def _challenge(self, stream: Stream) -> None:
        nonce = token_urlsafe(32)
        # Asked now: where the other end has left, there is no socket to ask any more.
        address, port = stream.get_extra_info("server_addr")[:2]
        answer = await self._ask(stream, nonce)
        known = (each.get_secret_value() for each in self._secrets)
        if not any(proves(answer, each, nonce, address=address, port=port) for each in known):
            raise Unproven(self._url)

    async def _ask(self, stream: Stream, nonce: str) -> str:
        """Return what is answered to *nonce*; the connection is as good as new afterwards."""
        wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST)
        headers = [("Host", urlsplit(self._url).netloc), (CHALLENGE, nonce)]
        asked = h11.Request(method="GET", target="/status", headers=headers)
        await stream.write((wire.send(asked) or b"") + (wire.send(h11.EndOfMessage()) or b""))
        try:
            body = await self._body(wire, stream)
        except h11.RemoteProtocolError as error:
            raise Unproven(self._url) from error
        return _proof_in(body)

    async def _body(self, wire: h11.Connection, stream: Stream) -> bytes:
        body, taken = b"", 0
        while True:
            match wire.next_event():
                case h11.NEED_DATA:
                    piece = await stream.read(_LARGEST)
                    taken += len(piece)
                    wire.receive_data(piece)
                case h11.Data(data=data):
                    body += data
                case h11.EndOfMessage():
                    return body
                case h11.Response() | h11.InformationalResponse():
                    pass
                case _:
                    raise Unproven(self._url)
            if taken > _LARGEST:
                raise Unproven(self._url)


def _proof_in(body: bytes) -> str:
    try:
        told: object = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    proof: object = told.get("proof") if is_object(told) else None
    return proof if isinstance(proof, str) else ""
