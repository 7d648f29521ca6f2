"""Two clients of one session, floods of input, and a client that is killed: on a real router."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
from pydantic import SecretStr

from smista.core.events import Event, Status, TextDeltaEvent, TurnEnd
from smista.core.messages import Break
from smista.demo.script import parse_script
from smista.demo.server import Seen, serve_demo_model
from smista.sdk.client import Client, open_client
from smista.sdk.errors import ApiError
from tests.e2e.house import COUNTED, PATIENCE, POLICY, SCRIPT, House, Router, done, request
from tests.e2e.stubborn import Said, Words, inject, open_turn, outcome_of, said_in

BEGUN = "it begins "
STORM = 100
GRACE_MS = 150
LIMITS = "max_request_body_bytes = 100000\n"


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.delta for event in events if isinstance(event, TextDeltaEvent))


async def said(client: Client, session_id: str) -> Said:
    return said_in(await client.session(session_id))


class Speaker:
    """One message on its way, and all that is heard in answer."""

    def __init__(self, client: Client, session_id: str, words: Words, key: str) -> None:
        self._client = client
        self._session_id = session_id
        self._words = words
        self._key = key
        self.heard: list[Event] = []
        self.speaks = trio.Event()
        self.outcome = ""

    async def run(self) -> None:
        try:
            await self._hear()
            last = self.heard[-1]
            assert isinstance(last, TurnEnd)
            self.outcome = outcome_of(last)
        except ApiError as error:
            self.outcome = error.code
        finally:
            self.speaks.set()

    async def _hear(self) -> None:
        turn = open_turn(self._client, self._session_id, self._words, self._key)
        async with turn as events:
            async for event in events:
                self.heard.append(event)
                if isinstance(event, TextDeltaEvent):
                    self.speaks.set()


@asynccontextmanager
async def open_two(house: House) -> AsyncGenerator[tuple[Client, Client]]:
    """Lend two clients of one user, each with connections of its own."""
    async with open_client(house.client_config) as first:
        identity = await first.bootstrap()
        async with open_client(house.client_config, api_key=identity.api_key) as second:
            yield first, second


async def test_one_client_breaks_off_what_another_listens_to(shared: House) -> None:
    async with open_two(shared) as (first, second):
        session = await first.create_session("broken off by another")
        speaker = Speaker(first, session.id, request("never end"), "one")
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(speaker.run)
                await speaker.speaks.wait()
                busy = Speaker(second, session.id, request("me too"), "two")
                await busy.run()
                stopped = await second.continue_run(session.id, Break())
        assert busy.outcome == "run_in_flight"
        assert stopped.status is Status.IDLE
        assert (speaker.outcome, text_of(speaker.heard)) == ("idle", BEGUN)
        again = await second.execute(session.id, request("hello"))
        assert again.status is Status.COMPLETED
        assert await said(first, session.id) == [
            ("user", "never end"),
            ("assistant", BEGUN),
            ("user", "hello"),
            ("assistant", "You wrote: hello"),
        ]


async def test_in_a_storm_of_new_input_nothing_is_lost_and_the_last_word_is_answered(
    shared: House,
) -> None:
    async with open_two(shared) as (first, second):
        session = await first.create_session("a storm")
        task = Speaker(first, session.id, request("never end"), "task")
        texts = [f"never end {n}" for n in range(STORM)]
        storm = [Speaker(second, session.id, inject(text), text) for text in texts]
        with trio.fail_after(3 * PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(task.run)
                await task.speaks.wait()
                for speaker in storm:
                    nursery.start_soon(speaker.run)
                for speaker in storm:
                    await speaker.speaks.wait()  # its own words, or its end
                assert (await first.continue_run(session.id, Break())).status is Status.IDLE
        ends = Counter(speaker.outcome for speaker in (task, *storm))
        assert ends == {"superseded": STORM, "idle": 1}
        transcript = await said(first, session.id)
        written = [text for role, text in transcript if role == "user"]
        assert written[0] == "never end"
        assert sorted(written[1:]) == sorted(texts)
        answered = next(text for text, s in zip(texts, storm, strict=True) if s.outcome == "idle")
        assert transcript[-2:] == [("user", answered), ("assistant", BEGUN)]
        # A key that was served is never served again.
        repeated = Speaker(second, session.id, inject(texts[0]), texts[0])
        await repeated.run()
        assert repeated.outcome == storm[0].outcome
        assert await said(first, session.id) == transcript


async def test_the_same_continuation_twice_at_once_is_served_once_and_both_hear_it(
    shared: House,
) -> None:
    async with open_two(shared) as (first, second):
        session = await first.create_session("twice at once")
        turn = await first.execute(session.id, request("fix the typo slowly"))
        result = done(turn.data["tool_requests"])
        pair = [
            Speaker(client, session.id, result, f"key {n}")
            for n, client in enumerate((first, second))
        ]
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for speaker in pair:
                    nursery.start_soon(speaker.run)
        assert [speaker.outcome for speaker in pair] == ["completed", "completed"]
        assert [text_of(speaker.heard) for speaker in pair] == [COUNTED, COUNTED]
        assert pair[0].heard[-1] == pair[1].heard[-1]
        assert await said(first, session.id) == [
            ("user", "fix the typo slowly"),
            ("assistant", "I will mend it. "),
            ("tool", "written"),
            ("assistant", COUNTED),
        ]
        kinds = Counter(event.event_type for event in await first.trace(session.id, limit=200))
        assert (kinds["approval"], kinds["cost"], kinds["tool_call"]) == (1, 2, 2)


async def test_the_same_task_twice_at_once_is_one_run_by_its_key(shared: House) -> None:
    async with open_two(shared) as (first, second):
        session = await first.create_session("one task")
        pair = [Speaker(each, session.id, request("count"), "key") for each in (first, second)]
        other = Speaker(second, session.id, request("another"), "key")
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for speaker in pair:
                    nursery.start_soon(speaker.run)
                await pair[0].speaks.wait()
                nursery.start_soon(other.run)
        assert [text_of(speaker.heard) for speaker in pair] == [COUNTED, COUNTED]
        assert [speaker.outcome for speaker in pair] == ["completed", "completed"]
        assert other.outcome == "invalid_request"  # a key stands for one body only
        assert await said(first, session.id) == [("user", "count"), ("assistant", COUNTED)]


def key_of(house: House) -> SecretStr:
    """Return the API key that `smista login` has put away."""
    return SecretStr((house.project / ".smista" / "secrets").read_text().split('"')[1])


async def open_model(nursery: trio.Nursery, send: trio.MemorySendChannel[Seen], port: int) -> None:
    async def serve(task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        await serve_demo_model(
            script=parse_script(SCRIPT),
            port=port,
            seen=send.send_nowait,
            task_status=task_status,
        )

    await nursery.start(serve)


@pytest.fixture
def forgetful(house: House) -> House:
    """A home whose router gives up a turn soon after its client is gone, with its own model."""
    text = house.router_file.read_text().replace(
        house.model, f"http://127.0.0.1:{house.keyed_port}/v1"
    )
    short = LIMITS + f"orphan_grace_ms = {GRACE_MS}\n"
    house.router_file.write_text(text.replace(LIMITS, short))
    house.write_policy(f"{POLICY}\n[local_preferences]\nencrypt_sessions = false\n")
    return house


async def test_the_turn_of_a_client_that_is_killed_ends_after_its_grace_and_lets_go_of_the_model(
    forgetful: House, open_router: Callable[[House], Router], nursery: trio.Nursery
) -> None:
    send, requests = trio.open_memory_channel[Seen](8)
    await open_model(nursery, send, forgetful.keyed_port)
    await trio.to_thread.run_sync(open_router, forgetful)
    assert (await trio.to_thread.run_sync(forgetful.run, "login")).returncode == 0
    command = forgetful.begun("never end", mark=BEGUN)
    process = await trio.to_thread.run_sync(command.__enter__)
    with trio.fail_after(PATIENCE):
        asked = await requests.receive()
        assert not asked.left.is_set()
        killed = trio.current_time()
        command.__exit__(None, None, None)
        await asked.left.wait()
    assert process.returncode is not None
    assert trio.current_time() - killed >= GRACE_MS / 1000
    async with open_client(forgetful.client_config, api_key=key_of(forgetful)) as client:
        (session,) = await client.sessions()
        # The next task waits for nothing: the lock is free, and the partial answer is kept.
        ended = await client.execute(session.id, request("hello"))
        assert ended.status is Status.COMPLETED
        assert await said(client, session.id) == [
            ("user", "never end"),
            ("assistant", BEGUN),
            ("user", "hello"),
            ("assistant", "You wrote: hello"),
        ]
    nursery.cancel_scope.cancel()
