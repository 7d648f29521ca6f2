"""The router's HTTP API as methods. One client is one identity; keys travel in headers only.

It parses and carries; it decides nothing, and it asks once (a lapsed token aside).
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx
from pydantic import BaseModel, SecretStr, ValidationError

from smista.core.events import Event, TurnEnd
from smista.core.messages import Continuation
from smista.core.request import ExecuteRequest
from smista.net import WholeBody, closing_reads, create_client
from smista.sdk.answers import (
    Identity,
    Models,
    Providers,
    RememberedFact,
    RouterStatus,
    SessionDetail,
    SessionSummary,
    Token,
    TraceEntry,
)
from smista.sdk.errors import (
    ApiError,
    BadAnswer,
    NotSignedIn,
    SdkError,
    Unreachable,
    api_error,
    is_object,
)
from smista.sdk.frames import FrameReader, event_of, turn_of
from smista.sdk.proving import Proving

DEFAULT_URL: Final = "http://127.0.0.1:7331"
_API: Final = "/api/v1"
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Where the router is and how long to wait, in seconds.

    *silence* bounds the pause between two bytes of a stream; the router breaks it every 15 s.
    *credentials* are provider keys by provider id; they go with the calls that reach a model.
    With *secrets* every connection must prove that the router at its end knows one of them
    (`X-Smista-Challenge`), before anything else is sent on it; None asks for no proof.
    """

    url: str = DEFAULT_URL
    connect_timeout: float = 5.0
    request_timeout: float = 120.0
    silence: float = 60.0
    credentials: Mapping[str, SecretStr] = field(default_factory=dict[str, SecretStr], repr=False)
    secrets: tuple[SecretStr, ...] | None = field(default=None, repr=False)


class EventStream:
    """The events of one turn, the last one a TurnEnd. Raises Unreachable if it breaks off."""

    def __init__(self, url: str, parts: AsyncIterator[bytes]) -> None:
        self._url = url
        self._parts = parts
        self._reader = FrameReader()
        self._ready: list[Event] = []
        self._ended = False

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._ended:
                raise StopAsyncIteration
            await self._read()
        event = self._ready.pop(0)
        self._ended = isinstance(event, TurnEnd)
        return event

    async def _read(self) -> None:
        try:
            piece = await anext(self._parts, None)
        except httpx.TransportError as error:
            raise Unreachable(self._url, _reason(error)) from error
        if piece is None:
            raise Unreachable(self._url, "the stream broke off before its end")
        events = (event_of(frame) for frame in self._reader.feed(piece))
        self._ready += [event for event in events if event is not None]


