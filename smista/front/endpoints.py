"""What each endpoint does: read the request, ask the port, show the answer. It decides nothing."""

import re
from typing import Final

import trio

from smista.core.errors import InvalidRequest
from smista.core.session_copy import SessionCopy
from smista.core.session_export import copy_of, export_of
from smista.core.session_views import session_summary
from smista.core.views import preview_view
from smista.front.asked import Asked
from smista.front.auth import Auth, Identity
from smista.front.bodies import (
    CREATE_SESSION,
    EXECUTE,
    IMPORT,
    IMPORTED_AT_MOST,
    UPDATE_SESSION,
    read_body,
)
from smista.front.ids import session_uuid
from smista.front.queries import usage_query
from smista.front.replies import Reply, json_reply
from smista.front.views import (
    models_view,
    providers_view,
    spending_view,
    trace_view,
    usage_view,
)
from smista.ports.sessions import Sessions

_TRACE_PAGE: Final = 50
_TRACE_PAGE_AT_MOST: Final = 10_000
_OFFSET_AT_MOST: Final = 2**53
_LISTING_MS: Final = 10_000
_LISTING_MS_AT_MOST: Final = 60_000
_DIGITS: Final = re.compile(r"[0-9]{1,18}\Z")


class Accounts:
    """Users and their tokens."""

    def __init__(self, auth: Auth) -> None:
        self._auth = auth

    async def bootstrap(self, asked: Asked) -> Reply:
        user = await self._auth.bootstrap()
        return json_reply({"user_id": user.user_id, "api_key": user.api_key}, 201)

    async def sign_in(self, asked: Asked) -> Reply:
        issued = await self._auth.sign_in(asked.headers.get("x-smista-api-key"))
        return json_reply({"token": issued.token, "expires_at": issued.expires_at})

    async def sign_out(self, asked: Asked, identity: Identity) -> Reply:
        await self._auth.sign_out(identity)
        return json_reply({"revoked": True})

    async def me(self, asked: Asked, identity: Identity) -> Reply:
        return json_reply({"user_id": identity.user_id})


class SessionEndpoints:
    """Sessions and what can be read of them."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def create(self, asked: Asked, identity: Identity) -> Reply:
        body = await read_body(asked, CREATE_SESSION)
        session = await self._sessions.create(
            identity.user_id, title=body.title, scope=body.scope, key_id=body.key_id
        )
        return json_reply({"session": session_summary(session)}, 201)

    async def list(self, asked: Asked, identity: Identity) -> Reply:
        found = await self._sessions.list(
            identity.user_id, scope=asked.query.get("scope"), title=asked.query.get("title")
        )
        return json_reply({"sessions": [session_summary(session) for session in found]})

    async def fetch(self, asked: Asked, identity: Identity) -> Reply:
        session_id = session_uuid(asked.session_id)
        return json_reply({"session": await self._sessions.fetch(identity.user_id, session_id)})

    async def update(self, asked: Asked, identity: Identity) -> Reply:
        session_id = session_uuid(asked.session_id)
        body = await read_body(asked, UPDATE_SESSION)
        session = await self._sessions.update(
            identity.user_id, session_id, title=body.title, archived=body.archived
        )
        return json_reply({"session": session_summary(session)})

    async def delete(self, asked: Asked, identity: Identity) -> Reply:
        await self._sessions.delete(identity.user_id, session_uuid(asked.session_id))
        return json_reply({"deleted": True})

    async def preview(self, asked: Asked, identity: Identity) -> Reply:
        session_id = session_uuid(asked.session_id)
        request = await read_body(asked, EXECUTE)
        decision = await self._sessions.preview(
            identity.user_id, session_id, request, asked.provider_keys()
        )
        return json_reply(preview_view(decision))

    async def traces(self, asked: Asked, identity: Identity) -> Reply:
        session_id = session_uuid(asked.session_id)
        limit = _count(asked, "limit", _TRACE_PAGE, _TRACE_PAGE_AT_MOST)
        offset = _count(asked, "offset", 0, _OFFSET_AT_MOST)
        events = await self._sessions.trace(
            identity.user_id, session_id, offset=offset, limit=limit
        )
        return json_reply(trace_view(session_id, events))

    async def usage(self, asked: Asked, identity: Identity) -> Reply:
        session_id = session_uuid(asked.session_id)
        return json_reply(usage_view(await self._sessions.usage(identity.user_id, session_id)))

    async def export(self, asked: Asked, identity: Identity) -> Reply:
        session_id = session_uuid(asked.session_id)
        copy = await self._sessions.export(identity.user_id, session_id)
        return await trio.to_thread.run_sync(_exported, copy)

    async def take_in(self, asked: Asked, identity: Identity) -> Reply:
        export = await read_body(asked, IMPORT, IMPORTED_AT_MOST)
        copy = await trio.to_thread.run_sync(copy_of, export, identity.user_id)
        made = await self._sessions.take_in(identity.user_id, copy)
        return json_reply({"session": session_summary(made)}, 201)

    async def spending(self, asked: Asked, identity: Identity) -> Reply:
        query = usage_query(asked.query)
        return json_reply(
            spending_view(query.by, await self._sessions.spending(identity.user_id, query))
        )


class ModelEndpoints:
    """Providers and models."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def providers(self, asked: Asked, identity: Identity) -> Reply:
        return json_reply(providers_view(self._sessions.providers()))

    async def models(self, asked: Asked, identity: Identity) -> Reply:
        deadline = _listing_ms(asked.headers.get("x-smista-timeout-ms", "")) / 1000
        catalog = await self._sessions.models(asked.provider_keys(), deadline=deadline)
        return json_reply(models_view(catalog))


def _exported(copy: SessionCopy) -> Reply:
    return json_reply(export_of(copy).model_dump(mode="json", exclude_none=True))


def _count(asked: Asked, name: str, default: int, most: int) -> int:
    text = asked.query.get(name)
    if text is None:
        return default
    if not _DIGITS.match(text):
        raise InvalidRequest(
            f"the parameter {name} must be a whole number of 0 or more",
            fields=[{"place": f"query.{name}", "kind": "int_parsing"}],
        )
    return min(int(text), most)


def _listing_ms(text: str) -> int:
    if not _DIGITS.match(text) or int(text) == 0:
        return _LISTING_MS
    return min(int(text), _LISTING_MS_AT_MOST)
