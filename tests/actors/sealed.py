"""A client of encrypted sessions, and a journal that looks at all that reaches it."""

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from actors.directory import open_directory
from smista.core.events import Status, TurnEnd
from smista.core.messages import (
    ApprovalDecision,
    ApprovalDecisions,
    ApprovalDecisionsData,
    Decrypted,
    DecryptedData,
    Execute,
    SealedData,
    SealedRows,
    ToolResultEntry,
    ToolResults,
    ToolResultsData,
)
from smista.core.secret import Envelope
from smista.ports.sessions import Call
from smista.sdk.sealing import Sealer, new_key
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, House, open_house, outcome, request

PLANTED = "PLANTED"
"""What no text in a store may hold; tests put it into whatever they say."""


class Watched(MemoryJournal):
    """Fails as soon as anything readable of an encrypted session reaches it."""

    def __init__(self, *, shared: bool = False) -> None:
        self.kept: dict[Any, Any] = {}
        super().__init__(self.kept, shared=shared)
        self.records: list[Any] = []

    async def record_turn(self, record) -> None:
        assert PLANTED not in repr(record)
        self.records.append(record)
        await super().record_turn(record)
        assert PLANTED not in repr(self.kept)


class Client:
    """Speaks in one encrypted session of *house*; *opened* lists what it had to open."""

    def __init__(self, house: House, sealer: Sealer, session_id: str) -> None:
        self.house = house
        self.sealer = sealer
        self.session_id = session_id
        self.opened: list[list[str]] = []
        self.sealed: dict[str, str] = {}  # all that was ever sealed, by reference

    async def tell(self, message, key: str | None = None) -> TurnEnd:
        call = Call(user_id=USER, session_id=self.session_id, message=message, idempotency_key=key)
        return await outcome(await self.house.directory.tell(call))

    def seal(self, ending: TurnEnd, *results: ToolResultEntry) -> dict[str, Envelope]:
        texts = dict(ending.data.get("to_encrypt", {}))
        self.sealed |= texts
        texts |= {f"tool_call:{each.call_id}": each.content for each in results}
        return {name: self.sealer.seal_one(name, text) for name, text in texts.items()}

    def open(self, ending: TurnEnd) -> dict[str, str]:
        asked = ending.data["to_decrypt"]
        self.opened.append(sorted(asked))
        return {
            name: self.sealer.open_one(name, Envelope.model_validate(each))
            for name, each in asked.items()
        }

    def decrypted(self, ending: TurnEnd) -> Decrypted:
        data = DecryptedData(plaintext=self.open(ending), encrypted=self.seal(ending))
        return Decrypted(data=data)

    def sealing(self, ending: TurnEnd) -> SealedRows:
        return SealedRows(data=SealedData(encrypted=self.seal(ending)))

    def results(self, ending: TurnEnd, content: str = "ok", **more: Any) -> ToolResults:
        entries = tuple(
            ToolResultEntry(call_id=each["call_id"], content=content, **more)
            for each in ending.data["tool_requests"]
        )
        return ToolResults(
            data=ToolResultsData(results=entries, encrypted=self.seal(ending, *entries))
        )

    def decision(self, ending: TurnEnd, word: str, reason: str | None = None) -> ApprovalDecisions:
        asked = ending.data["approval"]["approval_id"]
        decided = ApprovalDecision(approval_id=asked, decision=word, reason=reason)
        data = ApprovalDecisionsData(decisions=(decided,), encrypted=self.seal(ending))
        return ApprovalDecisions(data=data)

    async def execute(self, text: str = "tell me", key: str | None = None, **changes) -> TurnEnd:
        """Send a task, and open what it needs."""
        ending = await self.tell(Execute(request=request(text, **changes)), key)
        return await self.through(ending)

    async def through(self, ending: TurnEnd) -> TurnEnd:
        """Answer pauses for opening until there is another ending."""
        while ending.status is Status.AWAITING_DECRYPT:
            ending = await self.tell(self.decrypted(ending))
        return ending

    async def finish(self, ending: TurnEnd) -> TurnEnd:
        """Seal what *ending* lists, if that is all it waits for."""
        if "sealed" not in ending.allowed_continuations:
            return ending
        done = await self.tell(self.sealing(ending))
        assert done.status is Status.IDLE
        return ending

    async def said(self) -> list[tuple[str, str]]:
        """Open the whole session as storage holds it: role and text of each message."""
        detail = await self.house.directory.fetch(USER, self.session_id)
        return [
            (
                each["role"],
                self.sealer.open_one(
                    each["reference"], Envelope.model_validate(each["content"]["encrypted"])
                ),
            )
            for each in detail["messages"]
        ]

    async def state(self):
        session = await self.house.journal.session(USER, self.session_id)
        return await self.house.journal.load(session, messages=None)


@asynccontextmanager
async def open_sealed(*providers, journal=None, **more):
    """A house with one encrypted session, and its client."""
    async with open_house(*providers, journal=journal or Watched(), **more) as house:
        key = new_key()
        session = await house.directory.create(USER, title="t", scope=None, key_id=key.key_id)
        yield Client(house, Sealer(key, session.id), session.id)


@asynccontextmanager
async def restarted(client: Client):
    """The same session under a router that has just started: what was in memory is gone."""
    parts = client.house.directory._parts
    async with open_directory(replace(parts)) as directory:
        house = House(directory, client.house.journal, client.session_id, client.house.providers)
        again = Client(house, client.sealer, client.session_id)
        again.sealed = client.sealed
        yield again