class Client:
    """Made by `open_client`. Its methods raise ApiError, Unreachable, BadAnswer, NotSignedIn.

    And Unproven, if the router has to prove itself.
    """

    def __init__(
        self, http: httpx.AsyncClient, config: ClientConfig, api_key: SecretStr | None
    ) -> None:
        self._http = http
        self._config = config
        self._api_key = api_key
        self._token: SecretStr | None = None
        proving = None if config.secrets is None else Proving(config.url, config.secrets)
        self._extensions: dict[str, Any] = {} if proving is None else {"trace": proving}

    @property
    def url(self) -> str:
        return self._config.url

    async def status(self) -> RouterStatus:
        """Return whether the router is up, and its version; needs no identity."""
        return _read(RouterStatus, await self._send("GET", "/status", {}))

    async def find_again(self) -> RouterStatus:
        """Return the status of a router that was lost.

        Its new connections have to prove themselves like the first one: whoever took its port
        meanwhile gets neither key nor content.
        """
        return await self.status()

    async def bootstrap(self) -> Identity:
        """Create a user; the client goes on with its key."""
        identity = _read(Identity, await self._send("POST", f"{_API}/auth/bootstrap", {}))
        self._api_key = identity.api_key
        return identity

    async def sign_in(self) -> None:
        """Exchange the API key for a token, which later calls carry."""
        if self._api_key is None:
            raise NotSignedIn
        headers = {"X-Smista-Api-Key": self._api_key.get_secret_value()}
        body = await self._send("POST", f"{_API}/auth/sign-in", headers)
        self._token = _read(Token, body).token

    async def sign_out(self) -> None:
        """Revoke the token."""
        await self._call("POST", "/auth/sign-out")
        self._token = None

    async def me(self) -> str:
        """Return the id of the user."""
        return str(_member(await self._call("GET", "/auth/me"), "user_id"))

    async def create_session(
        self, title: str, *, scope: str | None = None, key_id: str | None = None
    ) -> SessionSummary:
        body = {"title": title, "scope": scope, "key_id": key_id}
        answer = await self._call("POST", "/sessions", body=_present(body))
        return _read(SessionSummary, _member(answer, "session"))

    async def sessions(
        self, *, scope: str | None = None, title: str | None = None
    ) -> tuple[SessionSummary, ...]:
        """Return the sessions, most recently updated first, archived ones included."""
        query = _present({"scope": scope, "title": title})
        answer = await self._call("GET", "/sessions", query=query)
        return tuple(_read(SessionSummary, entry) for entry in _member(answer, "sessions"))

    async def session(self, session_id: str) -> SessionDetail:
        answer = await self._call("GET", _session(session_id))
        return _read(SessionDetail, _member(answer, "session"))

    async def update_session(
        self, session_id: str, *, title: str | None = None, archived: bool | None = None
    ) -> SessionSummary:
        body = _present({"title": title, "archived": archived})
        answer = await self._call("PUT", _session(session_id), body=body)
        return _read(SessionSummary, _member(answer, "session"))

    async def delete_session(self, session_id: str) -> None:
        await self._call("DELETE", _session(session_id))

    async def execute(
        self, session_id: str, request: ExecuteRequest, *, key: str | None = None
    ) -> TurnEnd:
        """Run one turn and return its outcome. *key* makes a repetition safe; one is made up."""
        path = f"{_session(session_id)}/execute"
        return turn_of(await self._call("POST", path, body=_json(request), key=key or _new_key()))

    async def continue_run(
        self, session_id: str, message: Continuation, *, key: str | None = None
    ) -> TurnEnd:
        """Answer a pause and return the outcome of the next turn."""
        path = f"{_session(session_id)}/continue"
        return turn_of(await self._call("POST", path, body=_json(message), key=key or _new_key()))

    def stream_execute(
        self, session_id: str, request: ExecuteRequest, *, key: str | None = None
    ) -> AbstractAsyncContextManager[EventStream]:
        """Run one turn and lend its events while it speaks; leaving early drops the connection."""
        return self._stream(f"{_session(session_id)}/execute", _json(request), key)

    def stream_continue(
        self, session_id: str, message: Continuation, *, key: str | None = None
    ) -> AbstractAsyncContextManager[EventStream]:
        """Answer a pause and lend the events of the next turn."""
        return self._stream(f"{_session(session_id)}/continue", _json(message), key)

    async def preview(self, session_id: str, request: ExecuteRequest) -> dict[str, Any]:
        """Return what `execute` would decide; no model is called."""
        path = f"{_session(session_id)}/preview"
        return await self._call("POST", path, body=_json(request), models=True)

    async def trace(
        self, session_id: str, *, offset: int = 0, limit: int = 50
    ) -> tuple[TraceEntry, ...]:
        """Return the events from *offset* on, oldest first."""
        query = {"offset": str(offset), "limit": str(limit)}
        answer = await self._call("GET", f"{_session(session_id)}/traces", query=query)
        events = _member(_member(answer, "trace"), "events")
        return tuple(_read(TraceEntry, entry) for entry in events)

    async def usage(self, session_id: str) -> dict[str, Any]:
        return await self._call("GET", f"{_session(session_id)}/usage")

    async def export_session(self, session_id: str) -> dict[str, Any]:
        """Return the whole session as a document that `import_session` takes."""
        return await self._call("GET", f"{_session(session_id)}/export")

    async def import_session(self, document: dict[str, Any]) -> SessionSummary:
        """Make a session of an exported one; an encrypted one keeps its id."""
        answer = await self._call("POST", "/sessions/import", body=document)
        return _read(SessionSummary, _member(answer, "session"))

    async def spending(
        self,
        *,
        by: str = "model",
        since: datetime | None = None,
        until: datetime | None = None,
        scope: str | None = None,
    ) -> dict[str, Any]:
        """Return the usage of all sessions, summed by `model`, `intent`, `day` or `project`."""
        bounds = {"since": since and since.isoformat(), "until": until and until.isoformat()}
        query = _present({"by": by, "scope": scope, **bounds})
        return await self._call("GET", "/usage", query=query)

    async def facts(self, *, session_id: str | None = None) -> tuple[RememberedFact, ...]:
        """Return what is remembered for you, and for that session too; newest first."""
        answer = await self._call("GET", "/memory", query=_present({"session_id": session_id}))
        return tuple(_read(RememberedFact, entry) for entry in _member(answer, "facts"))

    async def fact(self, fact_id: str, *, session_id: str | None = None) -> RememberedFact:
        answer = await self._call("GET", _fact(fact_id), query=_present({"session_id": session_id}))
        return _read(RememberedFact, _member(answer, "fact"))

    async def forget_fact(self, fact_id: str, *, session_id: str | None = None) -> None:
        """Delete a fact for good."""
        await self._call("DELETE", _fact(fact_id), query=_present({"session_id": session_id}))

    async def providers(self) -> Providers:
        return _read(Providers, await self._call("GET", "/llm/providers"))

    async def models(self) -> Models:
        return _read(Models, await self._call("GET", "/llm/models", models=True))

    @asynccontextmanager
    async def _stream(
        self, path: str, body: dict[str, Any], key: str | None
    ) -> AsyncGenerator[EventStream]:
        headers = {"Accept": _EVENTS, "Idempotency-Key": key or _new_key()}
        response = await self._open(path, body, headers)
        try:
            if not response.headers.get("content-type", "").startswith(_EVENTS):
                raise BadAnswer("asked for a stream of events and got something else")
            async with closing_reads(response.aiter_bytes()) as parts:
                yield EventStream(self.url, parts)
        finally:
            await response.aclose()

    async def _open(
        self, path: str, body: dict[str, Any], headers: Mapping[str, str]
    ) -> httpx.Response:
        timeout = httpx.Timeout(self._config.silence, connect=self._config.connect_timeout)
        for last_try in (False, True):
            sent = {**headers, **await self._bearer(), **self._provider_keys()}
            request = self._http.build_request(
                "POST",
                f"{_API}{path}",
                json=body,
                headers=sent,
                timeout=timeout,
                extensions=dict(self._extensions),
            )
            request.stream = WholeBody(request.content)
            try:
                response = await self._http.send(request, stream=True)
                if response.is_success:
                    return response
                await response.aread()
            except httpx.TransportError as error:
                raise Unreachable(self.url, _reason(error)) from error
            fault = api_error(response.status_code, _parsed(response))
            if last_try or not self._lapsed(fault):
                raise fault
            await self.sign_in()
        raise AssertionError("the second try returns or raises")

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: dict[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
        models: bool = False,
    ) -> dict[str, Any]:
        headers = {} if key is None else {"Idempotency-Key": key}
        if models or key is not None:
            headers |= self._provider_keys()
        url = f"{_API}{path}"
        try:
            return await self._send(method, url, {**headers, **await self._bearer()}, body, query)
        except ApiError as error:
            if not self._lapsed(error):
                raise
        await self.sign_in()
        return await self._send(method, url, {**headers, **await self._bearer()}, body, query)

    async def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: dict[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        request = self._request(method, url, headers, body, query)
        try:
            return _object(await self._http.send(request))
        except httpx.TransportError as error:
            raise Unreachable(self.url, _reason(error)) from error

    def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: dict[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> httpx.Request:
        request = self._http.build_request(
            method,
            url,
            headers={"Accept": _JSON, **headers},
            json=body,
            params=query,
            extensions=dict(self._extensions),
        )
        request.stream = WholeBody(request.content)
        return request

    async def _bearer(self) -> dict[str, str]:
        if self._token is None:
            await self.sign_in()
        if self._token is None:
            raise NotSignedIn
        return {"Authorization": f"Bearer {self._token.get_secret_value()}"}

    def _lapsed(self, error: SdkError) -> bool:
        renewable = isinstance(error, ApiError) and error.code == "token_expired"
        return renewable and self._api_key is not None

    def _provider_keys(self) -> dict[str, str]:
        return {
            f"X-Smista-Provider-{name.rpartition(':')[2]}-Api-Key": secret.get_secret_value()
            for name, secret in self._config.credentials.items()
        }


@asynccontextmanager
async def open_client(
    config: ClientConfig, *, api_key: SecretStr | None = None
) -> AsyncGenerator[Client]:
    """Lend a client of the router at `config.url`. Nothing is sent before the first call."""
    timeout = httpx.Timeout(
        config.request_timeout, connect=config.connect_timeout, write=30.0, pool=None
    )
    try:
        httpx.URL(config.url)
    except httpx.InvalidURL as error:
        raise Unreachable(config.url, "this is no URL") from error
    # A router's keys go nowhere but to the router, so no proxy of the environment.
    async with create_client(config.url, local=True, timeout=timeout) as http:
        yield Client(http, config, api_key)


def _session(session_id: str) -> str:
    # An id comes from a command line or a router: it must not reach another path.
    return f"/sessions/{quote(session_id, safe='')}"


def _fact(fact_id: str) -> str:
    return f"/memory/{quote(fact_id, safe='')}"


def _new_key() -> str:
    return str(uuid4())


def _reason(error: httpx.TransportError) -> str:
    match error:
        case httpx.ConnectTimeout() | httpx.ConnectError():
            return "no connection"
        case httpx.TimeoutException():
            return "it is silent"
        case _:
            return "the connection broke"


def _parsed(response: httpx.Response) -> object:
    try:
        return json.loads(response.content)
    except ValueError:
        return None


def _object(response: httpx.Response) -> dict[str, Any]:
    """Return the object that was answered. Raises ApiError or BadAnswer for anything else."""
    parsed = _parsed(response)
    if not response.is_success:
        raise api_error(response.status_code, parsed)
    if not is_object(parsed):
        raise BadAnswer("the answer is not a JSON object; is this a smista router?")
    return parsed


def _json(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", exclude_none=True)


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _member(body: object, name: str) -> Any:
    if is_object(body) and name in body:
        return body[name]
    raise BadAnswer(f"the answer lacks {name!r}; is this a smista router?")


def _read(kind: type[Answer], body: object) -> Answer:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise BadAnswer(f"the answer is no {kind.__name__}; router and client differ") from error
