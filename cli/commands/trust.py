"""`smista trust`: the user's word on the configuration that a project brings along."""

import asyncclick as click

from cli.approvals import open_terminal
from cli.configuration import decide, keep, put
from cli.failures import REFUSED, BadUsage
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.local.config_files import Configuration, read_configuration
from smista.local.findings import InvalidConfig


@click.command()
@click.option("--yes", is_flag=True, help="Trust it without a question.")
@click.option("--no", is_flag=True, help="Trust it no more: it may only tighten.")
@click.pass_obj
async def trust(here: Surroundings, yes: bool, no: bool) -> int:
    """Decide whether this project's .smista/config.toml counts in full.

    A project file that you do not trust can only make your policy stricter. Trust is for the file
    as it is now; when it changes, you are asked again.
    """
    if yes and no:
        raise BadUsage("--yes and --no exclude each other")
    # Judged as if it were trusted: what it says is what the user decides on.
    read = read_configuration(here.root, here.places, trusted=True)
    name = visible_line(str(read.file))
    if not read.project.source.exists:
        raise BadUsage(f"{name} does not exist; there is nothing to trust")
    if no:
        keep(here, read, trusted=False)
        echo(f"not trusted: {name}")
        return 0
    if read.findings:
        raise InvalidConfig(read.findings)
    if not read.withheld or yes:
        keep(here, read, trusted=True)
    elif not await _ask(here, read):
        echo(f"not trusted: {name}")
        return REFUSED
    echo(f"trusted: {name}")
    return 0


async def _ask(here: Surroundings, read: Configuration) -> bool:
    terminal = open_terminal()
    if terminal is None:
        raise BadUsage(
            f"{put(read)}there is no terminal to ask at; to trust it: smista trust --yes"
        )
    return await decide(here, read, terminal)
