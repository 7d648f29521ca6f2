"""The outermost layer: whatever a stranger sends is judged here, by its head alone, in order.

Browser rules (403) → size (413) → credentials in the query (400) → rate of the address (429).
What passes goes to the relay of turns or to Quart.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from hypercorn.typing import ASGISendEvent

from smista.core.challenge import CHALLENGE, is_nonce, proof
from smista.core.errors import InvalidRequest, MethodNotAllowed, SmistaError
from smista.front.asgi import (
    ASGIReceiveCallable,
    ASGISendCallable,
    HTTPScope,
    respond,
    too_large,
)
from smista.front.asked import header_map, secrets_of
from smista.front.guard import browser_refusal, client_address, query_refusal
from smista.front.rates import AddressRates
from smista.front.replies import Header, Reply, error_reply, json_reply
from smista.front.settings import FrontSettings
from smista.front.turns import CONTINUE, Address, Turns

_TURN: Final = re.compile(r"/api/v1/sessions/([^/]+)/(execute|continue)\Z")
_STATUS: Final = "/status"
_CHALLENGE: Final = CHALLENGE.lower().encode()
_METHODS: Final = b"GET, POST, PUT, DELETE"
_TOKENS: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{0,2000}\Z")
_PREFLIGHT_SECONDS: Final = b"600"

Inner = Callable[[HTTPScope, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]


class Gate:
    """Lets a request in, or answers it."""

    def __init__(self, turns: Turns, rates: AddressRates, settings: FrontSettings) -> None:
        self._turns = turns
        self._rates = rates
        self._settings = settings
        self._said = {"status": "ok", "version": settings.version}
        self._status = json_reply(self._said)

    async def pass_on(
        self, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable, inner: Inner
    ) -> None:
        """Answer the request here or hand it to *inner*."""
        address = self._address(scope)
        refusal = self._refusal(scope, address)
        if refusal is not None:
            keys = secrets_of(header_map(scope["headers"]))
            await respond(self._marked(scope, send), error_reply(refusal, keys))
            return
        send = self._marked(scope, send)
        if reply := self._own(scope):
            await respond(send, reply)
        elif turn := _TURN.match(scope["path"]):
            await self._turns.answer(
                scope, receive, send, session_id=turn[1], action=turn[2], address=address
            )
        else:
            await inner(scope, receive, send)

    def _refusal(self, scope: HTTPScope, address: Address) -> SmistaError | None:
        return (
            browser_refusal(
                scope["headers"],
                server=_server(scope),
                host=self._settings.host.lower(),
                names=self._settings.names,
                origins=self._settings.cors_origins,
            )
            or self._head_refusal(scope)
            or query_refusal(scope["query_string"])
            or (None if _is_continue(scope) else self._rates.charge(address))
        )

    def _head_refusal(self, scope: HTTPScope) -> SmistaError | None:
        limit = self._settings.max_request_body_bytes
        length = _header(scope, b"content-length")
        if length.isdigit() and (len(length) > len(str(limit)) or int(length) > limit):
            return too_large(limit)
        if not scope["path"].startswith("/"):
            return InvalidRequest("the request target must be a path")
        return None

    def _address(self, scope: HTTPScope) -> Address:
        peer = scope["client"][0] if scope["client"] else ""
        trust = self._settings.trust_proxy_headers
        return client_address(scope["headers"], peer, trust_proxy_headers=trust)

    def _own(self, scope: HTTPScope) -> Reply | None:
        """Return the answer to what needs neither Quart nor a turn: status, preflight, 405."""
        path, method = scope["path"], scope["method"]
        if method == "OPTIONS" and _header(scope, b"access-control-request-method"):
            return _preflight(scope)
        if path == _STATUS:
            return self._told(scope) if method in ("GET", "HEAD") else wrong_method(b"GET, HEAD")
        if method != "POST" and _TURN.match(path):
            return wrong_method(b"POST")
        return None

    def _told(self, scope: HTTPScope) -> Reply:
        """Return the status; to whoever asks for it, with the proof whose router this is."""
        nonce = _header(scope, _CHALLENGE).decode("latin-1")
        secret = self._settings.secret
        if secret is None or not is_nonce(nonce):
            return self._status
        # The socket's own address: what the Host header says is the client's word.
        address, port = _server(scope)
        made = proof(secret.get_secret_value(), nonce, address=address, port=port)
        return json_reply({**self._said, "proof": made})

    def _marked(self, scope: HTTPScope, send: ASGISendCallable) -> ASGISendCallable:
        """Return *send* with the CORS headers of an allowed origin on the answer."""
        origin = _header(scope, b"origin")
        if not origin or origin.decode("latin-1") not in self._settings.cors_origins:
            return send
        marks: list[Header] = [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", b"retry-after"),
            (b"vary", b"origin"),
        ]

        async def marked(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *marks]
            await send(message)

        return marked


def wrong_method(allowed: bytes) -> Reply:
    error = MethodNotAllowed(f"this path takes {allowed.decode()}")
    return error_reply(error).plus((b"allow", allowed))


def _preflight(scope: HTTPScope) -> Reply:
    # Provider key headers have any name, so what is asked for is granted to an allowed origin.
    asked = _header(scope, b"access-control-request-headers")
    names = asked if _TOKENS.match(asked) else b""
    return Reply(204, b"", ()).plus(
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", names),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    )


def _is_continue(scope: HTTPScope) -> bool:
    turn = _TURN.match(scope["path"])
    return turn is not None and turn[2] == CONTINUE and scope["method"] == "POST"


def _server(scope: HTTPScope) -> tuple[str, int]:
    host, port = scope["server"] or ("", 0)
    return host, port or 0


def _header(scope: HTTPScope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")
