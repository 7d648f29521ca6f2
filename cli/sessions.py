"""Which session a command works in, and the key of an encrypted one.

Nothing is said in a session before router and this machine agree on how it is encrypted.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import trio

from cli.failures import UNREACHABLE, BadUsage, CommandError
from cli.surroundings import Surroundings
from smista.core.intents import Mode
from smista.local.config_files import ConfigFile
from smista.local.session_keys import SessionKeys
from smista.sdk.answers import SessionDetail, SessionSummary
from smista.sdk.client import Client
from smista.sdk.errors import ApiError
from smista.sdk.sealing import Sealer, new_key

USER_MEMORY: Final = (
    'memory = "allow": what is remembered about you belongs to no single session, so it is not '
    "encrypted and stays readable to the router"
)


class LostKey(CommandError):
    """The key of an encrypted session is not on this machine."""

    def __init__(self, session_id: str, key_id: str) -> None:
        super().__init__(
            f"the key of session {session_id} is not on this machine ({key_id}): what was said in "
            "it can neither be read nor continued here. If another machine has the key, take it "
            f"along: `smista keys export {key_id}` there, `smista keys import` here. If none has, "
            "the content is lost for good; title, times and models are still shown, and the "
            "session can be deleted"
        )


class Downgraded(CommandError):
    """The router shows a session otherwise than this machine made it."""

    exit_code = UNREACHABLE

    def __init__(self, session_id: str, known: str, shown: str | None) -> None:
        says = "not encrypted" if shown is None else f"encrypted with another key ({shown[:64]!r})"
        super().__init__(
            f"session {session_id} was made here with the key {known}, and the router says it is "
            f"{says}; nothing was sent. Do not trust this router with it: begin a new session, "
            "and find out who runs the router or changed its database"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A session that may be spoken in. *sealer* holds the key of an encrypted one."""

    id: str
    title: str | None
    sealer: Sealer | None

    def notices(self, config: ConfigFile) -> tuple[str, ...]:
        """Return what the person should know of this session under *config*."""
        # Only an explicit word lets an encrypted session remember for all sessions.
        if self.sealer is None or config.tools.permissions.get("memory") is not Mode.ALLOW:
            return ()
        return (USER_MEMORY,)


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


async def begin_session(
    client: Client, here: Surroundings, config: ConfigFile, title: str
) -> Opened:
    """Make a session of this project: encrypted, unless the configuration says otherwise.

    The key is durable before the session is made. *title* is for one in clear; that of an
    encrypted session says nothing of what it is about.
    """
    if not config.local_preferences.encrypt_sessions:
        made = await client.create_session(title, scope=str(here.root))
        return Opened(id=made.id, title=made.title, sealer=None)
    keys, key = SessionKeys(here.places), new_key()
    await trio.to_thread.run_sync(keys.store, key)
    try:
        plain = plain_title(here, datetime.now())
        made = await client.create_session(plain, scope=str(here.root), key_id=key.key_id)
    except ApiError:
        await trio.to_thread.run_sync(keys.remove, key.key_id)  # no session needs it
        raise
    await trio.to_thread.run_sync(keys.record, made.id, key.key_id)
    if made.key_id != key.key_id:
        raise Downgraded(made.id, key.key_id, made.key_id)
    return Opened(id=made.id, title=made.title, sealer=Sealer(key, made.id))


async def open_session(client: Client, here: Surroundings, session_id: str) -> Opened:
    """Return the session *session_id*. Raises LostKey, Downgraded."""
    return await opened(here, await client.session(session_id))


async def opened(here: Surroundings, found: SessionSummary | SessionDetail) -> Opened:
    """Return the session that was *found*, ready to be spoken in. Raises LostKey, Downgraded."""
    sealer = await sealer_of(here, found)
    return Opened(id=found.id, title=found.title, sealer=sealer)


async def sealer_of(here: Surroundings, found: SessionSummary | SessionDetail) -> Sealer | None:
    """Return what opens the session that was *found*, None for one in clear.

    Raises LostKey, Downgraded.
    """
    keys = SessionKeys(here.places)
    known = await trio.to_thread.run_sync(keys.recorded, found.id)
    if known is not None and known != found.key_id:
        raise Downgraded(found.id, known, found.key_id)
    if found.key_id is None:
        return None
    key = await trio.to_thread.run_sync(keys.find, found.key_id)
    if key is None:
        raise LostKey(found.id, found.key_id)
    if known is None:
        # It was made on another machine, or here by a command that was killed.
        await trio.to_thread.run_sync(keys.record, found.id, found.key_id)
    return Sealer(key, found.id)


async def forget_key(here: Surroundings, session_id: str) -> bool:
    """Delete the key of a session that was deleted; return whether there was one."""
    return await trio.to_thread.run_sync(SessionKeys(here.places).forget, session_id)


def plain_title(here: Surroundings, now: datetime) -> str:
    """Return the title of an encrypted session: when and where, and nothing of its content."""
    return f"{now:%Y-%m-%d} {here.root.name or here.root}"
