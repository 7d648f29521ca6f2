"""What "local" means on the wire: the address that is connected, whatever its name was."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import httpx

from smista.core.addresses import is_near
from smista.core.errors import InvalidProviderConfiguration

Trace = Callable[[str, Mapping[str, Any]], Awaitable[None]]

_CONNECTED: Final = "connection.connect_tcp.complete"


def require_near_peer(provider: str) -> Trace:
    """Return a trace callback that lets a new connection live only if its peer is near.

    It runs before the first byte is sent, once per connection: a name may resolve differently
    each time.
    """

    async def check(event: str, info: Mapping[str, Any]) -> None:
        if event != _CONNECTED:
            return
        stream = info["return_value"]
        try:
            host = str(stream.get_extra_info("server_addr")[0])
        except OSError as error:
            await stream.aclose()
            raise httpx.ConnectError(f"the peer left at once: {error}") from None
        if not is_near(host):
            await stream.aclose()
            raise InvalidProviderConfiguration(
                f"{provider} is configured as local, but its base_url leads to {host}, which is no"
                " loopback, private or link-local address; nothing was sent. Set local = false or"
                " correct base_url",
                kind="not_local",
                provider=provider,
            )

    return check
