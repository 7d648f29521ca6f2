"""Finding a session by what a person calls it, and reading it back, opened where the key is."""

import re
from collections.abc import Sequence
from typing import Any, Final

from cli.failures import BadUsage
from cli.sessions import LostKey, newest_session, sealer_of
from cli.surroundings import Surroundings
from cli.visible import echo
from smista.sdk.answers import SessionDetail, SessionSummary, StoredMessage, TraceEntry
from smista.sdk.client import Client
from smista.sdk.opening import open_messages, open_trace, usage_of
from smista.sdk.sealing import Sealer

PAGE: Final = 1000
SHORTEST: Final = 4
"""How much of an id a person has to give."""
_ID_PART: Final = re.compile(r"[0-9a-f-]{1,36}\Z")
_WHOLE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
Found = SessionSummary | SessionDetail
_SHOWN: Final = 5


async def find_session(client: Client, here: Surroundings, text: str | None) -> Found:
    """Return the living session whose id begins or ends with *text*; None: this project's newest.

    Raises BadUsage unless exactly one fits.
    """
    if text is None:
        return await newest_session(client, here)
    if _WHOLE.match(text.lower()):
        return await client.session(text)
    return await find_listed(client, text)


async def find_listed(client: Client, text: str, *, archived: bool = False) -> SessionSummary:
    """Return the session whose id begins or ends with *text*, as it is listed.

    *archived* ones are found only when asked for. Raises BadUsage unless exactly one fits.
    """
    check_name(text)
    part = text.lower()
    owned = await client.sessions()
    found = [each for each in owned if each.id.startswith(part) or each.id.endswith(part)]
    living = [each for each in found if archived or not each.archived]
    if len(living) == 1:
        return living[0]
    raise BadUsage(_not_one(text, living or found))


def check_name(text: str) -> None:
    """Raise BadUsage if *text* cannot be a part of any id; asks nobody."""
    if not _ID_PART.match(text.lower()) or len(text) < SHORTEST:
        raise BadUsage(
            f"{text!r} is no session id; give at least {SHORTEST} characters of its begin or end, "
            "as `smista session list` shows them"
        )


def _not_one(text: str, found: Sequence[SessionSummary]) -> str:
    if not found:
        return f"no session of yours has the id {text!r}; look at: smista session list --all"
    if len(found) == 1:
        return f"session {found[0].id} is archived; first: smista session archive --undo {text}"
    shown = "".join(f"\n  {each.id}  {each.title or ''}" for each in found[:_SHOWN])
    more = f"\n  and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{text!r} fits {len(found)} sessions; give more of the id:{shown}{more}"


async def read_trace(
    client: Client,
    here: Surroundings,
    found: Found,
    *,
    offset: int = 0,
    limit: int | None = None,
) -> Sequence[TraceEntry]:
    """Return the events from *offset* on, all or *limit*, opened if this machine has the key."""
    events: list[TraceEntry] = []
    while limit is None or len(events) < limit:
        wanted = PAGE if limit is None else min(PAGE, limit - len(events))
        page = await client.trace(found.id, offset=offset + len(events), limit=wanted)
        events += page
        if len(page) < wanted:
            break
    sealer = await _sealer(here, found)
    return events if sealer is None else await open_trace(sealer, events)


async def read_messages(
    client: Client, here: Surroundings, found: Found
) -> Sequence[StoredMessage]:
    """Return what was said, opened if this machine has the key."""
    detail = found if isinstance(found, SessionDetail) else await client.session(found.id)
    messages = detail.messages
    sealer = await _sealer(here, found, quiet=True)
    return messages if sealer is None else await open_messages(sealer, messages)


async def read_usage(client: Client, here: Surroundings, found: Found) -> dict[str, Any]:
    """Return the session's usage; that of an encrypted one is summed here, where the key is."""
    if found.key_id is None or await _sealer(here, found) is None:
        return await client.usage(found.id)
    return usage_of(await read_trace(client, here, found))


async def _sealer(here: Surroundings, found: Found, *, quiet: bool = False) -> Sealer | None:
    """Return what opens *found*; None for one in clear, and for one whose key is elsewhere."""
    try:
        return await sealer_of(here, found)
    except LostKey as lost:
        if not quiet:
            echo(f"warning: {lost}", err=True)
        return None
