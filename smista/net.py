"""How smista uses its HTTP client: shared by the providers and the SDK.

No redirects, no cookies, no compression, no pool limit: httpcore 1.0.9 loses pool slots when a
request is cancelled while it queues for one, so callers queue in a limiter of their own.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, Protocol, TypeVar

import httpx
import trio

from smista import __version__

T = TypeVar("T")

# Reads have no limit of their own: whoever reads knows how long silence may last.
TIMEOUT: Final = httpx.Timeout(connect=10, write=30, read=None, pool=None)
_LIMITS: Final = httpx.Limits(
    max_connections=None, max_keepalive_connections=20, keepalive_expiry=30
)
_HEADERS: Final = {"Accept-Encoding": "identity", "User-Agent": f"smista/{__version__}"}


def create_client(
    base_url: str, *, local: bool, timeout: httpx.Timeout = TIMEOUT
) -> httpx.AsyncClient:
    """Return a client for *base_url*; make it once and share it between tasks.

    *local*: proxies and other settings of the environment are ignored. Certificates are always
    checked over https; a plain http client is spared the load of the CA bundle (17 ms).
    """
    return httpx.AsyncClient(
        base_url=base_url,
        verify=not is_plain(base_url),
        trust_env=not local,
        follow_redirects=False,
        timeout=timeout,
        limits=_LIMITS,
        headers=_HEADERS,
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
    )


class Client(Protocol):
    """What sends requests: an httpx client, or one that is yet to be made."""

    def build_request(
        self,
        method: str,
        url: str,
        *,
        content: bytes,
        headers: Mapping[str, str],
        extensions: dict[str, Any] | None,
    ) -> httpx.Request: ...

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response: ...


class LazyClient:
    """A client that is made when it is first used, for hosts that are perhaps never asked."""

    def __init__(self, base_url: str, *, local: bool) -> None:
        self._make = partial(create_client, base_url, local=local)
        self._made: httpx.AsyncClient | None = None
        self._closed = False

    def build_request(
        self,
        method: str,
        url: str,
        *,
        content: bytes,
        headers: Mapping[str, str],
        extensions: dict[str, Any] | None,
    ) -> httpx.Request:
        client = self._client()
        return client.build_request(
            method, url, content=content, headers=headers, extensions=extensions
        )

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        return await self._client().send(request, stream=stream)

    async def aclose(self) -> None:
        self._closed = True
        if self._made is not None:
            await self._made.aclose()

    def _client(self) -> httpx.AsyncClient:
        if self._made is None:
            if self._closed:
                raise RuntimeError("the client is closed and was never used")
            self._made = self._make()
        return self._made


class DirectClient:
    """A client for a host of the user's own: httpx's transport, and nothing of its client.

    There are no proxies, redirects, cookies and sign-ins to look after, which takes a third of
    the time of a short request.
    """

    def __init__(self, base_url: str, *, timeout: httpx.Timeout = TIMEOUT) -> None:
        self._extensions = {"timeout": timeout.as_dict()}
        self._transport = httpx.AsyncHTTPTransport(
            verify=not is_plain(base_url), trust_env=False, limits=_LIMITS
        )
        self._closed = False

    def build_request(
        self,
        method: str,
        url: str,
        *,
        content: bytes,
        headers: Mapping[str, str],
        extensions: dict[str, Any] | None,
    ) -> httpx.Request:
        return httpx.Request(
            method,
            url,
            content=content,
            headers={"Accept": "*/*", **_HEADERS, **headers},
            extensions={**self._extensions, **(extensions or {})},
        )

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        if self._closed:
            raise RuntimeError("the client is closed")
        response = await self._transport.handle_async_request(request)
        response.request = request
        if not stream:
            await response.aread()
        return response

    async def aclose(self) -> None:
        self._closed = True
        await self._transport.aclose()


def is_plain(url: str) -> bool:
    """Tell if *url* is http, so that no certificate will ever be looked at."""
    return httpx.URL(url).scheme == "http"


class WholeBody(httpx.AsyncByteStream):
    """A request body in one part.

    The client's own kind is an async generator, and one that is cancelled while it writes is
    left to the garbage collector, which Trio reports.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Parts([self._body] if self._body else [])


class _Parts(AsyncIterator[bytes]):
    def __init__(self, parts: list[bytes]) -> None:
        self._parts = iter(parts)

    async def __anext__(self) -> bytes:
        part = next(self._parts, None)
        if part is None:
            raise StopAsyncIteration
        return part


def create_request(
    client: Client,
    method: str,
    url: str,
    *,
    body: bytes,
    headers: Mapping[str, str],
    extensions: Mapping[str, Any] | None = None,
) -> httpx.Request:
    """Return a request that may be cancelled at any moment."""
    more = dict(extensions) if extensions is not None else None
    request = client.build_request(method, url, content=body, headers=headers, extensions=more)
    request.stream = WholeBody(body)
    return request


@asynccontextmanager
async def closing_reads(parts: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T]]:
    """Let a response be left in the middle.

    httpx reads through nested async generators, and closing the outer one leaves the inner
    ones to the garbage collector. Reads that are already cancelled take what has come in, up
    to the first one that would wait; that one unwinds them all and closes the connection. A
    response that was complete thereby gives its connection back to the pool.
    """
    try:
        yield parts
    finally:
        with trio.CancelScope() as scope, suppress(httpx.HTTPError, httpx.StreamError):
            scope.cancel()
            async for _ in parts:
                pass
