"""The application: every route, and who may call it. Parse, tell, answer; no decisions."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from types import TracebackType
from typing import Any, Final

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from quart import Response, request
from quart.sessions import NullSession, SecureCookieSessionInterface
from quart_trio import QuartTrio
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException, InternalServerError, MethodNotAllowed

from smista.core.errors import (
    AnswerTimeout,
    InternalError,
    InvalidRequest,
    NotFound,
    SmistaError,
)
from smista.front.asgi import too_large
from smista.front.asked import Asked, header_map, query_map, secrets_of
from smista.front.auth import Auth, Identity, utc_now
from smista.front.endpoints import Accounts, ModelEndpoints, SessionEndpoints
from smista.front.faults import log_fault
from smista.front.gate import Gate, wrong_method
from smista.front.memory import MemoryEndpoints
from smista.front.rates import AddressRates
from smista.front.replies import Reply, error_reply
from smista.front.settings import FrontSettings
from smista.front.turns import Turns
from smista.ports.journal import Journal
from smista.ports.sessions import Sessions

_API: Final = "/api/v1"
_SESSION: Final = "/sessions/<session_id>"
_FACT: Final = "/memory/<fact_id>"

Public = Callable[[Asked], Awaitable[Reply]]
Private = Callable[[Asked, Identity], Awaitable[Reply]]
_NO_SESSION: Final = NullSession()


def create_app(
    sessions: Sessions,
    journal: Journal,
    settings: FrontSettings,
    *,
    now: Callable[[], datetime] = utc_now,
) -> QuartTrio:
    """Return the whole HTTP API over *sessions*; users and tokens are kept in *journal*."""
    auth = Auth(journal, settings, now=now)
    rates = AddressRates(settings.rate)
    turns = Turns(sessions, auth, rates, settings)
    app = Front(Gate(turns, rates, settings), auth, settings)
    _add_accounts(app, Accounts(auth))
    _add_sessions(app, SessionEndpoints(sessions))
    _add_memory(app, MemoryEndpoints(sessions))
    _add_models(app, ModelEndpoints(sessions))
    return app


def _add_accounts(app: "Front", accounts: Accounts) -> None:
    app.add_public("POST", "/auth/bootstrap", accounts.bootstrap)
    app.add_public("POST", "/auth/sign-in", accounts.sign_in)
    app.add_private("POST", "/auth/sign-out", accounts.sign_out)
    app.add_private("GET", "/auth/me", accounts.me)


def _add_sessions(app: "Front", sessions: SessionEndpoints) -> None:
    app.add_private("POST", "/sessions", sessions.create)
    app.add_private("GET", "/sessions", sessions.list)
    app.add_private("GET", _SESSION, sessions.fetch)
    app.add_private("PUT", _SESSION, sessions.update)
    app.add_private("DELETE", _SESSION, sessions.delete)
    app.add_private("POST", f"{_SESSION}/preview", sessions.preview)
    app.add_private("GET", f"{_SESSION}/traces", sessions.traces)
    app.add_private("GET", f"{_SESSION}/usage", sessions.usage)
    app.add_private("GET", f"{_SESSION}/export", sessions.export)
    app.add_private("POST", "/sessions/import", sessions.take_in)
    app.add_private("GET", "/usage", sessions.spending)


def _add_memory(app: "Front", memory: MemoryEndpoints) -> None:
    app.add_private("GET", "/memory", memory.list)
    app.add_private("GET", _FACT, memory.fetch)
    app.add_private("DELETE", _FACT, memory.delete)


def _add_models(app: "Front", models: ModelEndpoints) -> None:
    app.add_private("GET", "/llm/providers", models.providers)
    app.add_private("GET", "/llm/models", models.models)


class NoCookies(SecureCookieSessionInterface):
    """There is no cookie session: a token says who asks, on every request."""

    async def open_session(self, app: Any, request: Any) -> NullSession:
        return _NO_SESSION


class Front(QuartTrio):
    """Quart behind the gate, speaking our errors only."""

    def __init__(self, gate: Gate, auth: Auth, settings: FrontSettings) -> None:
        super().__init__("smista.front", static_folder=None)
        self.session_interface = NoCookies()
        self._gate = gate
        self._auth = auth
        self._timeout = settings.request_timeout
        self._limit = settings.max_request_body_bytes
        self.config["RESPONSE_TIMEOUT"] = None
        self.config["BODY_TIMEOUT"] = settings.durations.body
        self.config["MAX_CONTENT_LENGTH"] = self._limit
        self.url_map.merge_slashes = False
        self.url_map.strict_slashes = True
        self.register_error_handler(HTTPException, self._answer_http)

    async def asgi_app(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Serve one connection scope; a WebSocket is refused."""
        if scope["type"] == "http":
            await self._gate.pass_on(scope, receive, send, super().asgi_app)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": None})
        else:
            await super().asgi_app(scope, receive, send)

    def add_public(self, method: str, path: str, endpoint: Public) -> None:
        async def answer(asked: Asked) -> Reply:
            return await endpoint(asked)

        self._add(method, path, answer)

    def add_private(self, method: str, path: str, endpoint: Private) -> None:
        async def answer(asked: Asked) -> Reply:
            identity = await self._auth.verify(asked.headers.get("authorization"))
            return await endpoint(asked, identity)

        self._add(method, path, answer)

    def _add(self, method: str, path: str, answer: Public) -> None:
        rule = _API + path

        async def view(session_id: str | None = None, fact_id: str | None = None) -> Response:
            asked = Asked(
                headers=header_map(request.scope["headers"]),
                query=query_map(request.scope["query_string"]),
                read=_read_body,
                template=rule,
                session_id=session_id,
                fact_id=fact_id,
            )
            return _response(await self._answer(answer, asked))

        self.add_url_rule(
            rule,
            endpoint=f"{method} {path}",
            view_func=view,
            methods=[method],
            provide_automatic_options=False,
        )

    async def _answer(self, answer: Public, asked: Asked) -> Reply:
        keys = asked.secrets()
        try:
            with trio.move_on_after(self._timeout):
                return (await answer(asked)).masked_for(keys)
            raise AnswerTimeout("the answer took too long; try again")
        except SmistaError as error:
            return error_reply(error, keys)

    async def _answer_http(self, error: HTTPException) -> Response:
        """Say what Quart found in our words."""
        if isinstance(error, MethodNotAllowed):
            return _response(wrong_method(", ".join(error.valid_methods or ()).encode()))
        return _response(error_reply(self._translated(error)))

    def _translated(self, error: HTTPException) -> SmistaError:
        match error.code:
            case 404:
                return NotFound("there is no such endpoint; see the HTTP API reference")
            case 408:
                return AnswerTimeout("the request body did not arrive in time; send it again")
            case 413:
                return too_large(self._limit)
            case _ if isinstance(error, InternalServerError):
                return InternalError("the router failed; its log says more")
            case _:
                return InvalidRequest("the request cannot be read")

    def log_exception(
        self,
        exception_info: tuple[type, BaseException, TracebackType] | tuple[None, None, None],
    ) -> None:
        """Log a fault under the template of its path, with all keys masked."""
        error = exception_info[1]
        if error is not None:
            keys = secrets_of(header_map(request.scope["headers"]))
            place = request.url_rule.rule if request.url_rule else "an unknown path"
            log_fault(error, place, keys)


async def _read_body() -> bytes:
    return await request.get_data(cache=True, as_text=False, parse_form_data=False)


def _response(reply: Reply) -> Response:
    headers = Headers((name.decode(), value.decode("latin-1")) for name, value in reply.headers)
    return Response(reply.body, status=reply.status, headers=headers)
