"""Small JSON answers, such as lists of models: one request, one bounded body, no second try."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import httpx
from pydantic import SecretStr

from smista.core.errors import BadStream, ProviderError, ProviderFailure
from smista.net import Client, closing_reads, create_request
from smista.providers.json_values import BadJson, parse_json
from smista.providers.masking import Mask, create_mask
from smista.providers.peers import Trace
from smista.providers.transport import is_encoded, require_sendable, unsent

_LARGEST: Final = 16 * 1024 * 1024
_ERROR_BODY: Final = 64 * 1024
_DEPTH: Final = 64

Failed = Callable[[int, bytes, Mask], ProviderError]


class Fetcher:
    """Asks one provider for JSON. *failed* reads its error answers; *trace* watches its peers."""

    def __init__(
        self,
        *,
        provider: str,
        client: Client,
        failed: Failed,
        key_headers: Callable[[SecretStr], Mapping[str, str]],
        trace: Trace | None = None,
    ) -> None:
        self._provider = provider
        self._client = client
        self._failed = failed
        self._key_headers = key_headers
        self._extensions = {"trace": trace} if trace is not None else {}

    async def get(
        self, url: str, *, key: SecretStr | None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Return the JSON at *url*. Raises ProviderError; how long it may take is the caller's."""
        return await self._ask("GET", url, b"", key, headers or {})

    async def post(self, url: str, body: Mapping[str, Any], *, key: SecretStr | None) -> Any:
        """Return the JSON that answers *body*. Raises ProviderError."""
        headers = {"Content-Type": "application/json"}
        return await self._ask("POST", url, json.dumps(body).encode(), key, headers)

    async def _ask(
        self,
        method: str,
        url: str,
        body: bytes,
        key: SecretStr | None,
        headers: Mapping[str, str],
    ) -> Any:
        mask = create_mask(key)
        sent = {"Accept": "application/json", **headers}
        if key is not None:
            require_sendable(self._provider, key)
            sent |= self._key_headers(key)
        try:
            request = create_request(
                self._client, method, url, body=body, headers=sent, extensions=self._extensions
            )
            response = await self._client.send(request, stream=True)
            try:
                return await self._read(response, mask)
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unsent(self._provider, url, error, mask) from None

    async def _read(self, response: httpx.Response, mask: Mask) -> Any:
        if is_encoded(response):
            text = f"{self._provider} compressed its answer although smista asked it not to"
            raise ProviderFailure(text, kind="encoded_answer", provider=self._provider)
        async with closing_reads(response.aiter_raw()) as parts:
            limit = _LARGEST if response.is_success else _ERROR_BODY
            body = await _collect(parts, limit)
        if not response.is_success:
            raise self._failed(response.status_code, body[:_ERROR_BODY], mask)
        if len(body) > _LARGEST:
            raise self._bad("too_large", "the list is larger than we accept")
        try:
            return parse_json(body, depth=_DEPTH)
        except BadJson as error:
            raise self._bad("bad_frame", str(error)) from None

    def _bad(self, kind: str, what: str) -> ProviderError:
        return BadStream(f"{self._provider}: {what}", kind=kind, provider=self._provider)


async def _collect(parts: AsyncIterator[bytes], limit: int) -> bytes:
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > limit:
            break
    return bytes(body)
