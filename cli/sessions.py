"""Which session a command means when it names none."""

from cli.failures import CommandError
from cli.surroundings import Surroundings
from smista.sdk.answers import SessionSummary
from smista.sdk.client import Client


async def newest_session(client: Client, here: Surroundings) -> SessionSummary:
    """Return this project's most recently used session. Raises CommandError without one."""
    for summary in await client.sessions(scope=str(here.root)):
        if not summary.archived:
            return summary
    raise CommandError(f"there is no session for {here.root} yet")
