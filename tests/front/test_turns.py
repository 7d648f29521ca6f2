"""Execute and continue: what a turn's client hears, and what happens when it leaves."""

import json
import re
from dataclasses import replace

import httpx
import pytest
import trio
from pydantic import SecretStr

from smista.core.errors import FallbackExhausted, ProviderRateLimited, RunInFlight
from smista.core.events import (
    Status,
    TextDeltaEvent,
    ToolCallRequested,
    ToolRequest,
    TurnEnd,
    UsageEvent,
    failed,
)
from smista.core.messages import Break, Execute, ToolResults
from tests.front.harness import (
    DONE,
    EXECUTE_BODY,
    MINE,
    SETTINGS,
    FakeReader,
    running,
)

EXECUTE = f"/api/v1/sessions/{MINE}/execute"
CONTINUE = f"/api/v1/sessions/{MINE}/continue"
STREAM = {"Accept": "text/event-stream; charset=utf-8"}


def events_of(text: str) -> list[dict]:
    """Read frames as the wire format says: `data: ` lines, one empty line after each."""
    frames = text.split("\n\n")
    assert frames.pop() == ""
    return [json.loads(frame.removeprefix("data: ")) for frame in frames if frame[0] != ":"]


def streamed(front) -> bytes:
    """Return a whole execute request that asks for a stream."""
    body = json.dumps(EXECUTE_BODY).encode()
    return front.execute_bytes("Accept: text/event-stream", body=body)


async def test_a_buffered_turn_is_one_envelope():
    async with running() as front:
        answer = await front.client.post(
            EXECUTE,
            json=EXECUTE_BODY,
            headers={"X-Smista-Provider-OpenAI-Api-Key": "sk-abcdefgh", "Idempotency-Key": "k 1"},
        )
    assert answer.status_code == 200
    assert answer.json() == DONE.envelope()
    (call,) = front.sessions.calls
    assert (call.user_id, call.session_id) == (front.sessions.owner, MINE)
    assert isinstance(call.message, Execute)
    assert call.credentials == {"openai": SecretStr("sk-abcdefgh")}
    assert call.idempotency_key == "k 1"
    assert front.sessions.reader.closed.is_set()


async def test_a_streamed_turn_ends_with_exactly_one_turn_end():
    request = ToolRequest("c1", "shell", {"command": "ls"}, "ask")
    end = TurnEnd(Status.AWAITING_TOOL, {"tool_requests": []}, ("tool_results", "break"))
    async with running() as front:
        front.sessions.reader = FakeReader(
            TextDeltaEvent("a"),
            ToolCallRequested(request),
            UsageEvent({"input_tokens": 1}),
            end,
            TextDeltaEvent("never"),
            end,
        )
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY, headers=STREAM)
    assert answer.headers["content-type"] == "text/event-stream"
    assert events_of(answer.text) == [
        {"type": "text_delta", "delta": "a"},
        {"type": "tool_call_requested", **request.body()},
        {"type": "usage", "input_tokens": 1},
        end.body(),
    ]


async def test_line_separators_and_lone_surrogates_in_a_delta_survive():
    text = "one\u2028two\u2029three\x85four\r\nfive \U0001f642 "
    async with running() as front:
        front.sessions.reader = FakeReader(TextDeltaEvent(text), TextDeltaEvent("\ud83d"), DONE)
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY, headers=STREAM)
    heard = events_of(answer.content.decode())
    assert heard[0]["delta"] == text
    assert heard[1]["delta"] == "?"


async def test_events_arrive_as_they_are_said():
    async with running() as front:
        front.sessions.reader = reader = FakeReader(TextDeltaEvent("first"))
        async with front.open_wire(streamed(front)) as wire:
            assert b"second" not in await wire.until(b"first")
            reader.say(TextDeltaEvent("second"), DONE)
            assert b"turn_end" in await wire.until(b"0\r\n\r\n")


async def test_all_that_is_ready_leaves_in_one_write():
    async with running() as front:
        front.sessions.reader = FakeReader(*[TextDeltaEvent("x")] * 1000, DONE)
        async with front.open_wire(streamed(front)) as wire:
            heard = await wire.until(b"0\r\n\r\n")
    assert heard.count(b"data: ") == 1001
    assert len(re.findall(rb"\r\n[0-9a-f]+\r\n", heard)) == 2


