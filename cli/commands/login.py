"""`smista login`: a user of the router, made once, whose key is kept."""

from typing import NamedTuple

import asyncclick as click

from cli.configuration import configured
from cli.connection import open_proven, open_router
from cli.own_keys import router_keys, stored_key
from cli.storing import keep
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.local.config_files import RouterConnection
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
    made = await make_user(here, config.router, Scope.GLOBAL if everywhere else Scope.PROJECT)
    echo(f"logged in as {visible_line(made.user_id)}")
    echo(f"the key is kept in {made.kept_in}", err=True)


class MadeUser(NamedTuple):
    user_id: str
    kept_in: str


async def make_user(here: Surroundings, connection: RouterConnection, scope: Scope) -> MadeUser:
    """Make a user on the router, which has proved to be this person's own, and keep its key."""
    kept = router_keys(here, connection)
    async with open_proven(here, connection) as client:
        identity = await client.bootstrap()
    where = await keep(kept, ROUTER_KEY, identity.api_key, scope)
    return MadeUser(identity.user_id, str(where))
