"""What the front is told once, at start. It reads no file and no environment."""

from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from smista.core.budget import Rate

DEFAULT_RATE: Final = Rate(burst=200, period=0.010)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDurations:
    """Every wait of the front, in seconds, so that tests can shorten them."""

    keep_alive: float = 15.0
    """Silence after which a stream sends a comment line."""
    idle: float = 45.0
    """How long a connection may stay open without a whole request head."""
    send_stall: float = 60.0
    """How long one socket write may take before the reader counts as gone."""
    body: float = 30.0
    """How long a request body may take to arrive."""
    linger: float = 1.0
    """How long bytes of a refused body are read and dropped, so that the answer arrives."""
    grace: float = 3.0
    """How long requests may go on once the stop was asked for."""
    reap_every: float = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontSettings:
    """`[router]`, its `auth`, `limits`, `rate_limit` and `cors` tables, as the front needs them.

    *names* are further Host names, in lower case, that this router answers to, such as the one
    of a reverse proxy; requests under any other name are refused. *rate* None: no limit.
    """

    version: str
    host: str = "127.0.0.1"
    port: int = 7331
    names: tuple[str, ...] = ()
    max_request_body_bytes: int = 10_485_760
    request_timeout: float = 120.0
    rate: Rate | None = DEFAULT_RATE
    trust_proxy_headers: bool = False
    cors_origins: tuple[str, ...] = ()
    """Allowed origins; empty when CORS is disabled."""
    token_ttl_seconds: int = 86_400
    api_key_version: str = "01"
    local_bootstrap_enabled: bool = True
    secret: SecretStr | None = None
    """What the router proves with that it is its user's; None: it cannot."""
    durations: FrontDurations = FrontDurations()
