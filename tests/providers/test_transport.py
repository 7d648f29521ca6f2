"""The transport on real sockets, against a server that does whatever a server can do."""

import gzip
import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
from pydantic import SecretStr

from smista.core import errors
from smista.core.history import Message, Role
from smista.core.prompt import Prompt
from smista.core.stream import Finish, StreamEnd, StreamEvent, TextDelta
from smista.ports.provider import Provider
from smista.providers.peers import require_near_peer
from smista.providers.registry import CompatInstance, open_registry
from smista.providers.transport import Patience
from smista.providers.wire import Caps
from tests.providers.chat import DONE, chunk, said, text_of
from tests.providers.raw_server import (
    END,
    HEAD,
    Finished,
    Play,
    RawServer,
    answers,
    chunked,
    finish,
    open_raw_server,
    sends,
)

NAME = "openai-compat:t"
STOP = chunk(finish="stop")
PROMPT = Prompt(
    model="m",
    system="",
    messages=(Message(uuid="u", role=Role.USER, text="hi", run_id="r"),),
)
KEY = SecretStr("canary-key-0123456789")
BRIEF_FIRST = Patience(first=0.1, silence=30)
BRIEF_SILENCE = Patience(first=30, silence=0.1)


@asynccontextmanager
async def open_provider(
    url: str,
    *,
    patience: Patience | None = None,
    caps: Caps | None = None,
    concurrency: int = 100,
    local: bool = True,
) -> AsyncGenerator[Provider]:
    instance = CompatInstance(id=NAME, base_url=url, local=local)
    async with open_registry(
        [instance], patience=patience, caps=caps, concurrency=concurrency
    ) as registry:
        provider = registry.provider(NAME)
        assert provider is not None
        yield provider


@asynccontextmanager
async def open_pair(play: Play, **settings) -> AsyncGenerator[tuple[RawServer, Provider]]:
    async with (
        open_raw_server(play) as server,
        open_provider(server.url, **settings) as provider,
    ):
        yield server, provider


async def ask(
    provider: Provider, key: SecretStr | None = None
) -> tuple[list[StreamEvent], errors.ProviderError | None]:
    """Return all events and how it failed, if it did."""
    events: list[StreamEvent] = []
    try:
        with trio.fail_after(5):
            async with provider.open_stream(PROMPT, key=key) as stream:
                async for event in stream:
                    events.append(event)  # noqa: PERF401 - what came before a failure counts
    except errors.ProviderError as error:
        return events, error
    return events, None


async def fault_of(play: Play, **settings) -> errors.ProviderError:
    async with open_pair(play, **settings) as (_, provider):
        _, fault = await ask(provider)
    assert fault is not None
    return fault


async def test_an_answer_comes_event_by_event_and_the_connection_is_used_again():
    async with open_pair(sends(said("a"), said("b"), STOP, DONE)) as (server, provider):
        for _ in range(3):
            events, fault = await ask(provider)
            assert fault is None
            assert events == [
                TextDelta(text="a"),
                TextDelta(text="b"),
                StreamEnd(finish=Finish.STOP, model="m"),
            ]
        assert server.connections == 1


async def test_the_request_asks_for_no_compression_and_carries_the_key_only_as_bearer():
    async with open_pair(sends(STOP, DONE)) as (server, provider):
        await ask(provider, KEY)
        await ask(provider)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1")
    assert b"accept-encoding: identity" in head.lower()
    assert b"authorization: bearer canary-key-0123456789" in head.lower()
    assert server.requests[0].count(b"canary") == 1
    assert json.loads(body)["messages"] == [{"role": "user", "content": "hi"}]
    assert b"authorization" not in server.requests[1].lower()


async def test_cookies_are_not_kept():
    async with open_pair(answers(200, STOP, set_cookie="id=1; Path=/")) as (server, provider):
        await ask(provider)
        await ask(provider)
    assert len(server.requests) == 2
    assert b"cookie" not in server.requests[1].lower()