@pytest.mark.parametrize("accept", ["*/*", "text/*", "application/json", "text/event-streams"])
async def test_only_an_exact_accept_gets_a_stream(accept: str):
    async with running() as front:
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY, headers={"Accept": accept})
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_a_refused_message_is_a_plain_error(headers: dict):
    async with running() as front:
        front.sessions.fault = RunInFlight("a turn is being served")
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY, headers=headers)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "run_in_flight"


@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_a_turn_that_fails_before_it_spoke_answers_its_own_status(headers: dict):
    async with running() as front:
        error = FallbackExhausted("all failed", attempts=[{"code": "timeout"}])
        front.sessions.reader = FakeReader(failed(error))
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY, headers=headers)
    assert answer.status_code == 503
    assert answer.json() == {
        "error": {
            "code": "fallback_exhausted",
            "message": "all failed",
            "details": {"attempts": [{"code": "timeout"}]},
        }
    }
    assert front.sessions.reader.closed.is_set()


async def test_a_turn_that_fails_after_it_spoke_ends_its_stream_with_the_error():
    async with running() as front:
        end = failed(ProviderRateLimited("slow down", retry_after=2.5))
        front.sessions.reader = FakeReader(TextDeltaEvent("a"), end)
        streamed = await front.client.post(EXECUTE, json=EXECUTE_BODY, headers=STREAM)
        front.sessions.reader = FakeReader(TextDeltaEvent("a"), end)
        buffered = await front.client.post(EXECUTE, json=EXECUTE_BODY)
    assert streamed.status_code == 200
    assert events_of(streamed.text)[-1] == end.body()
    assert (buffered.status_code, buffered.headers["retry-after"]) == (429, "3")


@pytest.mark.parametrize("headers", [{}, STREAM])
async def test_a_turn_without_an_outcome_is_told_as_a_fault(headers: dict):
    async with running() as front:
        front.sessions.reader = reader = FakeReader(TextDeltaEvent("a"))
        reader.end_silently()
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY, headers=headers)
    assert "internal_error" in answer.text


async def test_a_buffered_turn_that_takes_too_long_is_left_to_itself():
    async with running(replace(SETTINGS, request_timeout=0.3)) as front:
        front.sessions.reader = FakeReader(TextDeltaEvent("a"))
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY)
        await front.sessions.reader.closed.wait()
    assert answer.status_code == 504
    assert answer.json()["error"]["code"] == "request_timeout"


async def test_a_session_that_is_not_reached_in_time_is_busy():
    async with running(replace(SETTINGS, request_timeout=0.3)) as front:
        front.sessions.hold = trio.Event()
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "router_busy"


async def test_a_silent_stream_is_kept_alive_by_comments_however_long_it_takes():
    settings = replace(SETTINGS, request_timeout=0.25)
    async with running(settings, keep_alive=0.06) as front:
        front.sessions.reader = reader = FakeReader()
        async with front.open_wire(streamed(front)) as wire:
            for _ in range(5):
                await wire.until(b": keep-alive\n\n")
            reader.say(DONE)
            assert b"turn_end" in await wire.until(b"0\r\n\r\n")


