"""`smista start`, `stop`, `status`: the router of this machine.

The only module of the command line that may import the router itself, and only to be it. Heavy
imports stand inside the functions: the one that launches a router needs none of them.
"""

import gc
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import asyncclick as click
import trio

from cli.failures import DONE, UNREACHABLE, NoRouter
from cli.logs import configure
from cli.surroundings import Surroundings
from cli.visible import echo, visible, visible_line
from smista.local.daemon_ctl import (
    AlreadyRunning,
    DaemonFiles,
    StartFailed,
    find_files,
    hold,
    router_command,
)
from smista.local.daemon_ctl import start as start_daemon
from smista.local.daemon_ctl import stop as stop_daemon

if TYPE_CHECKING:
    from smista.local.config_files import ConfigFile
    from smista.local.config_model import Preferences
    from smista.local.router_file import LoadedRouter
    from smista.sdk.answers import RouterStatus

_COLLECT_AFTER = 10_000
"""New objects between two collections: a turn makes thousands, and drops nearly all by itself."""
_PATH = click.Path(path_type=Path, dir_okay=False, resolve_path=True)


@click.command()
@click.option("--foreground", is_flag=True, help="Stay in this process, for a service manager.")
@click.option("--config", "config_file", type=_PATH, help="Another router.toml.")
@click.option("--pidfile", type=_PATH, envvar="SMISTA_ROUTER_PIDFILE", help="Another pidfile.")
@click.pass_obj
async def start(
    here: Surroundings, foreground: bool, config_file: Path | None, pidfile: Path | None
) -> None:
    """Start the router; it goes on in the background."""
    files = _files(here, pidfile)
    if foreground:
        await _serve(here, files, config_file)
        return
    options = ["--config", str(config_file)] if config_file else []
    if here.log_filter:
        options += ["--log-filter", here.log_filter]
    launch = partial(start_daemon, files, router_command(*options))
    try:
        started = await trio.to_thread.run_sync(launch)
    except StartFailed:
        _load(here, config_file)  # if the file is at fault, all its findings are the better words
        raise
    if not started.new:
        raise AlreadyRunning(started.daemon)
    echo(f"router started at {started.daemon.url} (process {started.daemon.pid})")
    for line in started.said.splitlines():
        if line.startswith("warning:"):
            echo(visible_line(line), err=True)


@click.command()
@click.option("--config", "config_file", type=_PATH, help="Accepted for symmetry with start.")
@click.option("--pidfile", type=_PATH, envvar="SMISTA_ROUTER_PIDFILE", help="Another pidfile.")
@click.pass_obj
async def stop(here: Surroundings, config_file: Path | None, pidfile: Path | None) -> None:
    """Stop the router and wait until it is gone."""
    if not await trio.to_thread.run_sync(stop_daemon, _files(here, pidfile)):
        raise NoRouter("no router is running here; start one with: smista start")
    echo("router stopped")


@click.command()
@click.option("--url", help="Ask this router.")
@click.pass_obj
async def status(here: Surroundings, url: str | None) -> int:
    """Say whether the router answers, and its version."""
    from cli.connection import client_config, router_url, status_of
    from smista.local.config_files import RouterConnection

    merged = await _merged(here)
    connection = merged.router if url is None else RouterConnection(url=url)
    asked = client_config(here, router_url(here, connection), connection)
    told, doubt = await status_of(here, asked)
    return _say_status(told, asked.url, doubt, merged.local_preferences)


def _say_status(
    told: "RouterStatus", url: str, doubt: str | None, preferences: "Preferences"
) -> int:
    echo(f"router: {visible_line(told.status)}")
    echo(f"version: {visible_line(told.version)}")
    echo(f"url: {visible_line(url)}")
    if preferences.encrypt_sessions:
        echo("encryption: new sessions are encrypted; their keys are on this machine alone")
    else:
        echo("encryption: off (encrypt_sessions = false); new sessions are stored in clear")
    if doubt is None:
        return DONE
    echo(f"warning: {visible(doubt)}", err=True)
    return UNREACHABLE


async def _merged(here: Surroundings) -> "ConfigFile":
    """Return the configuration; a broken file must not hide the router from its user."""
    from cli.configuration import configured
    from smista.local.config_files import read_configuration

    read = read_configuration(here.root, here.places)
    if not read.findings:
        return (await configured(here)).merged
    first = visible_line(str(read.findings[0]).removeprefix("error: "))
    echo(f"warning: {first}; see: smista config check", err=True)
    return read.merged


async def _serve(here: Surroundings, files: DaemonFiles, config_file: Path | None) -> None:
    from actors.daemon import serve
    from smista.local.catalog_file import catalog_path
    from smista.local.instance import instance_path
    from smista.local.router_secret import make_secret

    config, warnings = _load(here, config_file)
    configure(here.log_filter or config.logging.level, here.log_file)
    for warning in warnings:
        echo(visible_line(str(warning)), err=True)
    with hold(files) as held:

        def ready(url: str) -> None:
            _settle_heap()
            held.announce(url)
            echo(f"router answers at {url}", err=True)

        await serve(
            config,
            ready=ready,
            catalog_file=catalog_path(here.places),
            instance_file=instance_path(here.places),
            secret=make_secret(here.places),
        )


def _load(here: Surroundings, config_file: Path | None) -> "LoadedRouter":
    from smista.local.router_file import load_router_config

    return load_router_config(here.places, config_file)


def _settle_heap() -> None:
    """Spare the garbage collector what lives as long as the process; a turn costs 6 % less."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])


def _files(here: Surroundings, pidfile: Path | None) -> DaemonFiles:
    return find_files(here.places, here.environ, pidfile=pidfile, log=here.log_file)
