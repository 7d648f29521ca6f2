"""`smista apikey`: the key of the router itself, for whoever does not use `smista login`."""

from typing import Final, cast

import asyncclick as click

from cli.commands.credentials import Aliased
from cli.configuration import configured
from cli.connection import open_proven
from cli.failures import DONE, FAILED
from cli.own_keys import router_keys, stored_key
from cli.storing import Store, forget, given_key, keep, scoped
from cli.surroundings import Surroundings
from cli.visible import echo
from smista.local.config_files import RouterConnection
from smista.local.credentials import ROUTER_KEY

ALIASES: Final = {
    "get": "check",
    "generate": "new",
    "add": "set",
    "delete": "remove",
    "rm": "remove",
}


class RouterKeys(Aliased):
    aliases = ALIASES


@click.group(cls=RouterKeys)
@click.option("--global", "everywhere", is_flag=True, help="The key of all your projects.")
@click.pass_context
async def apikey(ctx: click.Context, everywhere: bool) -> None:
    """Keep, check, obtain and remove the key of the router."""
    ctx.obj = scoped(cast("Surroundings", ctx.obj), everywhere=everywhere)


@apikey.command()
@click.pass_obj
async def check(kept: Store) -> int:
    """Say whether a key is there, without showing it."""
    if await stored_key(kept.here, await _connection(kept)) is None:
        echo("no router key; obtain one: smista login")
        return FAILED
    echo("there is a router key")
    return DONE


@apikey.command()
@click.pass_obj
async def new(kept: Store) -> None:
    """Obtain a fresh key from the router and print it; it is not kept."""
    async with open_proven(kept.here, await _connection(kept)) as client:
        identity = await client.bootstrap()
    echo(identity.api_key.get_secret_value())


@apikey.command("set")
@click.argument("key", required=False)
@click.pass_obj
async def store(kept: Store, key: str | None) -> None:
    """Keep a router key. Without KEY it is asked for, or read from a pipe."""
    keys = router_keys(kept.here, await _connection(kept))
    given = await given_key(key, "the router", "smista apikey set")
    echo(f"the router key is kept in {await keep(keys, ROUTER_KEY, given, kept.scope)}")


@apikey.command()
@click.pass_obj
async def remove(kept: Store) -> None:
    """Forget the router key of this scope."""
    echo(f"the router key {await forget(kept.keys, ROUTER_KEY, kept.scope)}")


async def _connection(kept: Store) -> RouterConnection:
    return (await configured(kept.here)).merged.router
