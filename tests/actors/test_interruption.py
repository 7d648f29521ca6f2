"""Stopping and redirecting a run: break, inject, a reader that leaves, a router that leaves."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.parts import Durations, Limits
from actors.turn_stream import TurnStream
from smista.core.errors import (
    InvalidRequest,
    ProviderRateLimited,
    RouterBusy,
    SessionNotFound,
    ShuttingDown,
    SmistaError,
    StorageUnavailable,
    Superseded,
)
from smista.core.events import ReasoningDeltaEvent, Status, TextDeltaEvent
from smista.core.history import Role
from smista.core.phase import AwaitingTool, Idle
from smista.core.records import CallStatus, EventType
from smista.core.stream import TextDelta, Usage
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, hear, open_house, outcome, result
from tests.fakes import ScriptedProvider, Stall, called, said

EDIT = '{"path": "a.txt", "old": "a", "new": "b"}'


def stalled(*texts: str):
    stall = Stall()
    return stall, [*(TextDelta(text=text) for text in texts), stall]


async def test_a_break_closes_the_answer_keeps_what_was_said_and_answers_idle():
    stall, script = stalled("once upon ")
    provider = ScriptedProvider(script)
    async with open_house(provider) as house:
        reader = await house.execute()
        await stall.reached.wait()
        assert (await outcome(await house.stop())).status is Status.IDLE
        heard = await hear(reader)
        assert heard[0] == TextDeltaEvent("once upon ")
        assert heard[-1].status is Status.IDLE
        assert provider.closed == 1
        last = (await house.state()).messages[-1]
        assert (last.text, last.interrupted, last.role) == ("once upon ", True, Role.ASSISTANT)


async def test_the_usage_of_an_interrupted_answer_is_kept():
    stall = Stall()
    usage = Usage(input_tokens=7, output_tokens=1)
    async with open_house(ScriptedProvider([TextDelta(text="a"), usage, stall])) as house:
        await house.execute()
        await stall.reached.wait()
        await hear(await house.stop())
        (cost,) = [e for e in await house.trace() if e.event_type is EventType.COST]
        assert cost.payload["input_tokens"] == 7


async def test_a_break_without_a_run_answers_idle():
    async with open_house(ScriptedProvider()) as house:
        assert (await outcome(await house.stop())).status is Status.IDLE


async def test_a_break_in_a_pause_fails_the_calls_that_wait():
    async with open_house(ScriptedProvider(called("edit_file", EDIT))) as house:
        end = await outcome(await house.execute("fix it"))
        call_id = end.data["tool_requests"][0]["call_id"]
        assert (await outcome(await house.stop())).status is Status.IDLE
        state = await house.state()
        assert state.run.phase == Idle()
        assert state.calls[call_id].status is CallStatus.FAILED
        with pytest.raises(InvalidRequest):
            await house.answer(result(call_id))


async def test_an_inject_ends_the_old_stream_and_goes_on_with_the_new_input():
    stall, script = stalled("the wrong ")
    provider = ScriptedProvider(script, said("the right thing"))
    async with open_house(provider) as house:
        first = await house.execute("do it")
        await stall.reached.wait()
        second = await house.inject("do the other")
        assert isinstance((await outcome(first)).error, Superseded)
        end = await outcome(second)
        assert end.status is Status.COMPLETED
        texts = [(m.text, m.interrupted) for m in (await house.state()).messages]
        assert texts == [
            ("do it", False),
            ("the wrong ", True),
            ("do the other", False),
            ("the right thing", False),
        ]
    assert provider.prompts[1].messages[-1].text == "do the other"


async def test_an_inject_in_a_pause_cancels_the_calls_and_asks_anew():
    provider = ScriptedProvider(called("edit_file", EDIT), said("fine"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute("fix it"))
        call_id = end.data["tool_requests"][0]["call_id"]
        assert (await outcome(await house.inject("no, wait"))).status is Status.COMPLETED
        assert (await house.state()).calls[call_id].status is CallStatus.FAILED


async def test_a_storm_of_injects_loses_none_and_only_the_last_stream_goes_on():
    stall, script = stalled("a")
    provider = ScriptedProvider(script, *[said("done")] * 101)
    async with open_house(provider) as house:
        await house.execute("start")
        await stall.reached.wait()
        readers = [await house.inject(f"number {n}") for n in range(100)]
        ends = [await outcome(reader) for reader in readers]
        assert ends[-1].status is Status.COMPLETED
        assert all(isinstance(e.error, Superseded) or e.status is Status.COMPLETED for e in ends)
        texts = [m.text for m in (await house.state()).messages if m.role is Role.USER]
        assert texts == ["start", *(f"number {n}" for n in range(100))]


async def test_an_inject_and_then_a_break_keeps_the_input_and_stops():
    stall, script = stalled("a")
    provider = ScriptedProvider(script)
    async with open_house(provider) as house:
        await house.execute("start")
        await stall.reached.wait()
        injected = await house.inject("more")
        stopped = await house.stop()
        assert (await outcome(stopped)).status is Status.IDLE
        assert (await outcome(injected)).status is Status.IDLE
        assert [m.text for m in (await house.state()).messages] == ["start", "a", "more"]
    assert len(provider.prompts) == 1


async def test_a_break_is_taken_when_all_places_are_busy():
    stall, script = stalled("a")
    async with open_house(ScriptedProvider(script), limits=Limits(concurrent_turns=1)) as house:
        reader = await house.execute()
        await stall.reached.wait()
        assert (await outcome(await house.stop())).status is Status.IDLE
        assert (await outcome(reader)).status is Status.IDLE


async def test_a_turn_without_a_place_says_that_the_router_is_busy(autojump_clock):
    stall, script = stalled("a")
    durations = Durations(slot_wait=5.0)
    limits = Limits(concurrent_turns=1)
    async with open_house(ScriptedProvider(script), durations=durations, limits=limits) as house:
        await house.execute()
        await stall.reached.wait()
        other = await house.directory.create(USER, title="b", scope=None, key_id=None)
        house.session_id = other.id
        assert isinstance((await outcome(await house.execute())).error, RouterBusy)


async def test_a_reader_that_left_has_its_turn_interrupted_after_the_grace(autojump_clock):
    stall, script = stalled("half")
    provider = ScriptedProvider(script)
    async with open_house(provider, durations=Durations(orphan_grace=10)) as house:
        reader = await house.execute()
        await stall.reached.wait()
        began = trio.current_time()
        reader.close()
        await stall.left.wait()
        assert trio.current_time() - began == pytest.approx(10, abs=1)
        await wait_all_tasks_blocked()
        last = (await house.state()).messages[-1]
        assert (last.text, last.interrupted) == ("half", True)


async def test_after_the_grace_a_continued_run_is_still_at_its_checkpoint(autojump_clock):
    stall, script = stalled("half")
    provider = ScriptedProvider(called("edit_file", EDIT), script, said("whole"))
    async with open_house(provider, durations=Durations(orphan_grace=1)) as house:
        end = await outcome(await house.execute("fix it"))
        call_id = end.data["tool_requests"][0]["call_id"]
        reader = await house.answer(result(call_id, decision="approved"))
        await stall.reached.wait()
        reader.close()
        await stall.left.wait()
        await wait_all_tasks_blocked()
        assert isinstance((await house.state()).run.phase, AwaitingTool)
        end = await outcome(await house.answer(result(call_id, decision="approved")))
        assert end.status is Status.COMPLETED
        state = await house.state()
        assert [m.text for m in state.messages if m.role is Role.TOOL] == ["ok"]
        assert [m.text for m in state.messages if m.interrupted] == ["half"]
    assert [m.text for m in provider.prompts[2].messages if m.text == "half"] == []


async def test_a_turn_that_ends_within_the_grace_is_kept_whole(autojump_clock):
    async with open_house(ScriptedProvider(said("a", "b"))) as house:
        (await house.execute()).close()
        await wait_all_tasks_blocked()
        last = (await house.state()).messages[-1]
        assert (last.text, last.interrupted) == ("ab", False)


async def test_a_slow_reader_slows_its_model_and_hears_everything_in_order():
    texts = [str(n) for n in range(1000)]
    limits = Limits(stream_events=4)
    async with open_house(ScriptedProvider(said(*texts)), limits=limits) as house:
        reader = await house.execute()
        heard = []
        while events := await reader.wait_events():
            assert len(events) <= 8
            heard += events
            await trio.lowlevel.checkpoint()
        assert [e.delta for e in heard if isinstance(e, TextDeltaEvent)] == texts
        assert heard[-1].status is Status.COMPLETED


async def test_a_reader_that_takes_nothing_counts_as_gone(autojump_clock):
    provider = ScriptedProvider(said(*["x"] * 100))
    limits, durations = Limits(stream_events=4), Durations(reader_stall=60, orphan_grace=1)
    async with open_house(provider, limits=limits, durations=durations) as house:
        await house.execute()
        await trio.sleep(70)
        assert (await house.state()).messages[-1].text == "x" * 100


async def test_deleting_a_session_stops_its_turn_and_leaves_nothing():
    stall, script = stalled("a")
    journal = MemoryJournal()
    provider = ScriptedProvider(script)
    async with open_house(provider, journal=journal) as house:
        reader = await house.execute()
        await stall.reached.wait()
        await house.directory.delete(USER, house.session_id)
        assert (await outcome(reader)).status is Status.IDLE
        assert await journal.session(USER, house.session_id) is None
        with pytest.raises(SessionNotFound):
            await house.execute()
    assert provider.closed == 1


async def test_an_archived_session_is_not_found_until_it_is_restored():
    async with open_house(ScriptedProvider(said("x"), said("y"))) as house:
        await hear(await house.execute())
        await house.directory.update(USER, house.session_id, title=None, archived=True)
        with pytest.raises(SessionNotFound):
            await house.execute()
        await house.directory.update(USER, house.session_id, title=None, archived=False)
        assert (await outcome(await house.execute())).status is Status.COMPLETED


async def test_shutting_down_lets_turns_end_and_interrupts_the_rest_as_resumable(autojump_clock):
    stall, script = stalled("half")
    provider = ScriptedProvider(called("edit_file", EDIT), script)
    journal = MemoryJournal()
    async with open_house(provider, journal=journal) as house:
        end = await outcome(await house.execute("fix it"))
        call_id = end.data["tool_requests"][0]["call_id"]
        reader = await house.answer(result(call_id, decision="approved"))
        await stall.reached.wait()
        await house.directory.drain(grace=10, settle=5)
        assert isinstance((await outcome(reader)).error, ShuttingDown)
        with pytest.raises(ShuttingDown):
            await house.execute()
        assert isinstance((await house.state()).run.phase, AwaitingTool)


async def test_a_session_with_nothing_to_do_goes_to_sleep_and_wakes_again(autojump_clock):
    provider = ScriptedProvider(said("one"), said("two"))
    async with open_house(provider, durations=Durations(idle=60)) as house:
        await hear(await house.execute("first"))
        await trio.sleep(61)
        assert house.directory.awake == 0
        await hear(await house.execute("second"))
    assert [m.text for m in provider.prompts[1].messages] == ["first", "one", "second"]


class Broken(ScriptedProvider):
    """A provider with a bug of its own."""

    def open_stream(self, prompt, *, key):
        raise RuntimeError("a bug")


async def test_a_bug_in_one_turn_is_answered_and_the_session_stays_usable(caplog):
    async with open_house(Broken()) as house:
        end = await outcome(await house.execute())
        assert end.status is Status.ERROR
        assert end.error.code == "internal_error"
        assert "a bug" not in end.error.message
        end = await outcome(await house.execute())
        assert end.error.code == "internal_error"
    assert "a bug" in caplog.text


async def test_two_clients_may_stop_the_same_run():
    stall, script = stalled("a")
    async with open_house(ScriptedProvider(script)) as house:
        reader = await house.execute()
        await stall.reached.wait()
        ends = []

        async def stop():
            ends.append((await outcome(await house.stop())).status)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop)
            nursery.start_soon(stop)
        assert ends == [Status.IDLE, Status.IDLE]
        assert (await outcome(reader)).status is Status.IDLE


async def test_a_returning_reader_hears_what_was_said_in_one_piece_per_kind():
    left = []
    stream = TurnStream(limit=8, said_bytes=100, leave=left.append)
    first = stream.attach()
    for event in (ReasoningDeltaEvent("a"), TextDeltaEvent("b"), TextDeltaEvent("c")):
        stream.put(event)
    first.close()
    assert left == [stream]
    stream.put(TextDeltaEvent("d"))
    assert stream.attach().ready() == [ReasoningDeltaEvent("a"), TextDeltaEvent("bcd")]


def test_every_error_names_a_stable_code():
    kinds = [SmistaError]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        assert kind.code


async def test_calls_that_a_break_cancels_end_failed_in_the_trace():
    async with open_house(ScriptedProvider(called("edit_file", EDIT))) as house:
        await hear(await house.execute("fix it"))
        await hear(await house.stop())
        calls = [e for e in await house.trace() if e.event_type is EventType.TOOL_CALL]
        assert [e.payload["status"] for e in calls] == ["pending", "failed"]
        assert {(e.provider, e.model) for e in calls} == {("openai-compat:a", "m")}


async def test_a_task_stopped_before_its_route_was_known_leaves_its_prompt_in_the_trace():
    async with open_house(ScriptedProvider()) as house:
        house.providers.hang = True
        reader = await house.execute()
        await wait_all_tasks_blocked()
        await hear(await house.stop())
        assert (await outcome(reader)).status is Status.IDLE
        (event,) = await house.trace()
        assert (event.event_type, event.payload["role"]) == (EventType.MESSAGE, "user")


class Flaky(MemoryJournal):
    """A store that fails one write."""

    failing = 1

    async def record_turn(self, record):
        if self.failing:
            self.failing -= 1
            raise StorageUnavailable("one failed write")
        await super().record_turn(record)


async def test_a_write_that_failed_while_input_waited_is_told_and_nothing_is_served_on_it():
    stall, script = stalled("one ")
    provider = ScriptedProvider(script, said("fine"))
    async with open_house(provider, journal=Flaky()) as house:
        first = await house.execute("first")
        await stall.reached.wait()
        second = await house.inject("second")
        assert (await outcome(first)).error.code == "storage_error"
        assert (await outcome(second)).error.code == "storage_error"
        await wait_all_tasks_blocked()
        assert house.directory.awake == 0
        assert (await outcome(await house.execute("third"))).status is Status.COMPLETED
        assert house.directory.awake == 1
    assert len(provider.prompts) == 2


async def test_large_deltas_that_nobody_reads_do_not_pile_up():
    texts = ["x" * 50_000] * 100
    stall = Stall()
    provider = ScriptedProvider([*(TextDelta(text=t) for t in texts), stall])
    async with open_house(provider) as house:
        reader = await house.execute()
        await wait_all_tasks_blocked()
        assert sum(len(e.delta) for e in reader.ready()) < 350_000
        heard = 350_000
        while not stall.reached.is_set():
            heard += sum(len(e.delta) for e in await reader.wait_events())
            await wait_all_tasks_blocked()
        await house.stop()


async def test_a_provider_that_asks_for_too_much_patience_is_passed_over_at_once(autojump_clock):
    busy = ProviderRateLimited("slow down", retry_after=1e9)
    provider = ScriptedProvider([busy])
    async with open_house(provider) as house:
        began = trio.current_time()
        end = await outcome(await house.execute())
        assert end.error.code == "fallback_exhausted"
        assert trio.current_time() - began < 1


async def test_a_provider_that_asks_for_some_patience_gets_it(autojump_clock):
    busy = ProviderRateLimited("slow down", retry_after=7)
    async with open_house(ScriptedProvider([busy], said("now"))) as house:
        began = trio.current_time()
        assert (await outcome(await house.execute())).status is Status.COMPLETED
        assert trio.current_time() - began >= 7
