"""`smista trace`: what was decided in a session, why, and what it cost."""

import asyncclick as click

from cli.configuration import configured
from cli.connection import open_router
from cli.looking_back import check_name, find_session, read_messages, read_trace
from cli.surroundings import Surroundings
from cli.timeline import said_in, timeline
from cli.visible import echo, visible_line


@click.command()
@click.argument("session", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the events, one JSON object a line.")
@click.option("--limit", type=click.IntRange(1), help="Show this many events; else all.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Leave out the first events.")
@click.pass_obj
async def trace(
    here: Surroundings, session: str | None, as_json: bool, limit: int | None, offset: int
) -> None:
    """Show the trace of SESSION, or of this project's newest one.

    SESSION is an id, or the first or last characters of one.
    """
    if session is not None:
        check_name(session)
    config = (await configured(here)).merged
    async with open_router(here, config) as client:
        found = await find_session(client, here, session)
        events = await read_trace(client, here, found, offset=offset, limit=limit)
        # Which messages the events tell of is known only if none of the last ones is left out.
        whole = not as_json and (limit is None or len(events) < limit)
        said = said_in(await read_messages(client, here, found)) if whole else []
    if as_json:
        for event in events:
            echo(event.model_dump_json(exclude_none=True))
        return
    echo(f"session {visible_line(found.id)}", err=True)
    if events:
        echo(timeline(events, said))
    else:
        echo("no events yet" if offset == 0 else f"no events from {offset} on", err=True)