@pytest.mark.parametrize(
    "beat", [b"", b": hb\n\n", b"data: null\n\n"], ids=["silence", "comments", "nulls"]
)
@pytest.mark.parametrize("before", [[], [said("a")]], ids=["nothing said", "one delta"])
async def test_fc_42_a_stalled_answer_ends_within_the_limit(beat, before):
    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD + b"".join(map(chunked, before)))
        while beat:
            await stream.send_all(chunked(beat))
        await finish(stream, "hold")

    patience = BRIEF_SILENCE if before else BRIEF_FIRST
    async with open_pair(play, patience=patience) as (server, provider):
        events, fault = await ask(provider)
        with trio.fail_after(5):
            await server.left.wait()
    assert text_of(events) == "a" * len(before)
    assert isinstance(fault, errors.ProviderTimeout)
    assert fault.details["kind"] == "stalled"
    assert "0.1 seconds" in fault.message


async def test_fc_42_headers_that_never_come_are_a_stall_too():
    async def play(stream: trio.SocketStream) -> None:
        await stream.receive_some()

    async with open_pair(play, patience=BRIEF_FIRST) as (server, provider):
        _, fault = await ask(provider)
        with trio.fail_after(5):
            await server.left.wait()
    assert isinstance(fault, errors.ProviderTimeout)
    assert fault.details["kind"] == "stalled"


async def test_fc_42_an_answer_without_end_is_ended():
    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD)
        while True:
            await stream.send_all(chunked(said("x")))

    fault = await fault_of(play, patience=Patience(first=5, silence=5, total=0.1))
    assert isinstance(fault, errors.ProviderTimeout)
    assert fault.details["kind"] == "endless"


async def test_fc_42_after_the_end_mark_nobody_waits():
    async with open_pair(sends(said("a"), STOP, DONE, then="hold")) as (server, provider):
        events, fault = await ask(provider)
        assert fault is None
        assert isinstance(events[-1], StreamEnd)
        with trio.fail_after(5):
            await server.left.wait()


async def test_fc_35_an_error_in_the_stream_is_told_at_once():
    error = b'data: {"error":{"message":"engine failed"}}\n\n'
    async with open_pair(sends(said("a"), error, then="hold")) as (server, provider):
        events, fault = await ask(provider)
        with trio.fail_after(5):
            await server.left.wait()
    assert text_of(events) == "a"
    assert fault is not None
    assert "engine failed" in fault.message


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize(
    ("pieces", "text"),
    [([said("a")], "a"), ([said("a"), said("é")[:70]], "a"), ([], "")],
    ids=["between events", "inside an event", "after the head"],
)
async def test_a_connection_that_breaks_leaves_a_truncated_answer(then, pieces, text):
    async with open_pair(sends(*pieces, then=then)) as (_, provider):
        events, fault = await ask(provider)
    assert text_of(events) in ("", text) if then == "reset" else text_of(events) == text
    assert isinstance(fault, errors.BadStream)
    assert fault.details["kind"] in ("truncated_stream", "empty_response")
    assert fault.retryable


async def test_half_a_character_at_the_end_is_a_truncated_answer():
    raw = 'data: {"choices":[{"delta":{"content":"perché'.encode()[:-1]
    fault = await fault_of(sends(said("a"), raw, then="close"))
    assert fault.details["kind"] == "truncated_stream"


async def test_a_whole_answer_on_a_connection_that_breaks_is_whole():
    async with open_pair(sends(said("a"), STOP, then="close")) as (_, provider):
        events, fault = await ask(provider)
    assert fault is None
    assert isinstance(events[-1], StreamEnd)


@pytest.mark.parametrize("then", ["close", "reset"])
async def test_a_connection_closed_before_the_answer_may_be_tried_again(then):
    async def play(stream: trio.SocketStream) -> None:
        if then == "reset":
            await finish(stream, "reset")
        raise Finished

    fault = await fault_of(play)
    assert fault.retryable
    assert fault.details["kind"] in ("connection_lost", "truncated_stream", "empty_response")


async def test_what_a_connection_swallowed_that_had_been_hung_up_is_sent_again_once():
    answered = sends(said("a"), STOP, DONE)

    async def play(stream: trio.SocketStream) -> None:
        if len(server.requests) % 2 == 0:
            raise Finished
        await answered(stream)

    async with open_pair(play) as (server, provider):
        for _ in range(3):
            events, fault = await ask(provider)
            assert fault is None
            assert text_of(events) == "a"
        assert len(server.requests) == 5
        assert server.connections == 3


