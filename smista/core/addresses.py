"""Which addresses are near: on this machine, or in a network of the user's own."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

_PRIVATE: Final = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv6Network("fc00::/7"),
)


def is_near(host: str) -> bool:
    """Tell if the address *host* is loopback, private or link-local."""
    try:
        address: IPv4Address | IPv6Address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    private = any(address in network for network in _PRIVATE)
    return private or address.is_loopback or address.is_link_local
