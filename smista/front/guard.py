"""Who may ask at all: the rules that keep browsers of strangers and leaked keys out.

Pure checks of a request's head; nothing of the body is read before they pass.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import parse_qsl

from smista.core.errors import CredentialsInQuery, Forbidden, SmistaError

Headers = Iterable[tuple[bytes, bytes]]

_HOST: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?\Z"
)
_DEFAULT_PORT: Final = 80
_QUIET_SITES: Final = ("none", "same-origin")
_CREDENTIAL: Final = re.compile(
    r"api_?key|access_?key|private_?key|secret|token|passw|passphrase|credential|authori[sz]ation"
    r"|bearer|(?:^|_)(?:key|auth|pwd|jwt|sig|signature)(?:$|_)"
)
_FIELDS_AT_MOST: Final = 100


def browser_refusal(
    headers: Headers,
    *,
    server: tuple[str, int],
    host: str,
    names: Sequence[str],
    origins: Sequence[str],
) -> Forbidden | None:
    """Return why a browser's (or an unclear) request is refused, None if it may pass.

    *server* is the address the connection came in on and *host* the name it is configured
    under; *names* are those of a proxy, whose port is another one; *origins* are those allowed
    under CORS. Names are in lower case.
    """
    found = _collected(headers, (b"host", b"origin", b"sec-fetch-site", b"upgrade"))
    if found[b"upgrade"]:
        return Forbidden("this router speaks plain HTTP/1.1; leave out the Upgrade header")
    if not _host_matches(found[b"host"], server, host, names):
        return Forbidden("the Host header does not name this router; use its address and port")
    return _site_refusal(found[b"origin"], found[b"sec-fetch-site"], origins)


def _site_refusal(
    origin: Sequence[str], site: Sequence[str], origins: Sequence[str]
) -> Forbidden | None:
    if origin:
        if len(origin) == 1 and origin[0] in origins:
            return None
        return Forbidden("this origin is not allowed; add it to [router.cors] allowed_origins")
    if not site or (len(site) == 1 and site[0].lower() in _QUIET_SITES):
        return None
    return Forbidden("requests from other sites are not allowed")


def _collected(headers: Headers, names: Sequence[bytes]) -> Mapping[bytes, list[str]]:
    found: dict[bytes, list[str]] = {name: [] for name in names}
    for name, value in headers:
        if name in found:
            found[name].append(value.decode("latin-1").strip())
    return found


def _host_matches(
    hosts: Sequence[str], server: tuple[str, int], host: str, names: Sequence[str]
) -> bool:
    match = _HOST.match(hosts[0]) if len(hosts) == 1 else None
    if match is None:
        return False
    if hosts[0].lower() in names:
        return True
    if int(match["port"] or _DEFAULT_PORT) != server[1]:
        return False
    local = _address(server[0])
    asked = _address(match["six"] or match["name"])
    if asked is not None:
        return asked == local
    name = match["name"].lower()
    if name == "localhost" and local is not None and local.is_loopback:
        return True
    return name == host or name in names


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A dual-stack socket reports IPv4 callers in their IPv6 clothes.
    return getattr(address, "ipv4_mapped", None) or address


def query_refusal(query: bytes) -> SmistaError | None:
    """Return an error if a parameter's name looks like that of a credential."""
    if not query:
        return None
    try:
        pairs = parse_qsl(
            query.decode("latin-1"), keep_blank_values=True, max_num_fields=_FIELDS_AT_MOST
        )
    except ValueError:
        return CredentialsInQuery("the query has too many parameters to be checked; send fewer")
    if any(_names_credential(name) for name, _ in pairs):
        return CredentialsInQuery("credentials are not accepted in the query; send them as headers")
    return None


def _names_credential(name: str) -> bool:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return _CREDENTIAL.search(re.sub(r"[^a-z0-9]+", "_", snake)) is not None


def client_address(
    headers: Headers, peer: str, *, trust_proxy_headers: bool
) -> IPv4Address | IPv6Address | None:
    """Return whose allowance a request uses; None if it cannot be told (a local socket).

    Behind a trusted proxy it is the last address that the proxy wrote down.
    """
    if trust_proxy_headers:
        names = (b"x-forwarded-for", b"x-real-ip", b"forwarded")
        found = _collected(headers, names)
        for name in names:
            if found[name] and (address := _forwarded(found[name][-1])) is not None:
                return address
    return _address(peer)


def _forwarded(value: str) -> IPv4Address | IPv6Address | None:
    last = value.rsplit(",", 1)[-1].strip()
    labelled = re.search(r'for="?\[?([0-9A-Fa-f:.]+)', last, re.IGNORECASE)
    return _address(labelled[1] if labelled else last.strip("[]"))
