"""`smista credentials`: provider keys, kept beside the configuration and never in it."""

from typing import Final, cast

import asyncclick as click

from cli.failures import DONE, FAILED, BadUsage
from cli.own_keys import find_key, provider_hint
from cli.storing import Store, forget, given_key, keep, scoped
from cli.surroundings import Surroundings
from cli.visible import echo
from smista.core.errors import SmistaError
from smista.core.model_ref import provider_id

ALIASES: Final = {"add": "set", "get": "check", "delete": "remove", "rm": "remove"}


class Aliased(click.Group):
    """Finds its commands under their other names too."""

    aliases = ALIASES

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, self.aliases.get(cmd_name, cmd_name))


@click.group(cls=Aliased)
@click.option("--global", "everywhere", is_flag=True, help="The key of all your projects.")
@click.pass_context
async def credentials(ctx: click.Context, everywhere: bool) -> None:
    """Keep, check and remove the keys of model providers.

    PROVIDER is anthropic, gemini, openai, ollama or openai-compat:<name>.
    """
    ctx.obj = scoped(cast("Surroundings", ctx.obj), everywhere=everywhere)


@credentials.command("set")
@click.argument("provider")
@click.argument("key", required=False)
@click.pass_obj
async def store(kept: Store, provider: str, key: str | None) -> None:
    """Keep the key of PROVIDER. Without KEY it is asked for, or read from a pipe."""
    name = _provider(provider)
    where = await keep(
        kept.keys, name, await given_key(key, name, f"smista credentials set {name}"), kept.scope
    )
    echo(f"the key of {name} is kept in {where}")


@credentials.command()
@click.argument("provider")
@click.pass_obj
async def check(kept: Store, provider: str) -> int:
    """Say whether a key of PROVIDER is there, without showing it."""
    name = _provider(provider)
    if await find_key(kept.keys, name) is None:
        echo(f"no key of {name}; store it: smista credentials set {name}")
        return FAILED
    echo(f"there is a key of {name}")
    return DONE


@credentials.command()
@click.argument("provider")
@click.pass_obj
async def remove(kept: Store, provider: str) -> None:
    """Forget the key of PROVIDER in this scope."""
    name = _provider(provider)
    echo(f"the key of {name} {await forget(kept.keys, name, kept.scope)}")


def _provider(text: str) -> str:
    try:
        return provider_id(text)
    except SmistaError as error:
        raise BadUsage(f"{error.message}{provider_hint(text)}") from error
