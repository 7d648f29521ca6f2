"""From the user's configuration to a router that answers and knows who asks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

import trio
from pydantic import SecretStr

from cli.failures import BadUsage, NoRouter
from cli.surroundings import Surroundings
from smista.core.model_ref import ModelRef
from smista.local.config_checks import SECRET, is_loopback
from smista.local.config_files import ConfigFile, RouterConnection
from smista.local.credentials import ROUTER_KEY, Credentials
from smista.local.daemon_ctl import find_files, router_command, running, start
from smista.local.router_file import parse_router
from smista.local.toml_source import read_source
from smista.sdk.client import Client, ClientConfig, open_client
from smista.sdk.errors import ApiError, SdkError, Unreachable

API_KEY: Final = "SMISTA_API_KEY"
_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_STATUS: Final = 5.0
"""Seconds that a living router may take to say that it lives."""
_GRACE: Final = 5.0
"""Seconds a router may be late with saying that its own time limit has passed."""


def router_url(here: Surroundings, connection: RouterConnection) -> str:
    """Return the configured URL, else that of the router that runs here, or would run here."""
    if connection.url is not None:
        return connection.url
    daemon = running(find_files(here.places, here.environ))
    return daemon.url if daemon is not None and daemon.url is not None else _own_url(here)


def _own_url(here: Surroundings) -> str:
    # Anywhere else another router may answer, to whom the user's key does not belong.
    config = parse_router(read_source(here.places.router_file))[0]
    host = _ANY_HOST.get(config.host, config.host)
    return f"http://[{host}]:{config.port}" if ":" in host else f"http://{host}:{config.port}"


def client_config(
    url: str, connection: RouterConnection, credentials: dict[str, SecretStr] | None = None
) -> ClientConfig:
    return ClientConfig(
        url=url.rstrip("/"),
        connect_timeout=connection.connect_timeout_ms / 1000,
        request_timeout=connection.request_timeout_ms / 1000 + _GRACE,
        credentials=credentials or {},
    )


def status_config(url: str, connection: RouterConnection) -> ClientConfig:
    """Return the settings for a question that a router answers at once or not at all."""
    settings = client_config(url, connection)
    return replace(settings, request_timeout=min(settings.request_timeout, _STATUS))


def keys(here: Surroundings) -> Credentials:
    return Credentials(project=here.root, places=here.places)


def stored_key(here: Surroundings, connection: RouterConnection) -> SecretStr | None:
    """Return the router key from where the configuration says it is."""
    if connection.auth_source == "helper":
        raise BadUsage("auth_source = 'helper' is not supported yet; use 'file' or 'env'")
    if connection.auth_source == "env":
        return _from_environment(API_KEY, here)
    return keys(here).find(ROUTER_KEY)


def _from_environment(name: str, here: Surroundings) -> SecretStr | None:
    value = here.environ.get(name, "").strip()
    if not value:
        return None
    if not (value.isascii() and value.isprintable()):
        raise BadUsage(f"the variable {name} does not hold a key: keys are printable ASCII")
    return SecretStr(value)


@asynccontextmanager
async def open_router(
    here: Surroundings, config: ConfigFile, *, override: ModelRef | None = None
) -> AsyncGenerator[Client]:
    """Lend a signed-in client; a missing router of this machine is started if configured so."""
    key = stored_key(here, config.router)
    credentials = provider_keys(here, config, override)
    url = await wait_router(here, config.router)
    if key is None:
        raise BadUsage(f"you are not logged in to the router at {url}; run: smista login")
    settings = client_config(url, config.router, credentials)
    async with open_client(settings, api_key=key) as client:
        await _sign_in(client)
        yield client
        # No token of a command that is over stays valid; one that cannot be revoked lapses.
        with suppress(SdkError):
            await client.sign_out()


async def _sign_in(client: Client) -> None:
    try:
        await client.sign_in()
    except ApiError as error:
        if error.code != "invalid_api_key":
            raise
        raise BadUsage(
            f"the router at {client.url} does not know the key you have; if it is not yours, name "
            f"yours as [router] url; if it is yours and was set up anew, run: smista login --again"
        ) from error


async def wait_router(here: Surroundings, connection: RouterConnection) -> str:
    """Return the URL of a router that answers, started if need be and allowed."""
    url = router_url(here, connection)
    try:
        async with open_client(status_config(url, connection)) as client:
            await client.status()
    except Unreachable as error:
        if not is_loopback(url):
            raise
        if not connection.auto_start:
            raise NoRouter(f"{error}; run: smista start") from error
        return await _start(here)
    return url


async def _start(here: Surroundings) -> str:
    files = find_files(here.places, here.environ)
    started = await trio.to_thread.run_sync(start, files, router_command())
    if started.daemon.url is None:
        raise NoRouter(f"a router is starting (process {started.daemon.pid}); try again")
    return started.daemon.url


def provider_keys(
    here: Surroundings, config: ConfigFile, override: ModelRef | None
) -> dict[str, SecretStr]:
    """Return the keys of the providers that the policy, or *override*, can reach."""
    found: dict[str, SecretStr] = {}
    for provider in sorted(_reachable(config, override)):
        secret = _provider_key(provider, here, config)
        if secret is not None:
            found[provider] = secret
    return found


def secret_names(config: ConfigFile) -> frozenset[str]:
    """Return the names that `${secret:NAME}` references use."""
    references = (entry.api_key for entry in config.providers.values() if entry.api_key)
    return frozenset(match[1] for match in map(SECRET.match, references) if match)


def _provider_key(provider: str, here: Surroundings, config: ConfigFile) -> SecretStr | None:
    # The name of a provider is the same in any case, its table's as well.
    entry = next((e for name, e in config.providers.items() if name.lower() == provider), None)
    reference = SECRET.match(entry.api_key) if entry and entry.api_key else None
    if reference is None:
        return keys(here).find(provider)
    return _from_environment(reference[1], here) or keys(here).find(reference[1])


def _reachable(config: ConfigFile, override: ModelRef | None) -> set[str]:
    chains = [(rule.model, *rule.fallbacks) for rule in config.routing.rules]
    if config.routing.default is not None:
        chains.append((config.routing.default.model, *config.routing.default.fallbacks))
    named = {ref.provider for chain in chains for ref in chain}
    return named | {override.provider} if override is not None else named
