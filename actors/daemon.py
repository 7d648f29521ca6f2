"""The router: the composition root, and the only module that knows every part.

Opened first, closed last: the journal; then the providers, the sessions, the front. So all that
is told to a client has a journal below it until the client is gone.
"""

import logging
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import trio
from pydantic import SecretStr

from actors.catalog import NotedProviders
from actors.directory import Directory, open_directory
from actors.memory import find_trim, give_back
from actors.parts import Durations, Limits, Parts
from actors.retention import sweep
from smista import __version__
from smista.core.budget import Rate
from smista.core.model_ref import Catalog, ModelDescriptor
from smista.core.retention import Retention
from smista.front.app import create_app
from smista.front.serve import serve as serve_front
from smista.front.settings import FrontSettings
from smista.local.catalog_file import write_catalog
from smista.local.instance import held_instance
from smista.local.paths import NotOurs
from smista.local.router_config import (
    InstanceConfig,
    RetentionConfig,
    RouterConfig,
    StorageMode,
)
from smista.ports.journal import Journal
from smista.providers.facts import OwnPrice, Prices
from smista.providers.registry import CompatInstance, Endpoints, open_registry
from smista.providers.transport import Patience
from smista.storage.bridge import Login
from smista.storage.surreal import open_surreal

log = logging.getLogger("smista.router")

Ready = Callable[[str], None]

_FIRST_LISTS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Seconds: for turns to end by themselves, and for the interrupted ones to be written."""

    grace: float = 10.0
    settle: float = 5.0


async def serve(
    config: RouterConfig,
    *,
    ready: Ready,
    leaving: Leaving = Leaving(),
    catalog_file: Path | None = None,
    instance_file: Path | None = None,
    secret: SecretStr | None = None,
) -> None:
    """Run the router until SIGTERM or SIGINT; call *ready* with its base URL once it answers.

    A first signal refuses new work, lets turns end and commits the rest as resumable; a second
    one goes at once. *instance_file* keeps the name under which the router takes leases in a store
    that others use too; without it the name is new at each start. With *secret* it proves to its
    user's clients that it is theirs. Raises StorageError if the store cannot be opened, OSError if
    the port is taken.
    """
    async with (
        _open_house(config, catalog_file, instance_file) as (sessions, journal),
        trio.open_nursery() as services,
    ):
        stop, hurry = trio.Event(), trio.Event()
        await services.start(partial(_signals, stop, hurry))
        services.start_soon(give_back, lambda: sessions.awake, find_trim())
        services.start_soon(_retain, journal, sessions, config.retention)

        async def drained() -> None:
            await stop.wait()
            log.info("leaving: %s turns are being served", sessions.busy)
            await _drain(sessions, hurry, leaving)

        settings = replace(front_settings(config), secret=secret)
        app = create_app(sessions, journal, settings)
        front = partial(serve_front, app, settings, shutdown_trigger=drained)
        async with trio.open_nursery() as fronts:
            addresses = await fronts.start(front)
            log.info("router %s answers at %s", __version__, addresses[0])
            ready(addresses[0])
        services.cancel_scope.cancel(reason="the front closed")
    log.info("router left")


@asynccontextmanager
async def _open_house(
    config: RouterConfig, catalog_file: Path | None, instance_file: Path | None
) -> AsyncGenerator[tuple[Directory, Journal]]:
    silence = config.limits.provider_timeout_ms / 1000
    patience = Patience(first=silence, silence=silence)
    async with (
        _named(config, instance_file) as router,
        _open_journal(config) as journal,
        open_registry(
            compat_instances(config),
            endpoints=endpoints(config),
            prices=own_prices(config),
            patience=patience,
        ) as providers,
    ):
        await journal.unlock(router=router)
        noted = NotedProviders(providers, partial(_keep_catalog, catalog_file))
        # What is known at once is kept; a server that hangs must not hold up the start.
        await noted.catalog({}, local_only=True, deadline=_FIRST_LISTS)
        limits = Limits(
            concurrent_turns=config.limits.max_concurrent_requests,
            context_bytes=config.limits.max_context_bytes,
        )
        durations = Durations(
            orphan_grace=config.limits.orphan_grace_ms / 1000,
            slot_wait=config.limits.request_timeout_ms / 1000,
            own_tool=config.limits.tool_timeout_ms / 1000,
        )
        parts = Parts(
            journal=journal,
            providers=noted,
            slots=trio.CapacityLimiter(limits.concurrent_turns),
            limits=limits,
            durations=durations,
            router=router,
        )
        async with open_directory(parts) as sessions:
            yield sessions, journal


async def _retain(journal: Journal, sessions: Directory, config: RetentionConfig) -> None:
    retention = Retention(
        trace_days=config.trace_retention_days,
        session_days=config.session_retention_days,
        archived_days=config.archived_session_retention_days,
    )
    every = config.cleanup_interval_seconds
    await sweep(journal, sessions, retention, every=every, now=lambda: datetime.now(UTC))


def _keep_catalog(file: Path | None, catalog: Catalog) -> None:
    if file is None:
        return
    try:
        write_catalog(file, catalog, now=datetime.now(UTC))
    except (OSError, NotOurs) as error:
        # Only `smista explain` reads it; no turn depends on it.
        log.warning("the catalog was not kept: %s", error)


@asynccontextmanager
async def _named(config: RouterConfig, instance_file: Path | None) -> AsyncGenerator[str]:
    """Hold the name of this router; a store of its own asks for none."""
    if config.storage.mode is not StorageMode.REMOTE:
        yield ""
    elif instance_file is None:
        yield str(uuid4())
    else:
        with held_instance(instance_file) as name:
            yield name


@asynccontextmanager
async def _open_journal(config: RouterConfig) -> AsyncGenerator[Journal]:
    storage = config.storage
    remote = storage.mode is StorageMode.REMOTE
    target = storage.url if remote else storage.path
    if target is None:
        raise ValueError("a checked configuration names its store")
    login = None
    if remote and storage.username is not None and storage.password is not None:
        login = Login(username=storage.username, password=storage.password)
    async with open_surreal(
        target, namespace=storage.namespace, database=storage.database, login=login
    ) as journal:
        yield journal


async def _signals(
    stop: trio.Event,
    hurry: trio.Event,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            if stop.is_set():
                hurry.set()
            stop.set()


async def _drain(sessions: Directory, hurry: trio.Event, leaving: Leaving) -> None:
    async with trio.open_nursery() as nursery:

        async def hurried() -> None:
            await hurry.wait()
            nursery.cancel_scope.cancel(reason="second signal")

        nursery.start_soon(hurried)
        await sessions.drain(grace=leaving.grace, settle=leaving.settle)
        nursery.cancel_scope.cancel(reason="drained")
    if hurry.is_set():
        await sessions.drain(grace=0, settle=leaving.settle)


def front_settings(config: RouterConfig) -> FrontSettings:
    """Return what the front is told of *config*."""
    limit = config.rate_limit
    return FrontSettings(
        version=__version__,
        host=config.host,
        port=config.port,
        max_request_body_bytes=config.limits.max_request_body_bytes,
        request_timeout=config.limits.request_timeout_ms / 1000,
        rate=Rate(burst=limit.burst_size, period=limit.period_ms / 1000) if limit.enabled else None,
        trust_proxy_headers=limit.trust_proxy_headers,
        cors_origins=config.cors.allowed_origins if config.cors.enabled else (),
        token_ttl_seconds=config.auth.token_ttl_seconds,
        api_key_version=config.auth.api_key_version,
        local_bootstrap_enabled=config.auth.local_bootstrap_enabled,
    )


def endpoints(config: RouterConfig) -> Endpoints:
    """Return where the built-in providers answer: Ollama at the user's place, if it is enabled."""
    own = config.ollama.base_url if config.ollama.enabled else None
    return Endpoints(own_ollama=own)


