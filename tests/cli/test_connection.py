"""Whose router is asked, when nobody says; and who gets no key."""

import socket
import sys
from functools import partial
from pathlib import Path

import pytest
import trio
from pydantic import SecretStr

from cli.connection import open_proven, router_url
from cli.failures import BadUsage, NoRouter, exit_code
from cli.own_keys import stored_key
from smista.local.config_files import RouterConnection
from smista.local.paths import NotOurs
from smista.local.router_secret import secret_file
from smista.sdk.errors import Unproven
from tests.cli.ground import surroundings
from tests.sdk.router import SECRET, FakeRouter, Reply

KEY = SecretStr("sk-canary")


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (None, "http://127.0.0.1:7331"),
        ("port = 27331", "http://127.0.0.1:27331"),
        ('host = "0.0.0.0"', "http://127.0.0.1:7331"),
        ('host = "::1"\nport = 9', "http://[::1]:9"),
        ("port = 'broken'", "http://127.0.0.1:7331"),
    ],
)
def test_a_router_that_is_not_running_is_looked_for_where_it_would_run(tmp_path, settings, url):
    here = surroundings(tmp_path)
    if settings is not None:
        here.places.config.mkdir(parents=True)
        here.places.router_file.write_text(f"[router]\n{settings}\n")
    assert router_url(here, RouterConnection()) == url


def test_a_configured_router_comes_first(tmp_path):
    here = surroundings(tmp_path)
    assert router_url(here, RouterConnection(url="http://127.0.0.1:1")) == "http://127.0.0.1:1"


class Life:
    """A router that can be made to end, and leaves its port."""

    def __init__(self):
        self.router, self.scope, self.dead = FakeRouter(), trio.CancelScope(), trio.Event()


async def living(task_status):
    life = Life()
    with life.scope:
        async with trio.open_nursery() as nursery:
            await life.router.start(nursery)
            task_status.started(life)
    life.dead.set()


class Somebody:
    """A program on a port that is not ours: it relays to *router*, or says nothing at all."""

    def __init__(self, router=None):
        self.router = router
        self.asked = trio.Event()
        self.url = ""

    async def start(self, nursery, host="127.0.0.1", port=0):
        serve = partial(trio.serve_tcp, self._serve, port, host=host)
        listeners = await nursery.start(serve)
        self.url = f"http://{host}:{listeners[0].socket.getsockname()[1]}"
        return self

    async def _serve(self, stream):
        self.asked.set()
        if self.router is None:
            await trio.sleep_forever()
        host, port = self.router.url.removeprefix("http://").split(":")
        there = await trio.open_tcp_stream(host, int(port))
        async with stream, there, trio.open_nursery() as nursery:
            nursery.start_soon(pump, stream, there)
            await pump(there, stream)
            nursery.cancel_scope.cancel()


async def pump(source, sink):
    async for piece in source:
        await sink.send_all(piece)


def here_with(tmp_path, secret):
    here = surroundings(tmp_path)
    if secret is not None:
        here.places.runtime.mkdir(parents=True, mode=0o700)
        secret_file(here.places).write_text(secret)
    return here


async def sign_in(here, url):
    async with open_proven(here, RouterConnection(url=url), key=KEY) as client:
        await client.sign_in()


async def test_keys_go_to_a_router_that_proves_whose_it_is(tmp_path, nursery):
    router = await FakeRouter().start(nursery)
    await sign_in(here_with(tmp_path, SECRET), router.url)
    assert router.asked[0].path == "/status"
    assert router.asked[-1].path == "/api/v1/auth/sign-in"
    # It closes after each answer, so each is asked for on a connection that was proven first.
    assert len(router.to("/status")) == 3
    assert "sk-canary" not in str(router.to("/status"))
    assert SECRET not in str(router.asked)


async def test_who_takes_the_port_of_a_router_that_died_gets_nothing(tmp_path, nursery):
    here = here_with(tmp_path, SECRET)
    life = await nursery.start(living)
    connection = RouterConnection(url=life.router.url)
    async with open_proven(here, connection, key=KEY) as client:
        await client.sign_in()
        life.scope.cancel()
        await life.dead.wait()
        squatter = FakeRouter(secret=None)
        await squatter.start(nursery, port=int(client.url.rpartition(":")[2]))
        with pytest.raises(Unproven):
            await client.me()
    assert [asked.path for asked in squatter.asked] == ["/status"]
    assert "t0k3n" not in str(squatter.asked)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(SECRET, None), (SECRET, "another secret"), (None, SECRET), (None, None), ("", SECRET)],
)
async def test_whoever_else_has_the_port_gets_no_key(tmp_path, nursery, ours, theirs):
    squatter = await FakeRouter(secret=theirs).start(nursery)
    with pytest.raises(NoRouter) as raised:
        await sign_in(here_with(tmp_path, ours), squatter.url)
    assert [asked.path for asked in squatter.asked] == ["/status"]
    assert "sk-canary" not in str(squatter.asked)
    assert exit_code(raised.value) == 3
    for word in (squatter.url, "smista start", "router.secret", "port"):
        assert word in str(raised.value)


