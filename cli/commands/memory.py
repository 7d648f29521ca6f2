"""`smista memory`: what is remembered about you, to read, to take along and to forget."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncclick as click

from cli.approvals import open_terminal
from cli.configuration import configured
from cli.connection import open_router
from cli.failures import DONE, REFUSED, BadUsage
from cli.remembered import as_json, chosen, content_of, fact_text, facts_text, known_facts
from cli.sessions import check_session_id, open_session
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.sdk.answers import RememberedFact
from smista.sdk.client import Client


def _of_session(command: Any) -> Any:
    return click.option(
        "--session", "session_id", metavar="ID", help="What this session remembers as well."
    )(command)


@click.group()
async def memory() -> None:
    """Show, export and forget what is remembered about you."""


@memory.command("list")
@click.argument("words", nargs=-1)
@click.option("--json", "as_lines", is_flag=True, help="Print the facts, one JSON object a line.")
@_of_session
@click.pass_obj
async def list_facts(
    here: Surroundings, words: tuple[str, ...], as_lines: bool, session_id: str | None
) -> None:
    """List what is remembered, newest first; with WORDS what holds all of them."""
    async with _known(here, session_id) as (_, facts):
        if not as_lines:
            echo(facts_text(facts, " ".join(words)))
            return
        for entry in as_json(facts):
            echo(json.dumps(entry))


@memory.command()
@click.argument("name")
@click.option("--json", "as_object", is_flag=True, help="Print the fact as JSON.")
@_of_session
@click.pass_obj
async def show(here: Surroundings, name: str, as_object: bool, session_id: str | None) -> None:
    """Show all that is known of the fact with the key or id NAME."""
    async with _known(here, session_id) as (_, facts):
        fact = chosen(facts, name)
    echo(json.dumps(as_json([fact])[0]) if as_object else fact_text(fact))


@memory.command()
@click.argument("names", nargs=-1, required=False)
@click.option("--all", "everything", is_flag=True, help="Forget all of it.")
@click.option("--yes", is_flag=True, help="Forget it without a question.")
@_of_session
@click.pass_obj
async def forget(
    here: Surroundings,
    names: tuple[str, ...],
    everything: bool,
    yes: bool,
    session_id: str | None,
) -> int:
    """Forget the facts with these keys or ids NAMES, for good."""
    if bool(names) == everything:
        raise BadUsage("name what to forget, or say --all")
    async with _known(here, session_id) as (client, facts):
        meant = list(facts) if everything else [chosen(facts, name) for name in names]
        if not meant:
            echo("nothing is remembered")
            return DONE
        if not yes and not await _agreed(meant):
            return REFUSED
        for fact in {each.id: each for each in meant}.values():
            # Only a session's own fact is asked of the session.
            where = session_id if fact.scope == "session" else None
            await client.forget_fact(fact.id, session_id=where)
            echo(f"forgotten: {visible_line(content_of(fact))}")
    return DONE


@memory.command()
@_of_session
@click.pass_obj
async def export(here: Surroundings, session_id: str | None) -> None:
    """Print everything that is remembered as one JSON document."""
    async with _known(here, session_id) as (_, facts):
        echo(json.dumps({"version": 1, "facts": as_json(facts)}, indent=2, ensure_ascii=False))


async def _agreed(meant: Sequence[RememberedFact]) -> bool:
    for fact in meant:
        echo(f"  {visible_line(content_of(fact))}", err=True)
    terminal = open_terminal()
    if terminal is None:
        raise BadUsage("nobody can be asked here; say --yes to forget it")
    return await terminal.ask("forget this for good?")


@asynccontextmanager
async def _known(
    here: Surroundings, session_id: str | None
) -> AsyncGenerator[tuple[Client, tuple[RememberedFact, ...]]]:
    """Lend the router's client and what it remembers, a session's own facts opened."""
    if session_id is not None:
        check_session_id(session_id)
    config = (await configured(here)).merged
    async with open_router(here, config) as client:
        sealer = None
        if session_id is not None:
            sealer = (await open_session(client, here, session_id)).sealer
        yield client, await known_facts(client, session_id=session_id, sealer=sealer)