def own_prices(config: RouterConfig) -> tuple[OwnPrice, ...]:
    """Return the prices that the user set; they come before those we know."""
    return tuple(
        OwnPrice(
            provider=row.provider.lower(),
            model=row.model,
            prices=Prices(
                input=row.input_cost_per_million_tokens,
                output=row.output_cost_per_million_tokens,
                cache_read=row.cache_read_cost_per_million_tokens,
                cache_write=row.cache_write_cost_per_million_tokens,
            ),
        )
        for row in config.prices
    )


def compat_instances(config: RouterConfig) -> tuple[CompatInstance, ...]:
    """Return the named OpenAI-compatible instances that have an address."""
    return tuple(
        _instance(provider_id, table, table.base_url)
        for provider_id, table in config.providers.items()
        if table.base_url and provider_id.startswith("openai-compat:")
    )


def _instance(provider_id: str, table: InstanceConfig, base_url: str) -> CompatInstance:
    models = tuple(
        ModelDescriptor(
            provider=provider_id,
            model=model.name,
            display_name=model.display_name,
            local=table.local,
            auth=model.auth,
            capabilities=model.capabilities,
            max_context_tokens=model.max_context_tokens,
            max_output_tokens=model.max_output_tokens,
            input_cost_per_million_tokens=model.input_cost_per_million_tokens,
            output_cost_per_million_tokens=model.output_cost_per_million_tokens,
        )
        for model in table.models
    )
    return CompatInstance(
        id=provider_id,
        base_url=base_url,
        local=table.local,
        display_name=table.display_name or provider_id,
        models=models,
    )
