"""What the client keeps of one session while it runs calls: the journal and the before-images.

A call that only reads is not written down: done twice, it does no more than done once.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from cli.call_journal import CallJournal, Done, OtherCall
from cli.change_store import ChangeStore, Record
from cli.files import Unusable
from cli.session_folder import Sealer, SessionFolder, session_folder
from cli.surroundings import Surroundings
from cli.tools import Change, Prepared
from smista.core.events import ToolRequest
from smista.core.messages import ToolResultEntry

READING: Final = frozenset({"read_file", "list_files", "search_files"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A call that was begun. *entry* is what it answered, if it is *done* and that was kept."""

    done: bool
    entry: ToolResultEntry | None = None


class Keeping:
    """Raises OSError where nothing can be kept; then nothing may be done either."""

    def __init__(self, folder: SessionFolder) -> None:
        self._folder = folder
        self._journal = CallJournal(folder)
        self._changes = ChangeStore(folder)
        self._again: set[str] = set()
        self._record: Record | None = None

    @staticmethod
    def of(here: Surroundings, session_id: str, sealer: Sealer) -> "Keeping":
        return Keeping(session_folder(here, session_id, sealer))

    async def recall(self, request: ToolRequest) -> Known | None:
        """Return what is known of *request*; None if it was never begun. Raises Unusable."""
        if request.name in READING:
            return None
        try:
            found = await trio.to_thread.run_sync(self._journal.recall, request)
        except OtherCall as error:
            raise Unusable("its id stands for another call already") from error
        match found:
            case None:
                return None
            case Done(entry=entry):
                return Known(done=True, entry=entry)
            case _:
                return Known(done=False)

    def begin_again(self, request: ToolRequest) -> None:
        """Note that the user wants *request* begun anew."""
        self._again.add(request.call_id)

    async def begin_call(self, request: ToolRequest, prepared: Prepared) -> bool:
        """Note, durably, that *request* is begun; return whether nobody else has begun it."""
        if request.name in READING:
            return True
        return await trio.to_thread.run_sync(self._begin, request, prepared)

    async def finish(self, request: ToolRequest, entry: ToolResultEntry, *, bodies: bool) -> None:
        """Keep what came of *request*; without *bodies* only that it is done."""
        record, self._record = self._record, None
        if record is not None and entry.is_error:
            await trio.to_thread.run_sync(self._changes.drop_if_unmade, record)
        if request.name not in READING:
            keep = partial(self._journal.finish, request, entry, bodies=bodies)
            await trio.to_thread.run_sync(keep)

    async def forget(self, request: ToolRequest) -> None:
        """Forget a call that was begun and touched nothing."""
        await trio.to_thread.run_sync(self._forget, request)

    async def clear(self) -> None:
        """Forget all calls; the before-images stay."""
        await trio.to_thread.run_sync(self._journal.clear)

    def was_restricted_in_view(self) -> bool:
        return self._folder.was_restricted_in_view()

    def note_restricted_in_view(self) -> None:
        self._folder.note_restricted_in_view()

    def _begin(self, request: ToolRequest, prepared: Prepared) -> bool:
        if not self._journal.start(request, again=request.call_id in self._again):
            return False
        try:
            self._record = self._keep(prepared)
        except BaseException:
            self._journal.forget(request)
            raise
        return True

    def _keep(self, prepared: Prepared) -> Record | None:
        change = prepared.action
        if not isinstance(change, Change) or change.before == change.after:
            return None
        tool, _, name = prepared.title.partition(" ")
        return self._changes.keep(change.seen, change.after, what=tool, name=name)

    def _forget(self, request: ToolRequest) -> None:
        self._journal.forget(request)
        if self._record is not None:
            self._changes.drop(self._record)
            self._record = None
