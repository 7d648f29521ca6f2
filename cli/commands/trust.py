"""`smista trust`: the user's word on the configuration that a project brings along."""

import asyncclick as click

from cli.approvals import open_terminal
from cli.configuration import decide, keep, put
from cli.failures import DONE, REFUSED, BadUsage
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.local.config_files import Configuration, read_configuration
from smista.local.findings import InvalidConfig
from smista.local.trust import is_trusted


@click.command()
@click.argument("what", type=click.Choice(["show", "revoke"]), required=False)
@click.option("--yes", is_flag=True, help="Trust it without a question.")
@click.option("--no", is_flag=True, help="The same as revoke.")
@click.pass_obj
async def trust(here: Surroundings, what: str | None, yes: bool, no: bool) -> int:
    """Decide whether this project's .smista/config.toml counts in full.

    A project file that you do not trust can only make your policy stricter. Trust is for the file
    as it is now; when it changes, you are asked again.

    \b
    smista trust          what it would loosen or redirect, and a question
    smista trust show     the same without a question, and what you said before
    smista trust revoke   it may only tighten from now on
    """
    if sum((yes, no, what is not None)) > 1:
        raise BadUsage("--yes, --no, show and revoke exclude each other")
    # Judged as if it were trusted: what it says is what the user decides on.
    read = read_configuration(here.root, here.places, trusted=True)
    if not read.project.source.exists:
        raise BadUsage(f"{read.file} does not exist; there is nothing to trust")
    if what == "show":
        return _show(here, read)
    if no or what == "revoke":
        keep(here, read, trusted=False)
        return _said(read, trusted=False)
    return await _decide(here, read, yes=yes)


async def _decide(here: Surroundings, read: Configuration, *, yes: bool) -> int:
    if read.findings:
        raise InvalidConfig(read.findings)
    if not read.withheld or yes:
        keep(here, read, trusted=True)
    elif not await _ask(here, read):
        _said(read, trusted=False)
        return REFUSED
    return _said(read, trusted=True)


def _said(read: Configuration, *, trusted: bool) -> int:
    echo(f"{'trusted' if trusted else 'not trusted'}: {visible_line(str(read.file))}")
    return DONE


def _show(here: Surroundings, read: Configuration) -> int:
    """Print the user's word on the file, and what depends on it."""
    word = is_trusted(here.places, read.file, read.project.source.digest or "")
    words = {True: "trusted", False: "not trusted", None: "not decided yet"}
    if not read.withheld:
        echo(f"{visible_line(str(read.file))} loosens and redirects nothing; it counts as it is")
    else:
        echo(put(read), nl=False)
        echo(f"{words[word]}: {visible_line(str(read.file))}")
    return DONE


async def _ask(here: Surroundings, read: Configuration) -> bool:
    terminal = open_terminal()
    if terminal is None:
        raise BadUsage(
            f"{put(read)}there is no terminal to ask at; to trust it: smista trust --yes"
        )
    return await decide(here, read, terminal)
