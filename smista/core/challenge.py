"""How a router proves that it belongs to its user: a digest that only their secret can make.

It speaks for one nonce and one socket, so that it cannot be had from a router elsewhere. Pure.
"""

import hmac
import re
from ipaddress import ip_address
from typing import Final

CHALLENGE: Final = "X-Smista-Challenge"
"""The header of `/status` that carries the nonce."""

_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{16,128}\Z")
_PURPOSE: Final = "smista router 1"


def is_nonce(text: str) -> bool:
    return _NONCE.match(text) is not None


def proof(secret: str, nonce: str, *, address: str, port: int) -> str:
    """Return what a router that is reached at *address* and *port* answers to *nonce*.

    The address counts as well as the port: `::1` and `127.0.0.1` are two sockets, and a stranger
    may have the other one.
    """
    words = "\n".join((_PURPOSE, nonce, _canonical(address), str(port)))
    return hmac.new(secret.encode(), words.encode(), "sha256").hexdigest()


def proves(answer: str, secret: str, nonce: str, *, address: str, port: int) -> bool:
    """Return whether *answer* is that proof; takes the same time for every wrong one."""
    expected = proof(secret, nonce, address=address, port=port)
    return hmac.compare_digest(answer.encode(errors="replace"), expected.encode())


def _canonical(address: str) -> str:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    # A dual-stack socket shows an IPv4 peer in IPv6 clothes.
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
