"""`smista trace`: what was decided in a session, why, and what it cost."""

from typing import Final

import asyncclick as click

from cli.configuration import configured
from cli.connection import open_router
from cli.render import timeline
from cli.sessions import check_session_id, newest_session
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.sdk.answers import TraceEntry
from smista.sdk.client import Client

PAGE: Final = 200


@click.command()
@click.argument("session", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the events, one JSON object a line.")
@click.pass_obj
async def trace(here: Surroundings, session: str | None, as_json: bool) -> None:
    """Show the trace of SESSION, or of this project's newest one."""
    if session is not None:
        check_session_id(session)
    config = (await configured(here)).merged
    async with open_router(here, config) as client:
        session_id = session or (await newest_session(client, here)).id
        events = await _all_events(client, session_id)
    if as_json:
        for event in events:
            echo(event.model_dump_json(exclude_none=True))
        return
    echo(f"session {visible_line(session_id)}", err=True)
    if events:
        echo(timeline(events))
    else:
        echo("no events yet", err=True)


async def _all_events(client: Client, session_id: str) -> list[TraceEntry]:
    events: list[TraceEntry] = []
    while True:
        page = await client.trace(session_id, offset=len(events), limit=PAGE)
        events += page
        if len(page) < PAGE:
            return events
