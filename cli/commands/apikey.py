"""`smista apikey`: the key of the router itself, for whoever does not use `smista login`."""

from typing import Final, cast

import asyncclick as click

from cli.commands.credentials import Aliased
from cli.configuration import configured
from cli.connection import client_config, stored_key, wait_router
from cli.failures import DONE, FAILED
from cli.storing import Store, given_key, scoped
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.local.credentials import ROUTER_KEY
from smista.sdk.client import open_client

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
    config = (await configured(kept.here)).merged
    if stored_key(kept.here, config.router) is None:
        echo("no router key; obtain one: smista login")
        return FAILED
    echo("there is a router key")
    return DONE


@apikey.command()
@click.pass_obj
async def new(kept: Store) -> None:
    """Obtain a fresh key from the router and print it; it is not kept."""
    config = (await configured(kept.here)).merged
    url = await wait_router(kept.here, config.router)
    async with open_client(client_config(url, config.router)) as client:
        identity = await client.bootstrap()
    echo(identity.api_key.get_secret_value())


@apikey.command("set")
@click.argument("key", required=False)
@click.pass_obj
async def store(kept: Store, key: str | None) -> None:
    """Keep a router key. Without KEY it is asked for, or read from a pipe."""
    path = kept.keys.store(ROUTER_KEY, await given_key(key, "the router"), scope=kept.scope)
    echo(f"the router key is kept in {visible_line(str(path))}")


@apikey.command()
@click.pass_obj
async def remove(kept: Store) -> None:
    """Forget the router key of this scope."""
    gone = kept.keys.remove(ROUTER_KEY, scope=kept.scope)
    where = visible_line(str(kept.keys.path(kept.scope)))
    echo(f"the router key is {'gone from' if gone else 'not in'} {where}")
