"""Starting, stopping and what stands in the way of either."""

import signal
import socket
from collections.abc import Callable

import pytest

from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.sdk.client import Client, open_client
from smista.sdk.errors import ApiError
from tests.e2e.house import (
    COUNTED,
    POLICY,
    House,
    Router,
    daemon,
    done,
    request,
)

Open = Callable[[House], Router]


async def test_a_router_told_to_leave_lets_a_turn_end_and_takes_no_new_one(
    house: House, open_router: Open
) -> None:
    router = open_router(house)
    async with open_client(house.client_config) as client:
        await client.bootstrap()
        session = await client.create_session("leaving")
        other = await client.create_session("too late")
        text, last = "", None
        async with client.stream_execute(session.id, request("count at length")) as stream:
            async for last in stream:
                if isinstance(last, TextDeltaEvent) and not text:
                    router.process.send(signal.SIGTERM)
                    router.process.wait_line("leaving: 1 turns")
                    with pytest.raises(ApiError) as refused:
                        await client.execute(other.id, request("hello"))
                    assert (refused.value.status, refused.value.code) == (503, "shutting_down")
                text += last.delta if isinstance(last, TextDeltaEvent) else ""
        assert isinstance(last, TurnEnd)
        assert (last.status, text) == (Status.COMPLETED, COUNTED * 10)
    assert router.process.wait() == 0


async def test_a_second_signal_ends_a_turn_at_once_and_its_run_can_go_on(
    house: House, open_router: Open
) -> None:
    router = open_router(house)
    async with open_client(house.client_config) as client:
        await client.bootstrap()
        session = await client.create_session("hurried")
        last = await _leave_during(client, session.id, router)
        assert last.status is Status.ERROR
        assert last.data["error"]["code"] == "shutting_down"
        assert router.process.wait() == 0
        router.start()
        turn = await client.execute(session.id, request("fix the typo"))
        ended = await client.continue_run(session.id, done(turn.data["tool_requests"]))
        assert ended.status is Status.COMPLETED
        kept = await client.session(session.id)
        assert [(m.role, m.content["plaintext"]) for m in kept.messages] == [
            ("user", "never end"),
            ("assistant", "it begins "),
            ("user", "fix the typo"),
            ("assistant", "I will mend it. "),
            ("tool", "written"),
            ("assistant", "Mended."),
        ]


async def _leave_during(client: Client, session_id: str, router: Router) -> TurnEnd:
    """Send both signals while a turn that never ends speaks; return how it ended."""
    last = None
    async with client.stream_execute(session_id, request("never end")) as stream:
        async for last in stream:
            if isinstance(last, TextDeltaEvent):
                router.process.send(signal.SIGTERM)
                router.process.wait_line("leaving: 1 turns")
                router.process.send(signal.SIGTERM)
    assert isinstance(last, TurnEnd)
    return last


def test_a_daemon_starts_once_and_is_gone_when_stop_returns(house: House) -> None:
    with daemon(house) as pid:
        started = house.run("start")
        assert started.returncode == 0, started.stderr
        first = pid()
        assert started.stdout == f"router started at {house.url} (process {first})\n"
        again = house.run("start")
        assert again.returncode == 1
        assert again.stderr == (
            f"error: a router is already running (process {first} at {house.url})\n"
        )
        assert house.run("login").returncode == 0
        assert house.run("hello").stdout == "You wrote: hello\n"
        stopped = house.run("stop")
        assert (stopped.returncode, stopped.stdout) == (0, "router stopped\n")
        assert not (house.home / "run" / "router.pid").exists()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", house.port)) != 0
    none = house.run("stop")
    assert (none.returncode, none.stdout) == (3, "")


def test_a_prompt_starts_the_router_if_the_policy_says_so(house: House) -> None:
    house.write_policy(f"{POLICY}\n[router]\nauto_start = true\n")
    with daemon(house):
        assert house.run("login").returncode == 0
        assert house.run("hello").stdout == "You wrote: hello\n"


def test_a_port_that_is_taken_is_said_by_both_ways_of_starting(house: House) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", house.port))
        squatter.listen()
        in_front = house.run("start", "--foreground")
        assert in_front.returncode == 1
        assert in_front.stderr == (
            "error: the port is taken by another program; choose another one: "
            "[router] port in router.toml for the router, --port for demo-model\n"
        )
        behind = house.run("start")
        assert behind.returncode == 1
        assert "the port is taken" in behind.stderr
        assert "Traceback" not in behind.stderr
    assert house.run("stop").returncode == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[router\n", "router.toml"),
        ("[router]\nprot = 1\n", "prot"),
    ],
)
def test_a_router_file_that_is_wrong_is_wrong_configuration(
    house: House, text: str, said: str
) -> None:
    house.router_file.write_text(text)
    started = house.run("start")
    assert started.returncode == 2
    assert said in started.stderr
    assert "Traceback" not in started.stderr
