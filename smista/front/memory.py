"""What is remembered, over HTTP: a person reads it, and deletes what should not be."""

from typing import Any

from smista.core.errors import NotFound
from smista.core.records import MemoryRecord
from smista.core.secret import Plain, Sealed
from smista.core.session_views import timestamp
from smista.front.asked import Asked
from smista.front.auth import Identity
from smista.front.ids import session_uuid
from smista.front.replies import Reply, json_reply
from smista.ports.sessions import Sessions


class MemoryEndpoints:
    """A user's facts; with `session_id` in the query, those of that session too."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def list(self, asked: Asked, identity: Identity) -> Reply:
        found = await self._facts(asked, identity)
        return json_reply({"facts": [fact_view(fact) for fact in found]})

    async def fetch(self, asked: Asked, identity: Identity) -> Reply:
        wanted = (asked.fact_id or "").lower()
        for fact in await self._facts(asked, identity):
            if fact.id == wanted:
                return json_reply({"fact": fact_view(fact)})
        raise _unknown()

    async def delete(self, asked: Asked, identity: Identity) -> Reply:
        fact_id = (asked.fact_id or "").lower()
        gone = await self._sessions.forget(identity.user_id, fact_id, session_id=_session_id(asked))
        if not gone:
            raise _unknown()
        return json_reply({"deleted": True})

    async def _facts(self, asked: Asked, identity: Identity) -> tuple[MemoryRecord, ...]:
        return await self._sessions.facts(identity.user_id, session_id=_session_id(asked))


def fact_view(fact: MemoryRecord) -> dict[str, Any]:
    """Return a fact as the API shows it; a sealed one shows its envelope."""
    match fact.content:
        case Plain(text):
            content: dict[str, Any] = {"plaintext": text}
        case Sealed(envelope):
            content = {"encrypted": envelope.model_dump()}
    return {
        "id": fact.id,
        "scope": fact.scope.value,
        **({} if fact.key is None else {"key": fact.key}),
        "content": content,
        "restricted": fact.restricted,
        "created_at": timestamp(fact.created_at),
        "updated_at": timestamp(fact.updated_at),
    }


def _session_id(asked: Asked) -> str | None:
    text = asked.query.get("session_id")
    return None if text is None else session_uuid(text)


def _unknown() -> NotFound:
    return NotFound("no such fact; look at the list of what is remembered for its id")