async def test_who_always_hangs_up_is_asked_no_third_time():
    async def play(stream: trio.SocketStream) -> None:
        raise Finished

    async with open_pair(play) as (server, provider):
        _, fault = await ask(provider)
    assert isinstance(fault, errors.ProviderUnavailable)
    assert fault.details["kind"] == "connection_lost"
    assert len(server.requests) == 2


async def test_nobody_listening_is_told_with_the_address():
    async with open_raw_server(sends()) as server:
        url = server.url
    async with open_provider(url) as provider:
        _, fault = await ask(provider)
    assert isinstance(fault, errors.ProviderUnavailable)
    assert fault.details["kind"] == "connect_failed"
    assert url in fault.message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status):
    async with open_raw_server(sends(STOP, DONE)) as elsewhere:
        play = answers(status, location=f"{elsewhere.url}/chat/completions")
        async with open_pair(play) as (server, provider):
            _, fault = await ask(provider, KEY)
        assert len(server.requests) == 1
        assert elsewhere.connections == 0
    assert fault is not None
    assert fault.details["kind"] == "redirect"
    assert not fault.retryable


@pytest.mark.parametrize(
    "play",
    [
        answers(401, json.dumps({"error": {"message": f"bad {KEY.get_secret_value()}"}}).encode()),
        answers(500, KEY.get_secret_value().encode()),
        sends(
            json.dumps({"x": 1}).join(["data: ", "\n\n"]).encode(),
            b"data: "
            + json.dumps({"error": f"echo {KEY.get_secret_value()} sk-abcdefghijklmnop"}).encode()
            + b"\n\n",
        ),
    ],
    ids=["401", "500 text", "in the stream"],
)
async def test_a_key_that_is_echoed_is_masked(play):
    async with open_pair(play) as (_, provider):
        _, fault = await ask(provider, KEY)
    assert fault is not None
    shown = f"{fault!r} {fault} {fault.message} {fault.details}"
    assert "canary" not in shown
    assert "sk-abc" not in shown
    assert "[masked]" in shown


@pytest.mark.parametrize("secret", ["bad\r\nX-Evil: 1", "schlüssel", "nul\x00"])
async def test_a_key_that_no_header_can_carry_is_refused_without_being_quoted(secret):
    async with open_pair(sends(STOP, DONE)) as (server, provider):
        _, fault = await ask(provider, SecretStr(secret))
    assert isinstance(fault, errors.InvalidProviderCredentials)
    assert secret not in fault.message
    assert server.connections == 0


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, gzip"])
async def test_a_compressed_answer_is_refused(encoding):
    fault = await fault_of(answers(200, gzip.compress(STOP + DONE), content_encoding=encoding))
    assert isinstance(fault, errors.ProviderFailure)
    assert fault.details["kind"] == "encoded_answer"


async def test_an_endless_line_is_cut_off():
    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD + chunked(b"data: "))
        while True:
            await stream.send_all(chunked(b"x" * 4096))

    fault = await fault_of(play, caps=Caps(line_bytes=100_000))
    assert fault.details["kind"] == "too_large"


async def test_an_endless_error_body_is_not_read_to_its_end():
    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD.replace(b"200 OK", b"500 No"))
        while True:
            await stream.send_all(chunked(b"x" * 4096))

    fault = await fault_of(play)
    assert isinstance(fault, errors.ProviderUnavailable)
    assert len(fault.message) < 1000


@pytest.mark.parametrize(
    ("status", "value", "wait"),
    [(429, "3", 3.0), (503, "7", 7.0), (429, "soon", None), (429, None, None), (400, "3", None)],
)
async def test_fc_38_retry_after_is_a_floor_for_what_may_be_retried(status, value, wait):
    more = {} if value is None else {"retry_after": value}
    fault = await fault_of(answers(status, b"{}", **more))
    assert fault.retry_after == wait


async def test_what_is_no_http_is_a_lost_connection():
    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(b"hello\r\n\r\n")

    fault = await fault_of(play)
    assert fault.details["kind"] == "connection_lost"


async def test_a_local_endpoint_whose_peer_is_not_near_gets_no_byte():
    class Remote:
        closed = False

        def get_extra_info(self, info: str) -> tuple[str, int]:
            return ("93.184.216.34", 80)

        async def aclose(self) -> None:
            self.closed = True

    stream = Remote()
    check = require_near_peer(NAME)
    with pytest.raises(errors.InvalidProviderConfiguration, match=r"93\.184\.216\.34"):
        await check("connection.connect_tcp.complete", {"return_value": stream})
    assert stream.closed