async def test_the_proof_of_a_router_on_another_port_is_none(tmp_path, nursery):
    relay = await Somebody(await FakeRouter().start(nursery)).start(nursery)
    with pytest.raises(NoRouter):
        await sign_in(here_with(tmp_path, SECRET), relay.url)
    assert [asked.path for asked in relay.router.asked] == ["/status"]


@pytest.mark.skipif(sys.platform != "linux", reason="one loopback address elsewhere")
async def test_the_proof_of_a_router_on_the_same_port_of_another_address_is_none(tmp_path, nursery):
    router = await FakeRouter().start(nursery)
    port = int(router.url.rpartition(":")[2])
    relay = await Somebody(router).start(nursery, host="127.0.0.2", port=port)
    with pytest.raises(NoRouter):
        await sign_in(here_with(tmp_path, SECRET), relay.url)
    assert [asked.path for asked in router.asked] == ["/status"]


@pytest.mark.parametrize("answer", [{"proof": "\ud800"}, {"proof": 7}, {"surprise": 1}, ["ok"]])
async def test_an_answer_that_is_no_routers_is_told_as_such(tmp_path, nursery, answer):
    squatter = await FakeRouter(secret=None).start(nursery)
    body = {"status": "ok", "version": "1", **answer} if "proof" in answer else answer
    squatter.answer("GET", "/status", Reply(body))
    with pytest.raises(NoRouter, match="Nothing of yours was sent"):
        await sign_in(here_with(tmp_path, SECRET), squatter.url)


async def test_a_planted_secret_is_refused(tmp_path, nursery):
    here = here_with(tmp_path, SECRET)
    secret_file(here.places).rename(tmp_path / "theirs")
    secret_file(here.places).symlink_to(tmp_path / "theirs")
    router = await FakeRouter().start(nursery)
    with pytest.raises(NotOurs):
        await sign_in(here, router.url)


async def test_a_router_that_does_not_say_that_it_lives_is_not_waited_for(
    tmp_path, nursery, mock_clock
):
    silent = await Somebody().start(nursery)

    async def wait():
        await silent.asked.wait()
        mock_clock.jump(5)

    nursery.start_soon(wait)
    with pytest.raises(NoRouter, match="silent"):
        await sign_in(here_with(tmp_path, SECRET), silent.url)


async def test_whoever_has_configured_nothing_is_told_where_to_begin(tmp_path):
    here = surroundings(tmp_path)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with pytest.raises(NoRouter, match="smista config init"):
            await sign_in(here, nobody)
        here.places.config.mkdir()
        here.places.policy_file.write_text("")
        with pytest.raises(NoRouter, match="run: smista start"):
            await sign_in(here, nobody)


async def test_no_key_goes_in_clear_to_another_machine(tmp_path):
    with pytest.raises(NoRouter, match="use https"):
        await sign_in(here_with(tmp_path, SECRET), "http://192.0.2.1:7331")


async def test_the_router_key_can_come_from_a_program(tmp_path):
    helper = RouterConnection(auth_source="helper", auth_helper="printf sk-from-helper")
    found = await stored_key(surroundings(tmp_path), helper)
    assert found == SecretStr("sk-from-helper")


@pytest.mark.parametrize(
    "command", [None, "", "false", "true", "/no/such/program", "printf 'a\tb'"]
)
async def test_a_program_that_gives_no_key_is_named(tmp_path, command):
    helper = RouterConnection(auth_source="helper", auth_helper=command)
    with pytest.raises(BadUsage, match="auth_helper"):
        await stored_key(surroundings(tmp_path), helper)


def test_one_module_alone_opens_clients_of_a_router():
    folder = Path(__file__).parents[2] / "cli"
    named = {path.name for path in folder.rglob("*.py") if "open_client" in path.read_text()}
    assert named == {"connection.py"}
