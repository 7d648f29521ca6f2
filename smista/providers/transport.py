"""The only module that sends bytes to a provider: one POST, one answer.

A second try is the turn's business. What is sent again here is only what a connection swallowed
that the server had hung up before.
"""

import ssl
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx
import trio
from pydantic import SecretStr

from smista.core.errors import (
    InvalidProviderConfiguration,
    InvalidProviderCredentials,
    ProviderError,
    ProviderFailure,
    ProviderTimeout,
    ProviderUnavailable,
)
from smista.core.model_ref import ProviderDescriptor
from smista.core.prompt import Prompt
from smista.core.stream import StreamEvent
from smista.net import Client, closing_reads, create_request
from smista.providers.masking import Mask, create_mask
from smista.providers.peers import require_near_peer
from smista.providers.retry_after import retry_after
from smista.providers.wire import Decoder, Dialect, WireRequest

_ERROR_BODY: Final = 64 * 1024
# The last bytes of a chunked body may trail the end of the answer; a connection that is read
# to its end can be used again.
_TRAILER_WAIT: Final = 0.01
_HUNG_UP: Final = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
# A dead connection fails after one round trip; whoever takes longer has begun to work.
_AT_ONCE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait, in seconds: for the first data, between data, for a whole answer."""

    first: float = 180
    silence: float = 180
    total: float = 3600
    error_body: float = 10


class WireProvider:
    """A Provider: a dialect and the client that carries it.

    *limiter* bounds the answers that are under way; a caller who has to queue may be cancelled
    at any time, and the wait does not count as the provider's silence.
    """

    def __init__(
        self,
        *,
        descriptor: ProviderDescriptor,
        dialect: Dialect,
        client: Client,
        limiter: trio.CapacityLimiter,
        patience: Patience,
    ) -> None:
        self._descriptor = descriptor
        self._dialect = dialect
        self._client = client
        self._limiter = limiter
        self._patience = patience
        self._extensions = {"trace": require_near_peer(descriptor.id)} if descriptor.local else {}

    @property
    def descriptor(self) -> ProviderDescriptor:
        return self._descriptor

    @property
    def limiter(self) -> trio.CapacityLimiter:
        """The queue in front of this provider, for figures."""
        return self._limiter

    @asynccontextmanager
    async def open_stream(
        self, prompt: Prompt, *, key: SecretStr | None
    ) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        """Send *prompt*, yield the answer's events (`ports.provider`). Leaving closes the socket.

        Raises ProviderError on entry and while iterating.
        """
        mask = create_mask(key)
        request = self._dialect.request(prompt)
        turn = object()  # a task may hold two streams, the limiter counts streams
        await self._limiter.acquire_on_behalf_of(turn)
        try:
            async with self._post(request, key, mask) as stream:
                yield stream
        finally:
            self._limiter.release_on_behalf_of(turn)

    @asynccontextmanager
    async def _post(
        self, request: WireRequest, key: SecretStr | None, mask: Mask
    ) -> AsyncGenerator["WireStream"]:
        sent = trio.current_time()
        response = await self._send(request, self._headers(request, key), mask)
        try:
            # Not aiter_raw(): it cuts nothing and only adds a layer to each read.
            async with closing_reads(_parts(response)) as parts:
                if not response.is_success:
                    raise await self._failure(response, parts, mask)
                self._refuse_encoding(response)
                yield WireStream(
                    name=self._descriptor.id,
                    parts=parts,
                    decoder=self._dialect.decoder(request, mask),
                    patience=self._patience,
                    sent=sent,
                )
        finally:
            await response.aclose()

    def _headers(self, request: WireRequest, key: SecretStr | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", **request.headers}
        if key is None:
            return headers
        require_sendable(self._descriptor.id, key)
        return {**headers, **self._dialect.key_headers(key)}

    async def _send(
        self, request: WireRequest, headers: dict[str, str], mask: Mask
    ) -> httpx.Response:
        try:
            built = create_request(
                self._client,
                "POST",
                request.url,
                body=request.body,
                headers=headers,
                extensions=self._extensions,
            )
            with trio.fail_after(self._patience.first):
                return await self._reach(built)
        except trio.TooSlowError:
            raise stalled(self._descriptor.id, self._patience.first) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # The original may quote headers, so it does not travel on as the cause.
            raise unsent(self._descriptor.id, request.url, error, mask) from None

    async def _reach(self, built: httpx.Request) -> httpx.Response:
        """Send *built*, and once more if the connection ends at once without a byte of answer.

        Some servers (llama.cpp's is one) keep a connection in name only: they hang up right
        after an answer, just when the next request is on its way.
        """
        begun = trio.current_time()
        try:
            return await self._client.send(built, stream=True)
        except _HUNG_UP:
            if trio.current_time() - begun > _AT_ONCE:
                raise
            return await self._client.send(built, stream=True)

    async def _failure(
        self, response: httpx.Response, parts: AsyncIterator[bytes], mask: Mask
    ) -> ProviderError:
        body = bytearray()
        with trio.move_on_after(self._patience.error_body), suppress(httpx.TransportError):
            async for part in parts:
                body += part
                if len(body) > _ERROR_BODY:
                    break
        said = b"" if is_encoded(response) else bytes(body[:_ERROR_BODY])
        error = self._dialect.failure(response.status_code, said, mask)
        if error.retryable:
            wait = response.headers.get("retry-after")
            asked = retry_after(wait, now=datetime.now(UTC))
            # Without the header, what the body asked for holds.
            error.retry_after = error.retry_after if asked is None else asked
        return error

    def _refuse_encoding(self, response: httpx.Response) -> None:
        if is_encoded(response):
            name = self._descriptor.id
            text = f"{name} compressed its answer although smista asked it not to"
            raise ProviderFailure(text, kind="encoded_answer", provider=name)


def require_sendable(name: str, key: SecretStr) -> None:
    """Raise InvalidProviderCredentials if no header can carry *key*."""
    secret = key.get_secret_value()
    if not secret.isascii() or not secret.isprintable():
        raise InvalidProviderCredentials(
            f"the key stored for {name} holds characters that no header can carry; store it again",
            provider=name,
        )


def unsent(
    name: str, url: str, error: httpx.HTTPError | httpx.InvalidURL, mask: Mask
) -> ProviderError:
    """Return the error for a request that got no answer."""
    if (distrust := _certificate_fault(error)) is not None:
        text = f"the certificate at {url} is not to be trusted: {distrust}"
        return ProviderFailure(text, kind="bad_certificate", provider=name)
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            said = mask(str(error))[:200] or "no answer"
            text = f"{name} cannot be reached at {url} ({said}); is the server running?"
            return ProviderUnavailable(text, kind="connect_failed", provider=name)
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | httpx.InvalidURL():
            text = f"the base_url of {name} makes no request; write http(s)://host[:port]/path"
            return InvalidProviderConfiguration(text, provider=name)
        case _:
            text = f"{name} closed the connection before it answered"
            return ProviderUnavailable(text, kind="connection_lost", provider=name)


def _certificate_fault(error: BaseException) -> str | None:
    """Return what is wrong with the peer's certificate, if that is why *error* was raised."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return None if cause is None else cause.verify_message


def _parts(response: httpx.Response) -> AsyncIterator[bytes]:
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("an asynchronous client answers with an asynchronous stream")
    return aiter(response.stream)


def is_encoded(response: httpx.Response) -> bool:
    encoding = response.headers.get("content-encoding", "identity")
    return encoding.strip().lower() not in ("", "identity")


def stalled(name: str, seconds: float) -> ProviderTimeout:
    """Return the error for a provider that has been silent for too long."""
    text = f"{name} has sent no data for {seconds:g} seconds"
    return ProviderTimeout(text, kind="stalled", provider=name)


class WireStream:
    """The events of one answer. Only the time spent waiting for the provider counts."""

    def __init__(
        self,
        *,
        name: str,
        parts: AsyncIterator[bytes],
        decoder: Decoder,
        patience: Patience,
        sent: float,
    ) -> None:
        self._name = name
        self._parts = parts
        self._decoder = decoder
        self._patience = patience
        self._ready: deque[StreamEvent] = deque()
        self._closed = False
        self._ends = sent + patience.total
        self._limit = patience.first
        self._left = patience.first - (trio.current_time() - sent)

    def __aiter__(self) -> "WireStream":
        return self

    async def __anext__(self) -> StreamEvent:
        while not self._ready:
            if self._decoder.fault is not None:
                raise self._decoder.fault
            if self._decoder.done:
                await self._read_trailer()
                raise StopAsyncIteration
            await self._read()
        return self._ready.popleft()

    async def _read(self) -> None:
        """Wait for bytes and decode them; heartbeats use up the time that is left."""
        begun, beats = trio.current_time(), self._decoder.beats
        part: bytes | None = None
        # Not fail_at(), whose two layers would cost more than the read does.
        with trio.CancelScope(deadline=min(begun + self._left, self._ends)) as scope:
            part = await self._next_part()
        if scope.cancelled_caught:
            raise self._too_slow()
        self._ready += self._decoder.close() if part is None else self._decoder.feed(part)
        self._left -= trio.current_time() - begun
        if self._decoder.beats != beats:
            self._left = self._limit = self._patience.silence

    async def _next_part(self) -> bytes | None:
        try:
            return await anext(self._parts, None)
        except httpx.TransportError:
            # A broken connection is an end of bytes; the decoder knows if the answer was whole.
            return None

    def _too_slow(self) -> ProviderTimeout:
        if trio.current_time() >= self._ends:
            text = f"{self._name} is still answering after {self._patience.total:g} seconds"
            return ProviderTimeout(text, kind="endless", provider=self._name)
        return stalled(self._name, self._limit)

    async def _read_trailer(self) -> None:
        if self._closed:
            return
        self._closed = True
        with trio.move_on_after(_TRAILER_WAIT), suppress(httpx.TransportError):
            async for _ in self._parts:
                pass
