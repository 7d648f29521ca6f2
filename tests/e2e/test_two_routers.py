"""Two routers, each with a home of its own, on one database server: a stand-in for it."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
import trio
from pydantic import SecretStr

from actors.daemon import front_settings
from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.core.messages import Break
from smista.front.auth import Auth
from smista.local.router_config import RouterConfig
from smista.sdk.client import Client, EventStream, open_client
from smista.sdk.errors import ApiError
from smista.storage.bridge import Target
from smista.storage.store import Store, open_plain_store
from smista.storage.surreal import open_surreal
from tests.e2e.house import House, Router, done, request, running
from tests.storage.serving import serving

STORE = """
[router.auth]
local_bootstrap_enabled = false

[router.storage]
mode = "remote"
url = "{url}"
"""
EXPIRE = """
UPDATE session_run_state SET active.lease.until = time::now() WHERE active != NONE RETURN NONE
"""


@dataclass(frozen=True)
class Server:
    """Where the database is, and a way to what it holds."""

    url: str
    model: str
    folder: Path

    @contextmanager
    def router(self, name: str) -> Iterator[Router]:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        house = House(folder=folder, model=self.model)
        with house.router_file.open("a") as file:
            file.write(STORE.format(url=self.url))
        with running(house) as router:
            yield router

    @asynccontextmanager
    async def store(self) -> AsyncGenerator[Store]:
        target = Target(url=self.url, namespace="smista", database="local")
        async with open_plain_store(target) as store:
            yield store

    async def expire(self) -> None:
        """Let the time of all leases be over."""
        async with self.store() as store:
            await store.change(EXPIRE)

    async def messages(self) -> int:
        async with self.store() as store:
            (found,) = await store.read("SELECT VALUE id FROM session_message")
        return len(found)

    @asynccontextmanager
    async def clients(self, a: Router, b: Router) -> AsyncGenerator[tuple[Client, Client]]:
        """Lend a client of each router, both of one user."""
        async with open_surreal(self.url) as journal:
            # Routers of a shared store make no users, so we do.
            user = await Auth(journal, front_settings(RouterConfig())).bootstrap()
        key = SecretStr(user.api_key)
        async with (
            open_client(a.house.client_config, api_key=key) as first,
            open_client(b.house.client_config, api_key=key) as second,
        ):
            yield first, second


@pytest.fixture
def server(tmp_path: Path, model: str) -> Iterator[Server]:
    with serving() as port:
        yield Server(url=f"ws://127.0.0.1:{port}/rpc", model=model, folder=tmp_path)


async def begun(events: EventStream) -> None:
    """Return once the model has said something."""
    while not isinstance(await anext(events), TextDeltaEvent):
        continue


async def said(client: Client, session_id: str) -> list[tuple[str, str]]:
    kept = await client.session(session_id)
    return [(message.role, message.content["plaintext"]) for message in kept.messages]


async def test_a_run_goes_on_at_another_router(server: Server) -> None:
    with server.router("a") as a, server.router("b") as b:
        async with server.clients(a, b) as (first, second):
            session = await first.create_session("shared")
            assert (await first.execute(session.id, request("one"))).status is Status.COMPLETED
            assert (await second.execute(session.id, request("two"))).status is Status.COMPLETED
            turn = await first.execute(session.id, request("fix the typo"))
            answer = done(turn.data["tool_requests"])
            ended = await second.continue_run(session.id, answer)
            assert ended.status is Status.COMPLETED
            assert [text for role, text in await said(first, session.id) if role != "tool"] == [
                *("one", "You wrote: one", "two", "You wrote: two"),
                *("fix the typo", "I will mend it. ", "Mended."),
            ]
        names = [(r.house.home / "instance").read_text() for r in (a, b)]
        assert len(set(names)) == 2
        assert [a.leave(), b.leave()] == [0, 0]


async def test_a_stopped_router_that_was_overtaken_writes_nothing_when_it_goes_on(
    server: Server,
) -> None:
    with server.router("a") as a, server.router("b") as b:
        async with server.clients(a, b) as (first, second):
            session = await first.create_session("shared")
            async with first.stream_execute(session.id, request("never end")) as events:
                await begun(events)
                with pytest.raises(ApiError) as refused:
                    await second.execute(session.id, request("quick"))
                assert (refused.value.status, refused.value.code) == (409, "run_in_flight")
                a.process.send(SIGSTOP)
                await server.expire()
                ended = await second.execute(session.id, request("quick"))
                assert ended.status is Status.COMPLETED
                a.process.send(SIGCONT)
                with pytest.raises(ApiError):
                    await first.continue_run(session.id, Break())
                last = [event async for event in events][-1]
            assert isinstance(last, TurnEnd)
            assert last.data["error"]["code"] == "storage_error"
            assert "send the message again" in last.data["error"]["message"]
            again = await first.execute(session.id, request("again"))
            assert again.status is Status.COMPLETED
            assert await said(second, session.id) == [
                *(("user", "quick"), ("assistant", "You wrote: quick")),
                *(("user", "again"), ("assistant", "You wrote: again")),
            ]
            assert await server.messages() == 4


async def test_a_killed_routers_session_is_free_once_it_is_back_or_its_lease_is_over(
    server: Server,
) -> None:
    with server.router("a") as a, server.router("b") as b:
        async with server.clients(a, b) as (first, second):
            for comes_back in (True, False):
                session = await first.create_session("shared")
                async with first.stream_execute(session.id, request("never end")) as events:
                    await begun(events)
                    a.kill()
                with pytest.raises(ApiError, match="another router"):
                    await second.execute(session.id, request("quick"))
                if comes_back:
                    a.start()
                else:
                    await server.expire()
                ended = await second.execute(session.id, request("quick"))
                assert ended.status is Status.COMPLETED
                assert [text for _, text in await said(second, session.id)] == [
                    "quick",
                    "You wrote: quick",
                ]


async def test_two_routers_that_run_never_have_one_name(server: Server) -> None:
    with server.router("a") as a:
        words = ("start", "--foreground", "--pidfile", str(server.folder / "other.pid"))
        done_with = await trio.to_thread.run_sync(lambda: a.house.run(*words))
        assert done_with.returncode == 1
        assert "SMISTA_HOME" in done_with.stderr
