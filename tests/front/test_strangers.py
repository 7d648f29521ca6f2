"""No endpoint tells or changes anything of another user, whatever id it is given."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product

import httpx
import pytest
import trio

from smista.front.app import Front, create_app
from smista.front.serve import serve
from smista.storage.memory import MemoryJournal
from smista.storage.rows import Row, ref
from smista.storage.values import Ref
from tests.actors.all_paths import MODELS, play, providers
from tests.actors.house import USER, open_quick
from tests.fakes import Stall
from tests.front.harness import EXECUTE_BODY, SETTINGS

API = "/api/v1"
TURNS = ("/sessions/<session_id>/execute", "/sessions/<session_id>/continue")
"""Endpoints that are answered before the map of the others is asked."""
THEIRS = ("teh", "be brief", "was fixed", "b.env", "Once upon", "/elsewhere", "rejected write")
"""Words that stand in another user's sessions, memory and traces."""
BODY = {**EXECUTE_BODY, "type": "break", "title": "mine now", "archived": True}
"""What every endpoint with a body takes: it leaves what is not its own."""
QUERY = {"scope": "/project", "by": "project", "limit": "10000"}
PUBLIC = {f"{API}/auth/bootstrap", f"{API}/auth/sign-in"}


@dataclass(frozen=True)
class Town:
    """A router with two users: one whose sessions took every path, and a client of the other."""

    app: Front
    client: httpx.AsyncClient
    rows: dict[Ref, Row]

    def theirs(self) -> dict[Ref, Row]:
        owner = ref("user", USER)
        return {at: row for at, row in self.rows.items() if row.get("user", at) == owner}

    def ids(self) -> list[str]:
        """Return every id by which something of theirs could be called, by table a few."""
        found: dict[str, list[str]] = {}
        for at, row in self.rows.items():
            known = found.setdefault(at.table, [])
            known += [_own(at), str(row.get("uuid", ""))]
        some = [each for known in found.values() for each in (*known[:4], *known[-4:])]
        return sorted({each for each in some if len(each) == 36} | set(found["session"]))


def _own(at: Ref) -> str:
    return str(at.key[-1] if isinstance(at.key, tuple) else at.key)


@asynccontextmanager
async def town() -> AsyncIterator[Town]:
    rows: dict[Ref, Row] = {}
    stall = Stall()
    far, near = providers(stall)
    journal = MemoryJournal(rows)
    async with open_quick(far, near, models=MODELS, journal=journal) as house:
        await play(house, stall)
        app = create_app(house.directory, journal, SETTINGS)
        async with trio.open_nursery() as nursery:
            serving = partial(serve, app, SETTINGS, shutdown_trigger=trio.sleep_forever)
            (url, *_) = await nursery.start(serving)
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as client:
                await _sign_in(client)
                yield Town(app, client, rows)
            nursery.cancel_scope.cancel()


async def _sign_in(client: httpx.AsyncClient) -> None:
    made = (await client.post(f"{API}/auth/bootstrap")).json()
    headers = {"X-Smista-Api-Key": made["api_key"]}
    issued = (await client.post(f"{API}/auth/sign-in", headers=headers)).json()
    client.headers["Authorization"] = f"Bearer {issued['token']}"


def endpoints(app: Front) -> Iterator[tuple[str, str]]:
    """Yield method and path of every endpoint that needs a token, signing out last."""
    rules = [(m, rule.rule) for rule in app.url_map.iter_rules() for m in rule.methods or ()]
    known = [*rules, *(("POST", API + path) for path in TURNS)]
    own = [(m, path) for m, path in known if path not in PUBLIC and m not in ("HEAD", "OPTIONS")]
    yield from sorted(own, key=lambda each: "sign-out" in each[1])


def filled(path: str, names: list[str], ids: list[str]) -> Iterator[str]:
    """Yield *path* with every combination of *ids* in the place of its *names*."""
    for values in product(ids, repeat=len(names)):
        whole = path
        for name, value in zip(names, values, strict=True):
            whole = whole.replace(f"<{name}>", value)
        yield whole


def names_in(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("<")]


async def _ask(town: Town, method: str, path: str, query: Mapping[str, str]) -> httpx.Response:
    body = {} if method in ("GET", "DELETE") else {"json": BODY}
    return await town.client.request(method, path, params=query, **body)


async def test_nothing_of_another_user_is_told_or_changed_by_any_id():
    async with town() as place:
        before, ids = place.theirs(), place.ids()
        assert len(before) > 200
        assert [word for word in THEIRS if word not in str(place.rows)] == []
        for method, path in endpoints(place.app):
            names = names_in(path)
            queries = [{"session_id": each} for each in _some(place)] if "fact_id" in names else []
            for whole, query in product(filled(path, names, ids), [{}, *queries]):
                answer = await _ask(place, method, whole, query)
                assert not names or answer.status_code in (400, 404), (method, path)
                told = [word for word in THEIRS if word in answer.text]
                assert told == [], (method, path)
        assert place.theirs() == before


@pytest.mark.parametrize("name", ["session_id", "session", "user_id", "user", "id", "offset"])
async def test_nor_by_any_parameter(name: str):
    async with town() as place:
        before = place.theirs()
        listed = [path for method, path in endpoints(place.app) if method == "GET"]
        for path, value in product((p for p in listed if not names_in(p)), (*_some(place), USER)):
            answer = await _ask(place, "GET", path, {**QUERY, name: value})
            assert [word for word in THEIRS if word in answer.text] == [], path
            assert USER not in answer.text
        assert place.theirs() == before


def _some(place: Town) -> list[str]:
    return [_own(at) for at in place.rows if at.table == "session"][:3]
