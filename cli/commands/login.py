"""`smista login`: a user of the router, made once, whose key is kept."""

import asyncclick as click

from cli.configuration import configured
from cli.connection import open_proven, open_router
from cli.own_keys import router_keys, stored_key
from cli.storing import keep
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.local.credentials import ROUTER_KEY, Scope


@click.command()
@click.option("--global", "everywhere", is_flag=True, help="Keep the key for all projects.")
@click.option("--again", is_flag=True, help="Be a new user, though there is a key.")
@click.pass_obj
async def login(here: Surroundings, everywhere: bool, again: bool) -> None:
    """Create a local user and keep its router key."""
    config = (await configured(here)).merged
    if not again and await stored_key(here, config.router) is not None:
        async with open_router(here, config) as client:
            echo(f"already logged in to {visible_line(client.url)}")
        return
    kept = router_keys(here, config.router)
    async with open_proven(here, config.router) as client:
        identity = await client.bootstrap()
    scope = Scope.GLOBAL if everywhere else Scope.PROJECT
    where = await keep(kept, ROUTER_KEY, identity.api_key, scope)
    echo(f"logged in as {visible_line(identity.user_id)}")
    echo(f"the key is kept in {where}", err=True)