class OpenedReader(FakeReader):
    """A turn that belongs into a stream long before anything is said."""

    async def wait_opened(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_a_stream_begins_with_its_first_event_however_early_it_is_open():
    async with running() as front:
        front.sessions.reader = reader = OpenedReader()
        async with front.open_wire(streamed(front)) as wire:
            await reader.waited.wait()
            reader.say(DONE)
            raw = await wire.until(b"0\r\n\r\n")
    assert raw.count(b"data: ") == 1
    assert b": keep-alive" not in raw


async def test_new_input_is_known_to_be_taken_before_the_model_says_a_word():
    words = {"type": "inject", "data": {"messages": [{"text": "instead"}]}}
    async with running() as front:
        front.sessions.reader = reader = OpenedReader()
        with trio.fail_after(5):
            async with front.client.stream("POST", CONTINUE, json=words, headers=STREAM) as answer:
                assert answer.status_code == 200
                reader.say(DONE)
                assert "turn_end" in (await answer.aread()).decode()


async def test_the_continuations_reach_the_session_as_what_they_are():
    result = {"call_id": "c1", "content": "ok", "decision": "approved"}
    async with running() as front:
        await front.client.post(
            CONTINUE, json={"type": "tool_results", "data": {"results": [result]}}
        )
        front.sessions.reader = FakeReader(TurnEnd(Status.IDLE, {"trace_id": "trace:1"}))
        stopped = await front.client.post(CONTINUE, json={"type": "break"})
    first, second = (call.message for call in front.sessions.calls)
    assert isinstance(first, ToolResults)
    assert first.data.results[0].content == "ok"
    assert second == Break()
    assert stopped.json()["status"] == "idle"


async def test_a_client_that_leaves_a_stream_gives_the_reader_back():
    async with running() as front:
        front.sessions.reader = reader = FakeReader(TextDeltaEvent("a"))
        async with front.open_wire(streamed(front)) as wire:
            await wire.until(b"text_delta")
        with trio.fail_after(5):
            await reader.closed.wait()


async def test_a_client_that_leaves_a_buffered_turn_gives_the_reader_back():
    async with running() as front:
        front.sessions.reader = reader = FakeReader()
        request = front.execute_bytes(body=json.dumps(EXECUTE_BODY).encode())
        async with front.open_wire(request):
            await reader.waited.wait()
        with trio.fail_after(5):
            await reader.closed.wait()


async def test_a_client_that_leaves_while_its_message_waits_cancels_the_waiting():
    async with running() as front:
        front.sessions.hold = trio.Event()
        request = front.execute_bytes(body=json.dumps(EXECUTE_BODY).encode())
        async with front.open_wire(request):
            await front.sessions.told.wait()
        with trio.fail_after(5):
            await front.sessions.left.wait()
    assert front.sessions.calls == []


async def test_a_fault_of_ours_answers_500_and_the_front_lives_on(caplog):
    async with running() as front:
        front.sessions.fault = ZeroDivisionError("with sk-secret-secret in it")
        turn = await front.client.post(EXECUTE, json=EXECUTE_BODY)
        other = await front.client.get(f"/api/v1/sessions/{MINE}?title=private")
        front.sessions.fault = None
        after = await front.client.post(EXECUTE, json=EXECUTE_BODY)
    for answer in (turn, other):
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "internal_error"
    assert after.status_code == 200
    assert "/api/v1/sessions/{session_id}/execute failed" in caplog.text
    assert "/api/v1/sessions/<session_id> failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    for private in ("sk-secret", MINE, "title=private"):
        assert private not in caplog.text


async def test_a_fault_in_the_middle_of_a_stream_is_its_last_event(caplog):
    class Broken(FakeReader):
        async def wait_events(self):
            raise ZeroDivisionError

    async with running() as front:
        front.sessions.reader = Broken(TextDeltaEvent("a"))
        answer = await front.client.post(EXECUTE, json=EXECUTE_BODY, headers=STREAM)
    last = events_of(answer.text)[-1]
    assert (last["type"], last["status"]) == ("turn_end", "error")
    assert last["data"]["error"]["code"] == "internal_error"
    assert "ZeroDivisionError" in caplog.text


async def test_a_key_that_comes_back_in_an_answer_is_taken_out():
    key = 'a"key\\with-odd-letters'
    async with running() as front:
        front.sessions.reader = FakeReader(TextDeltaEvent(f"you sent {key}"), DONE)
        answer = await front.client.post(
            EXECUTE,
            json=EXECUTE_BODY,
            headers={**STREAM, "X-Smista-Provider-OpenAI-Api-Key": key},
        )
    assert events_of(answer.text)[0]["delta"] == "you sent [redacted]"


async def test_a_hundred_streams_run_side_by_side():
    limits = httpx.Limits(max_connections=None)
    async with running() as front:
        readers = [FakeReader() for _ in range(100)]
        waiting = iter(readers)

        async def tell(call):
            return next(waiting)

        front.sessions.tell = tell
        heard: list[str] = []

        async def ask(client: httpx.AsyncClient) -> None:
            answer = await client.post(EXECUTE, json=EXECUTE_BODY, headers=STREAM)
            heard.append(answer.text)

        headers = front.client.headers
        async with (
            httpx.AsyncClient(
                base_url=front.url, headers=headers, limits=limits, trust_env=False, timeout=20
            ) as client,
            trio.open_nursery() as asking,
        ):
            for _ in readers:
                asking.start_soon(ask, client)
            for reader in readers:
                await reader.waited.wait()
            for reader in readers:
                reader.say(TextDeltaEvent("x"), DONE)
    assert len(heard) == 100
    assert all(events_of(text)[-1]["status"] == "completed" for text in heard)
