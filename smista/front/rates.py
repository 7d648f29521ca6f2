"""The allowance of each address, kept in memory and bounded."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

import trio

from smista.core.budget import Bucket, Rate, full, take
from smista.core.errors import TooManyRequests

_ADDRESSES_AT_MOST: Final = 10_000
_SITE_PREFIX: Final = 64


class AddressRates:
    """Charges one request to an address. The oldest addresses are forgotten first."""

    def __init__(self, rate: Rate | None) -> None:
        self._rate = rate
        self._buckets: dict[object, Bucket] = {}

    def charge(self, address: IPv4Address | IPv6Address | None) -> TooManyRequests | None:
        """Return an error if *address* has to wait; it is charged nothing then."""
        if self._rate is None:
            return None
        now = trio.current_time()
        key = _owner(address)
        bucket = self._buckets.pop(key, None) or full(self._rate, now)
        self._buckets[key], wait = take(self._rate, bucket, now)
        if len(self._buckets) > _ADDRESSES_AT_MOST:
            del self._buckets[next(iter(self._buckets))]
        if wait == 0.0:
            return None
        return TooManyRequests("too many requests from this address; slow down", retry_after=wait)


def _owner(address: IPv4Address | IPv6Address | None) -> object:
    if isinstance(address, IPv6Address) and not address.is_loopback:
        # One caller commands a whole /64: single addresses would be no limit.
        return IPv6Network((address, _SITE_PREFIX), strict=False)
    return address
