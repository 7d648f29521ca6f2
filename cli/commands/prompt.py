"""`smista "…"`: one prompt, one session, the answer on stdout and all else on stderr."""

from copy import copy
from pathlib import Path
from typing import Any

import asyncclick as click

from cli.arguments import PROMPT, YES_TO
from cli.surroundings import Surroundings
from smista.core.intents import TaskIntent


@click.command(PROMPT, hidden=True)
@click.argument("words", nargs=-1)
@click.option("--model", metavar="PROVIDER/MODEL", help="Use this model, whatever the rules say.")
@click.option(
    "--intent",
    type=click.Choice([str(intent) for intent in TaskIntent]),
    help="Take this intent, whatever the rules find.",
)
@click.option("--plan", is_flag=True, help="Make a plan first, and ask before it is carried out.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Send this file along, like @PATH; may be given more than once.",
)
@click.option(
    "--skill",
    "skills",
    metavar="NAME",
    multiple=True,
    help="Work by this skill; may be given more than once.",
)
@click.option(
    "--session", metavar="ID", help="Go on in this session; the first characters of its id will do."
)
@click.option("--continue", "go_on", is_flag=True, help="Go on in this project's newest session.")
@click.option(
    "--yes",
    is_flag=True,
    help="Approve file writes inside the project; --yes=shell,git,network: these too.",
)
@click.option(YES_TO, "yes_to", hidden=True, default="")
@click.option("--deny-tools", is_flag=True, help="Let the model use no tool at all.")
@click.option("--json", "as_json", is_flag=True, help="Print the last turn as JSON on stdout.")
@click.option("--no-stream", is_flag=True, help="Print the answer when it is complete.")
@click.pass_obj
async def run_prompt(here: Surroundings, /, **given: Any) -> int:
    """Run one prompt: the words, with what is piped in after them.

    \b
    smista run "explain @src/main.py"
    git diff | smista run --intent review "any mistakes?"
    smista run --yes "fix the typo in @README.md"
    smista run --plan "split @src/app.py into modules"
    smista run --continue "and now the tests"
    smista run --continue     answers what a run that was cut off still waits for
    """
    from cli.one_shot import Wanted, run_once  # --help needs none of it

    return await run_once(here, Wanted(**given))


run = copy(run_prompt)
"""The same under the name that a person types."""
run.hidden = False
