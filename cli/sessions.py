"""Which session a command means when it names none."""

from uuid import UUID

from cli.failures import BadUsage, CommandError
from cli.surroundings import Surroundings
from smista.sdk.answers import SessionSummary
from smista.sdk.client import Client


def check_session_id(text: str) -> None:
    """Raise BadUsage if *text* cannot be the id of a session."""
    try:
        UUID(text)
    except ValueError as error:
        raise BadUsage(
            f"{text!r} is no session id; a prompt says its own at the end, as in "
            "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"
        ) from error


async def newest_session(client: Client, here: Surroundings) -> SessionSummary:
    """Return this project's most recently used session. Raises CommandError without one."""
    for summary in await client.sessions(scope=str(here.root)):
        if not summary.archived:
            return summary
    raise CommandError(f"there is no session for {here.root} yet")
