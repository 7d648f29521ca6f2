"""From the user's configuration to a router that answers, is the user's, and knows who asks.

No key and no content is sent before a router on this machine has proved whose it is.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import replace
from typing import Final

import trio
from pydantic import SecretStr

from cli.failures import BadUsage, NoRouter
from cli.own_keys import provider_keys, stored_key
from cli.own_keys import secret_names as secret_names
from cli.surroundings import Surroundings
from smista.core.model_ref import ModelRef
from smista.local.config_checks import is_loopback
from smista.local.config_files import ConfigFile, RouterConnection, project_file
from smista.local.daemon_ctl import find_files, router_command, running, start
from smista.local.router_file import parse_router
from smista.local.router_secret import find_secrets, secret_file
from smista.local.toml_source import read_source
from smista.sdk.answers import RouterStatus
from smista.sdk.client import Client, ClientConfig, open_client
from smista.sdk.errors import ApiError, BadAnswer, SdkError, Unproven, Unreachable

_ANY_HOST: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
LOG_IN: Final = "run: smista login"
NOTHING_SENT: Final = "Nothing of yours was sent to it."
_STATUS: Final = 5.0
"""Seconds that a living router may take to say that it lives."""
_GRACE: Final = 5.0
"""Seconds a router may be late with saying that its own time limit has passed."""


class NotLoggedIn(BadUsage):
    """The router at *url* has proved to be the user's own, and there is no key for it."""

    def __init__(self, url: str) -> None:
        super().__init__(f"you are not logged in to the router at {url}; {LOG_IN}")
        self.url = url


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
    here: Surroundings,
    url: str,
    connection: RouterConnection,
    credentials: Mapping[str, SecretStr] | None = None,
) -> ClientConfig:
    return ClientConfig(
        secrets=find_secrets(here.places) if is_loopback(url) else None,
        url=url.rstrip("/"),
        connect_timeout=connection.connect_timeout_ms / 1000,
        request_timeout=connection.request_timeout_ms / 1000 + _GRACE,
        credentials=credentials or {},
    )


@asynccontextmanager
async def open_router(
    here: Surroundings, config: ConfigFile, *, override: ModelRef | None = None
) -> AsyncGenerator[Client]:
    """Lend a signed-in client; a missing router of this machine is started if configured so."""
    key = await stored_key(here, config.router)
    credentials = await provider_keys(here, config, override)
    async with open_proven(here, config.router, key=key, credentials=credentials) as client:
        if key is None:
            raise NotLoggedIn(client.url)
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


@asynccontextmanager
async def open_proven(
    here: Surroundings,
    connection: RouterConnection,
    *,
    key: SecretStr | None = None,
    credentials: Mapping[str, SecretStr] | None = None,
) -> AsyncGenerator[Client]:
    """Lend a client of the user's own router, started if need be and allowed.

    Each of its connections proves that anew before anything else is sent on it. Raises NoRouter
    if nothing answers, or somebody else.
    """

    def client_of(url: str) -> AbstractAsyncContextManager[Client]:
        return open_client(client_config(here, url, connection, credentials), api_key=key)

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(client_of(router_url(here, connection)))
        try:
            await prove(here, client)
        except Unreachable as error:
            url = await _started(here, connection, error)
            client = await stack.enter_async_context(client_of(url))
            await prove(here, client)
        yield client


async def prove(here: Surroundings, client: Client) -> RouterStatus:
    """Return the router's status once it is known to be the user's, by proof or by certificate.

    Raises Unreachable, or NoRouter for somebody else's.
    """
    try:
        with trio.fail_after(_STATUS):
            return await _proved(client)
    except trio.TooSlowError:
        raise Unreachable(client.url, "it is silent") from None
    except (BadAnswer, Unproven) as error:
        raise NoRouter(f"{error}. {NOTHING_SENT}\n{_what_to_do(here)}") from error


async def status_of(here: Surroundings, config: ClientConfig) -> tuple[RouterStatus, str | None]:
    """Return the status of whoever answers, and, if it may be somebody else's, why."""
    try:
        async with open_client(config) as client:
            return await prove(here, client), None
    except NoRouter as doubt:
        try:
            async with open_client(replace(config, secrets=None)) as client:
                return await client.status(), str(doubt)
        except BadAnswer:
            raise doubt from None


async def _proved(client: Client) -> RouterStatus:
    if not is_loopback(client.url) and not client.url.startswith("https://"):
        raise NoRouter(
            f"{client.url} is on another machine and speaks plain http, where anybody on the way "
            "could read your keys; use https, or a router on this machine"
        )
    return await client.status()


def _what_to_do(here: Surroundings) -> str:
    return (
        f"If it is a router of yours, restart it: smista stop, then smista start; it proves "
        f"itself with the secret in {secret_file(here.places)}.\nIf another program has the "
        f"port, set another [router] port in {here.places.router_file}."
    )


def _first_step(here: Surroundings) -> str:
    files = (here.places.policy_file, here.places.router_file, project_file(here.root))
    if any(file.exists() for file in files):
        return "run: smista start"
    return (
        "nothing is configured here yet. Begin with: smista config init, which writes a policy to "
        "name your model in; then: smista start, smista login"
    )


async def _started(here: Surroundings, connection: RouterConnection, error: Unreachable) -> str:
    """Start the router of this machine and return its URL, if that is what the user wants."""
    if not is_loopback(error.url):
        raise error
    if not connection.auto_start:
        raise NoRouter(f"{error}; {_first_step(here)}") from error
    files = find_files(here.places, here.environ)
    started = await trio.to_thread.run_sync(start, files, router_command())
    if started.daemon.url is None:
        raise NoRouter(f"a router is starting (process {started.daemon.pid}); try again")
    return started.daemon.url