async def test_each_connection_of_a_local_endpoint_is_checked_before_it_is_used(monkeypatch):
    monkeypatch.setattr("smista.providers.peers.is_near", lambda host: False)
    async with open_pair(sends(STOP, DONE)) as (server, provider):
        for _ in range(3):
            _, fault = await ask(provider, KEY)
            assert isinstance(fault, errors.InvalidProviderConfiguration)
            assert fault.details["kind"] == "not_local"
        async with open_provider(server.url, local=False) as remote:
            _, fault = await ask(remote)
    assert fault is None
    assert len(server.requests) == 1


async def test_a_proxy_of_the_environment_is_ignored_for_a_local_endpoint(monkeypatch):
    async with open_raw_server(answers(200, STOP)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        async with open_pair(sends(STOP, DONE)) as (server, provider):
            _, fault = await ask(provider)
            assert (fault, len(server.requests), proxy.connections) == (None, 1, 0)
            async with open_provider(server.url, local=False) as remote:
                await ask(remote)
    assert proxy.connections == 1


@pytest.mark.parametrize("flowing", [True, False], ids=["text flows", "silence"])
async def test_fc_44_leaving_in_the_middle_closes_the_socket_at_once(flowing):
    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD + chunked(said("a")))
        while flowing:
            await stream.send_all(chunked(said("b")))
        await finish(stream, "hold")

    async with open_pair(play) as (server, provider):
        async with provider.open_stream(PROMPT, key=None) as stream:
            assert await anext(stream) == TextDelta(text="a")
            gone = trio.current_time()
        with trio.fail_after(1):
            await server.left.wait()
    assert server.left_at - gone < 0.1


@pytest.mark.parametrize(
    "said_first", [b"", HEAD], ids=["before the head", "before the first delta"]
)
async def test_fc_44_cancelling_closes_the_socket_at_once(said_first):
    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(said_first)
        await stream.receive_some()

    async with open_pair(play) as (server, provider):
        with trio.fail_after(5):
            async with trio.open_nursery() as callers:
                callers.start_soon(ask, provider)
                await server.asked.wait()
                await trio.testing.wait_all_tasks_blocked(0.005)
                gone = trio.current_time()
                callers.cancel_scope.cancel()
            await server.left.wait()
    assert server.left_at - gone < 0.1


async def test_a_caller_in_the_queue_can_leave_and_its_place_is_free():
    async with open_pair(sends(said("a"), then="hold"), concurrency=1) as (server, provider):
        async with provider.open_stream(PROMPT, key=None) as stream:
            await anext(stream)
            with trio.move_on_after(0) as scope:
                await ask(provider)
            assert scope.cancelled_caught
        assert len(server.requests) == 1
        async with provider.open_stream(PROMPT, key=None) as stream:
            assert await anext(stream) == TextDelta(text="a")


async def test_one_task_may_hold_two_streams():
    async with (
        open_pair(sends(said("a"), then="hold"), concurrency=2) as (_, provider),
        provider.open_stream(PROMPT, key=None) as one,
        provider.open_stream(PROMPT, key=None) as two,
    ):
        assert await anext(one) == await anext(two) == TextDelta(text="a")


async def test_the_pool_is_alive_after_500_cancelled_streams_under_contention():
    async def play(stream: trio.SocketStream) -> None:
        await stream.send_all(HEAD)
        for _ in range(20):
            await stream.send_all(chunked(said("x")))
        await stream.send_all(chunked(STOP + DONE) + END)

    chance = random.Random(7)

    async def leave_early(provider: Provider) -> None:
        with trio.move_on_after(chance.random() * 0.3):
            await ask(provider)

    async with open_pair(play, concurrency=5) as (_, provider):
        async with trio.open_nursery() as callers:
            for _ in range(500):
                callers.start_soon(leave_early, provider)
        with trio.fail_after(5):
            async with trio.open_nursery() as callers:
                results: list[errors.ProviderError | None] = []

                async def count() -> None:
                    results.append((await ask(provider))[1])

                for _ in range(20):
                    callers.start_soon(count)
        assert results == [None] * 20
