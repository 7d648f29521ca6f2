"""Restricted content on this machine: whether it was in view, and what then holds of it.

From the moment it was in a prompt of a session, whatever could carry it away is asked for, also
by a later process; what is written then is remembered, and copies are marked.
"""

import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from cli.copies import Copies
from cli.keeping import Keeping
from cli.tools import Change, Outcome, Prepared
from smista.core.calls import call_restriction
from smista.core.events import ToolRequest
from smista.core.privacy import Guard

_COARSE: Final = 20_000_000
"""Nanoseconds by which the time of a file may be behind the clock."""
_PATIENCE: Final = 5.0
"""Seconds in which a broken-off command's files are looked for."""
_COMMANDS: Final = frozenset({"shell", "git"})


class Restriction:
    """Knows for one session whether restricted content was in view."""

    def __init__(self, guard: Guard | None, copies: Copies | None) -> None:
        self._guard = guard
        self._copies = copies
        self._keeping: Keeping | None = None
        self._in_view = False

    async def begin(self, keeping: Keeping) -> None:
        """Go on from what *keeping* knows of the session."""
        self._in_view = await trio.to_thread.run_sync(keeping.was_restricted_in_view)
        self._keeping = keeping

    async def see(self) -> None:
        """Note that restricted content is in view from here on."""
        if not self._in_view:
            self._in_view = True
            if self._keeping is not None:
                await trio.to_thread.run_sync(self._keeping.note_restricted_in_view)

    async def sent(self, names: Iterable[str]) -> None:
        """Note what went along with a prompt: *names* are its paths, or `tool:<name>`."""
        if self._in_view:
            return
        guard = self._guard
        known = self._copies is not None and self._copies.sent
        if known or (guard is not None and any(guard.restricts(name) for name in names)):
            await self.see()

    async def over(self, request: ToolRequest) -> ToolRequest:
        """Return *request* as one with restricted content in view, if that ever was."""
        if request.restricted_in_view:
            await self.see()
        return replace(request, restricted_in_view=self._in_view)

    @asynccontextmanager
    async def watching(self, request: ToolRequest, prepared: Prepared) -> AsyncGenerator[None]:
        """Remember what the body writes, if restricted content is in view."""
        if not request.restricted_in_view or self._copies is None:
            yield
            return
        since = time.time_ns() - _COARSE
        if isinstance(prepared.action, Change):
            change = prepared.action
            note = partial(self._copies.note_written, change.real, change.before, change.after)
            await trio.to_thread.run_sync(note)
        try:
            yield
        finally:
            if request.name in _COMMANDS:
                note = partial(self._copies.note_changed, since)
                with trio.move_on_after(_PATIENCE, shield=True):
                    await trio.to_thread.run_sync(note, abandon_on_cancel=True)

    async def marks(self, outcome: Outcome, paths: tuple[str, ...] | None) -> bool:
        """Return whether the router has to be told that *outcome* is restricted."""
        if outcome.restricted or self._copies is None:
            return bool(outcome.restricted)
        return await self._copies.restricted(outcome.content, paths or ())

    def names(self, request: ToolRequest, paths: tuple[str, ...] | None) -> bool:
        """Return whether *request* or *paths* name something restricted, as the router knows."""
        guard = self._guard
        if guard is None or not guard.active:
            return False
        if any(guard.restricts(path) is not None for path in paths or ()):
            return True
        return call_restriction(guard, request.name, request.arguments) is not None
