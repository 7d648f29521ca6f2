"""For the tool `fetch_url`: one public page as text, and no way into anybody's own network.

The address that is checked is the one that is connected, at every redirect anew. No proxy, no
cookies, no credentials.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

import httpx
import trio

from smista.net import closing_reads, create_client
from smista.sdk.errors import NotFetched

MAX_BODY: Final = 1024 * 1024
MAX_TEXT: Final = 64 * 1024
MAX_URL: Final = 2048
MAX_HOPS: Final = 5
SECONDS: Final = 30.0
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_ASSIGNMENTS: Final = IPv4Network("192.0.0.0/24")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PORTS: Final = {"http": 80, "https": 443}
_TEXTS: Final = ("json", "xml", "javascript", "yaml", "toml")


def is_public(text: str) -> bool:
    """Say if the address *text* is one of the public internet, also the one it may wrap."""
    address = ip_address(text)
    if isinstance(address, IPv4Address):
        special = address.is_multicast or address.is_reserved or address in _ASSIGNMENTS
        return address.is_global and not special
    wrapped = _wrapped(address)
    if wrapped is not None:
        return is_public(str(wrapped))
    plain = address.teredo is None and address.scope_id is None
    return plain and address in _GLOBAL_UNICAST and address.is_global


def _wrapped(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


async def resolve(host: str, port: int) -> list[str]:
    """Return all addresses of *host*."""
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How names become addresses, and which of them may be connected."""

    resolve: Callable[[str, int], Awaitable[list[str]]] = resolve
    allows: Callable[[str], bool] = is_public


INTERNET: Final = Network()


def check_url(text: str) -> httpx.URL:
    """Return *text* as a URL that may be tried. Raises NotFetched."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise NotFetched(f"`url` cannot be read: {error}") from error
    if url.scheme not in _PORTS or not url.host:
        raise NotFetched("`url` should begin with http:// or https:// and name a host")
    if url.userinfo:
        raise NotFetched("`url` should carry no user name and no password")
    if len(text) > MAX_URL:
        raise NotFetched(f"`url` is longer than {MAX_URL} characters")
    return url


async def fetch_url(url: httpx.URL, network: Network = INTERNET) -> str:
    """Return the text behind *url*. Raises NotFetched."""
    try:
        with trio.fail_after(SECONDS):
            for _ in range(MAX_HOPS + 1):
                answer = await _visit(url, network)
                if isinstance(answer, str):
                    return answer
                url = answer
    except trio.TooSlowError as error:
        raise NotFetched(f"{url.host} took more than {SECONDS:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotFetched(f"{url.host} did not answer: {error}") from error
    except OSError as error:
        raise NotFetched(f"{url.host} cannot be found: {error.strerror}") from error
    raise NotFetched(f"more than {MAX_HOPS} redirects")


async def _visit(url: httpx.URL, network: Network) -> str | httpx.URL:
    """Return the text at *url*, or where it sends us."""
    port = url.port or _PORTS[url.scheme]
    address = await _address(url.host, port, network)
    there = f"[{address}]" if ":" in address else address
    async with create_client(f"{url.scheme}://{there}:{port}", local=True) as http:
        request = http.build_request(
            "GET",
            url.raw_path.decode("ascii"),
            headers={"Host": url.netloc.decode("ascii"), "Accept": "text/*, application/json"},
            extensions={"sni_hostname": url.raw_host.decode("ascii")},
        )
        response = await http.send(request, stream=True)
        try:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                return check_url(str(url.join(response.headers["location"])))
            return await _read(response)
        finally:
            await response.aclose()


async def _address(host: str, port: int, network: Network) -> str:
    addresses = await network.resolve(host, port)
    # One private address among public ones is how a name is made to lead inside.
    if not addresses or not all(map(network.allows, addresses)):
        raise NotFetched(f"{host} is not on the public internet")
    return addresses[0]


async def _read(response: httpx.Response) -> str:
    kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if not (kind.startswith("text/") or any(word in kind for word in _TEXTS)):
        raise NotFetched(f"this is no text but {kind}")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise NotFetched("the server compresses its answer, though asked not to")
    body = bytearray()
    async with closing_reads(response.aiter_raw()) as parts:
        async for part in parts:
            body += part
            if len(body) > MAX_BODY:
                break
    return _told(response, _decoded(bytes(body[:MAX_BODY]), response, kind), len(body) > MAX_BODY)


def _decoded(body: bytes, response: httpx.Response, kind: str) -> str:
    try:
        text = body.decode(response.charset_encoding or "utf-8", "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    if "html" not in kind:
        return text
    reader = _Text()
    reader.feed(text)
    return reader.text()


def _told(response: httpx.Response, text: str, cut: bool) -> str:
    if len(text) > MAX_TEXT or cut:
        text = f"{text[:MAX_TEXT]}\n[the rest is left out]"
    return text if response.is_success else f"[status {response.status_code}]\n{text}"


class _Text(HTMLParser):
    """What a reader sees of a page: its words and where its links lead."""

    _UNSEEN: Final = frozenset({"script", "style", "noscript", "template", "svg"})
    _INLINE: Final = frozenset({"a", "b", "i", "em", "strong", "code", "span", "small", "sup"})

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []
        self._unseen = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._UNSEEN:
            self._unseen += 1
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
        elif tag not in self._INLINE:
            self._parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._UNSEEN:
            self._unseen = max(0, self._unseen - 1)
        elif tag == "a" and self._links:
            link = self._links.pop()
            self._parts.append(f" <{link}>" if link and not link.startswith("#") else "")
        elif tag not in self._INLINE:
            self._parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._parts.append(data)

    def text(self) -> str:
        lines = (" ".join(line.split()) for line in "".join(self._parts).split("\n"))
        return "\n".join(line for line in lines if line)
