"""The checks of `router.toml` that need more than one value (*Configuration validation*)."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import urlsplit

from smista.core.addresses import is_near
from smista.core.errors import SmistaError
from smista.core.model_ref import BUILT_IN, provider_id
from smista.local.findings import Fault, Place, Severity
from smista.local.router_config import RouterConfig

_HOUR_MS: Final = 3_600_000
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?\Z")
_TIMEOUTS: Final = ("request_timeout_ms", "provider_timeout_ms", "tool_timeout_ms")
_SIZES: Final = ("max_request_body_bytes", "max_context_bytes")
_FAR: Final = "this host is remote, so nothing of yours will be sent there as to a local one"
_CLOUD: Final = "ollama.com"
_LEVELS: Final = ("off", "error", "warn", "warning", "info", "debug", "trace")


def check_router(config: RouterConfig) -> list[Fault]:
    """Return everything that is wrong with *config*; no fault quotes a secret."""
    return [fault for check in _CHECKS for fault in check(config)]


def _server(config: RouterConfig) -> Iterator[Fault]:
    if config.port == 0:
        yield _error("router.port", "0 is not a port", "use 1 to 65535")
    if not _is_host(config.host):
        yield _error("router.host", "not a host name or address", "give a bare name or address")
    elif _is_everywhere(config.host) and config.storage.mode == "embedded":
        message = f"{config.host} is reachable from other machines"
        if config.allow_public:
            yield _warning("router.host", message, "bind 127.0.0.1")
        else:
            yield _error("router.host", message, "bind 127.0.0.1, or set allow_public = true")


def _storage(config: RouterConfig) -> Iterator[Fault]:
    storage = config.storage
    if storage.mode == "embedded":
        if storage.path == "":
            yield _error("router.storage.path", "empty", "name a writable directory")
        return
    if not storage.url:
        yield _error("router.storage.url", "missing in remote mode", "set it, e.g. wss://db:8000")
    elif storage.url.startswith("ws://") and not _is_loopback(storage.url):
        yield _error("router.storage.url", "ws:// sends data in clear", "use wss://")
    if config.auth.local_bootstrap_enabled:
        place = "router.auth.local_bootstrap_enabled"
        yield _error(place, "must be off in remote mode", "set it to false")


def _limits(config: RouterConfig) -> Iterator[Fault]:
    values = config.limits.model_dump()
    for key in _TIMEOUTS:
        if values[key] == 0:
            yield _error(f"router.limits.{key}", "0 ms", "use a positive number of milliseconds")
        if values[key] > _HOUR_MS:
            remedy = "the unit is milliseconds"
            yield _warning(f"router.limits.{key}", "more than an hour", remedy)
    for key in _SIZES:
        if values[key] == 0:
            yield _error(f"router.limits.{key}", "0 bytes", "use a positive number of bytes")


def _rate_limit(config: RouterConfig) -> Iterator[Fault]:
    values = config.rate_limit.model_dump()
    if not config.rate_limit.enabled:
        return
    for key in ("period_ms", "burst_size"):
        if values[key] == 0:
            yield _error(f"router.rate_limit.{key}", "0", "use a positive value, or disable it")


def _logging(config: RouterConfig) -> Iterator[Fault]:
    if config.logging.level.lower() not in _LEVELS:
        yield _error("router.logging.level", "unknown level", f"use one of {', '.join(_LEVELS)}")


def _cors(config: RouterConfig) -> Iterator[Fault]:
    origins = config.cors.allowed_origins
    if config.cors.enabled and (not origins or "*" in origins):
        place = "router.cors.allowed_origins"
        yield _error(place, "any web page could ask the router", "name the origins")


def _providers(config: RouterConfig) -> Iterator[Fault]:
    for name, instance in config.providers.items():
        place: Place = ("router", "providers", name)
        try:
            known = provider_id(name)
        except SmistaError as error:
            yield _error(place, error.message, "write openai-compat:<name>")
            continue
        if known in BUILT_IN and instance.base_url is not None:
            message = "this provider has a fixed endpoint; the value is ignored"
            yield _warning((*place, "base_url"), message, "delete it")
        elif known not in BUILT_IN and not _is_http(instance.base_url):
            remedy = "set it to http://… or https://…"
            yield _error((*place, "base_url"), "no usable URL", remedy)
        elif instance.local and _is_far(instance.base_url):
            remedy = "set local = false, or name a host of your own"
            yield _warning((*place, "base_url"), _FAR, remedy)
        seen: set[str] = set()
        for index, model in enumerate(instance.models):
            if model.name in seen:
                twice = (*place, "models", index, "name")
                yield _error(twice, f"{model.name!r} is declared twice", "drop one")
            seen.add(model.name)


def _ollama(config: RouterConfig) -> Iterator[Fault]:
    if config.ollama.enabled and not _is_http(config.ollama.base_url):
        yield _error("router.ollama.base_url", "no usable URL", "use http://127.0.0.1:11434")
    elif config.ollama.enabled and _is_far(config.ollama.base_url):
        remedy = "name a host of your own; for Ollama Cloud store a key and leave this out"
        yield _warning("router.ollama.base_url", _FAR, remedy)


def _prices(config: RouterConfig) -> Iterator[Fault]:
    for index, price in enumerate(config.prices):
        try:
            provider_id(price.provider)
        except SmistaError as error:
            place = ("router", "prices", index, "provider")
            yield _error(place, error.message, "name a provider")


_CHECKS: Final[tuple[Callable[[RouterConfig], Iterator[Fault]], ...]] = (
    _server,
    _storage,
    _limits,
    _rate_limit,
    _logging,
    _cors,
    _providers,
    _ollama,
    _prices,
)


def _error(place: str | Place, message: str, remedy: str) -> Fault:
    return Fault(_steps(place), message, remedy)


def _warning(place: str | Place, message: str, remedy: str) -> Fault:
    return Fault(_steps(place), message, remedy, Severity.WARNING)


def _steps(place: str | Place) -> Place:
    return tuple(place.split(".")) if isinstance(place, str) else place


def _is_http(url: str | None) -> bool:
    return url is not None and re.match(r"https?://[^\s/?#]+", url) is not None


def _is_far(url: str | None) -> bool:
    """Tell if *url* is known to lead away; where a name leads is only known once it is called."""
    try:
        host = urlsplit(url or "").hostname or ""
    except ValueError:
        return False
    if _is_address(host):
        return not is_near(host)
    return host == _CLOUD or host.endswith(f".{_CLOUD}")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(url: str) -> bool:
    return re.match(r"wss?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])([:/]|\Z)", url) is not None


def _is_everywhere(host: str) -> bool:
    return host in ("0.0.0.0", "::")


def _is_host(host: str) -> bool:
    named = _HOST.match(host) is not None and not host.replace(".", "").isdigit()
    return named or _is_address(host)
