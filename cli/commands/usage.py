"""`smista usage`: what models were asked and what that cost, with bars."""

import json
import re
import shutil
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import asyncclick as click

from cli.configuration import configured
from cli.connection import open_router
from cli.failures import BadUsage
from cli.looking_back import find_session, read_usage
from cli.surroundings import Surroundings
from cli.usage_view import usage_text
from cli.visible import echo, visible_line
from smista.core.usage import UsageBy

_AGO: Final = re.compile(r"([0-9]{1,5})([hdw])\Z")
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


@click.command()
@click.argument("session", required=False)
@click.option("--since", metavar="WHEN", help="From then on: 7d, 12h, 2w, a day or a time.")
@click.option("--until", metavar="WHEN", help="Before then.")
@click.option(
    "--by",
    type=click.Choice([each.value for each in UsageBy]),
    default=UsageBy.MODEL.value,
    help="Sums for each model (default), intent, day or project.",
)
@click.option("--here", "only_here", is_flag=True, help="Only the sessions of this project.")
@click.option("--json", "as_json", is_flag=True, help="Print the sums as JSON.")
@click.pass_obj
async def usage(
    here: Surroundings,
    session: str | None,
    since: str | None,
    until: str | None,
    by: str,
    only_here: bool,
    as_json: bool,
) -> None:
    """Show what your sessions used and cost, or SESSION alone."""
    if session is not None and (since or until or only_here or by in ("day", "project")):
        raise BadUsage("one session is summed as a whole, by model and intent; leave the options")
    now = datetime.now(UTC)
    bounds = {"since": moment(since, now), "until": moment(until, now)}
    config = (await configured(here)).merged
    async with open_router(here, config) as client:
        if session is None:
            scope = str(here.root) if only_here else None
            sums = await client.spending(by=by, scope=scope, **bounds)
        else:
            found = await find_session(client, here, session)
            echo(f"session {visible_line(found.id)}", err=True)
            sums = await read_usage(client, here, found)
    _print(sums, as_json=as_json)


def _print(sums: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(sums, ensure_ascii=False))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    echo(usage_text(sums, width=width, blocks=encoding == "utf8"))


def moment(text: str | None, now: datetime) -> datetime | None:
    """Return the time that *text* means: so long before *now*, a day of UTC, or a time."""
    if text is None:
        return None
    if ago := _AGO.match(text):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        said = datetime.fromisoformat(text)
    except ValueError:
        raise BadUsage(f"{text!r} is no time; write 7d, 12h, 2w, 2026-05-25 or a time") from None
    return said if said.tzinfo is not None else said.replace(tzinfo=UTC)
