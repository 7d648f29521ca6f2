"""The server lets nobody hold it: not a reader that stalls, not a connection that idles."""

from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
import trio

from smista.core.events import TextDeltaEvent
from smista.front.serve import serve
from tests.front.harness import EXECUTE_BODY, MINE, SETTINGS, FakeReader, running
from tests.front.test_turns import streamed

PIECE = TextDeltaEvent("x" * 65_536)


class Endless(FakeReader):
    """A turn that always has more to say; `stalled` is set once it was not asked for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    async def wait_opened(self) -> None:
        await trio.lowlevel.checkpoint()

    def ready(self) -> list:
        self.taken += 1
        return [PIECE]


async def wait_stalled(reader: Endless) -> None:
    """Return once the server wrote until the socket was full: nothing runs any more."""
    seen = -1
    while reader.taken != seen:
        seen = reader.taken
        await trio.testing.wait_all_tasks_blocked(0.05)


async def test_a_reader_that_stalls_is_given_up_and_its_turn_handed_back():
    async with running(send_stall=0.2, reap_every=0.02) as front:
        front.sessions.reader = reader = Endless()
        async with front.open_wire(streamed(front), window=4096):
            with trio.fail_after(5):
                await reader.closed.wait()
        assert (await front.client.get("/status")).status_code == 200


async def test_a_reader_that_stalls_does_not_hold_a_stop_beyond_the_grace_time():
    async with running(grace=0.1) as front:
        front.sessions.reader = reader = Endless()
        async with front.open_wire(streamed(front), window=4096) as wire:
            await wire.stream.socket.recv(1, trio.socket.MSG_PEEK)
            await wait_stalled(reader)
            front.stop.set()
            with trio.fail_after(2):
                await front.stopped.wait()
                await reader.closed.wait()


async def test_a_reader_that_stalls_does_not_survive_the_cancel_of_the_server():
    async with running() as front:
        front.sessions.reader = reader = Endless()
        async with front.open_wire(streamed(front), window=4096) as wire:
            await wire.stream.socket.recv(1, trio.socket.MSG_PEEK)
            await wait_stalled(reader)
            front.nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True), trio.fail_after(2):
                await reader.closed.wait()


async def test_an_idle_connection_is_closed_after_its_time():
    async with running(idle=0.1, reap_every=0.02) as front:
        async with front.open_wire(front.head("GET", "/status")) as wire:
            assert b'"ok"' in await wire.until_closed(2)
        async with front.open_wire(b"GET /status HTTP/1.1\r\nHo") as wire:
            assert await wire.until_closed(2) == b""


async def test_a_connection_serves_many_requests_and_then_idles_out():
    async with running(idle=0.1, reap_every=0.02) as front:
        head = front.head("GET", "/api/v1/auth/me", f"Authorization: Bearer {front.token}")
        async with front.open_wire(head) as wire:
            for _ in range(20):
                await wire.until(b"user_id")
                await wire.stream.send_all(head)
            assert b"user_id" in await wire.until_closed(2)


async def test_pipelined_requests_are_answered_in_order():
    async with running() as front:
        head = front.head("GET", "/status")
        last = front.head("GET", "/nowhere", "Connection: close")
        heard = await front.raw(head + head + last)
    assert heard.count(b'"ok"') == 2
    assert heard.index(b"not_found") > heard.rindex(b'"ok"')


async def test_an_idle_connection_does_not_hold_a_stop():
    async with running() as front, front.open_wire(front.head("GET", "/status")) as wire:
        await wire.until(b'"ok"')
        started = trio.current_time()
        front.stop.set()
        await front.stopped.wait()
        assert trio.current_time() - started < 0.5
        assert await wire.until_closed() == b""


async def test_a_request_under_way_is_answered_before_the_stop():
    async with running() as front:
        front.sessions.hold = trio.Event()
        head = front.head("GET", f"/api/v1/sessions/{MINE}", f"Authorization: Bearer {front.token}")
        async with front.open_wire(head) as wire:
            await front.sessions.told.wait()
            front.stop.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            front.sessions.hold.set()
            assert b"metadata" in await wire.until_closed(2)
        await front.stopped.wait()


async def test_a_handler_is_cancelled_when_its_client_leaves():
    async with running() as front:
        front.sessions.hold = trio.Event()
        head = front.head("GET", f"/api/v1/sessions/{MINE}", f"Authorization: Bearer {front.token}")
        async with front.open_wire(head):
            await front.sessions.told.wait()
        with trio.fail_after(5):
            await front.sessions.left.wait()


async def test_an_oversized_body_gets_its_answer_although_it_is_still_being_sent():
    settings = replace(SETTINGS, max_request_body_bytes=1000)
    async with running(settings, linger=2) as front:
        head = front.head(
            "POST",
            f"/api/v1/sessions/{MINE}/execute",
            f"Authorization: Bearer {front.token}",
            "Content-Type: application/json",
            "Content-Length: 3000000",
        )
        async with front.open_wire(head) as wire:
            await wire.stream.send_all(b"x" * 3_000_000)
            heard = await wire.until_closed()
    assert heard.startswith(b"HTTP/1.1 413")
    assert b"request_too_large" in heard


async def test_a_body_without_a_length_is_cut_off_at_the_limit():
    settings = replace(SETTINGS, max_request_body_bytes=1000)
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    for path in (f"/api/v1/sessions/{MINE}/execute", "/api/v1/sessions"):
        async with running(settings, linger=0.05, reap_every=0.02) as front:
            head = front.head(
                "POST",
                path,
                f"Authorization: Bearer {front.token}",
                "Content-Type: application/json",
                "Transfer-Encoding: chunked",
            )
            async with front.open_wire(head + chunk * 3) as wire:
                heard = await wire.until_closed(3)
        assert b"413" in heard.split(b"\r\n")[0], path


async def test_a_body_that_does_not_arrive_is_not_waited_for():
    for path in (f"/api/v1/sessions/{MINE}/execute", "/api/v1/sessions"):
        async with running(body=0.05, linger=0.05, reap_every=0.02) as front:
            head = front.head(
                "POST",
                path,
                f"Authorization: Bearer {front.token}",
                "Content-Type: application/json",
                "Content-Length: 100",
            )
            async with front.open_wire(head + b"{") as wire:
                assert b"request_timeout" in await wire.until_closed(3)


async def test_a_port_that_is_taken_is_an_error_at_once():
    async with running() as front:
        settings = replace(SETTINGS, port=front.port)
        with pytest.raises(OSError, match="in use"):
            await serve(None, settings, shutdown_trigger=trio.sleep_forever)


async def test_status_answers_while_all_else_is_busy():
    async with running() as front:
        front.sessions.hold = trio.Event()
        head = front.head("GET", f"/api/v1/sessions/{MINE}", f"Authorization: Bearer {front.token}")
        sign_in = front.head("POST", "/api/v1/auth/bootstrap", "Content-Length: 0")
        async with AsyncExitStack() as busy:
            for request in [head] * 50 + [sign_in] * 20:
                await busy.enter_async_context(front.open_wire(request))
            await front.sessions.told.wait()
            with trio.fail_after(1):
                async with front.open_wire(front.head("GET", "/status")) as wire:
                    assert b'"ok"' in await wire.until(b"version")


async def test_head_and_body_of_an_answer_leave_in_one_piece():
    async with running() as front, front.open_wire(front.head("GET", "/status")) as wire:
        first = await wire.stream.receive_some()
    assert b'"ok"' in first


async def test_a_broken_application_does_not_end_the_server(caplog):
    def broken(app):
        async def call(scope, receive, send):
            if scope["path"] == "/boom":
                raise ZeroDivisionError("Bearer abcdefghijkl")
            await app(scope, receive, send)

        return call

    async with running(wrap=broken) as front:
        assert (await front.client.get("/boom")).status_code == 500
        assert (await front.client.get("/status")).status_code == 200
    assert "ZeroDivisionError" in caplog.text
    assert "abcdefghijkl" not in caplog.text


async def test_the_body_of_a_turn_may_come_in_any_pieces():
    import json

    async with running() as front:
        request = front.execute_bytes(body=json.dumps(EXECUTE_BODY).encode())
        async with front.open_wire(b"") as wire:
            for start in range(0, len(request), 97):
                await wire.stream.send_all(request[start : start + 97])
            assert b'"completed"' in await wire.until(b"hello")
