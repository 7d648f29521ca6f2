"""Several routers on one store: each session is served by one of them at a time."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.parts import Durations, Limits
from smista.core.errors import (
    InvalidRequest,
    LeaseLost,
    RunInFlight,
    SessionNotFound,
    StorageUnavailable,
    Superseded,
)
from smista.core.events import Status
from smista.core.history import Role
from smista.core.messages import Execute
from smista.core.phase import AwaitingTool, Idle
from smista.ports.sessions import Call
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, House, hear, open_house, outcome, request, result
from tests.actors.leased import Draws, StoreTime
from tests.fakes import ScriptedProvider, Stall, called, said

EDIT = '{"path": "a.py", "old": "x", "new": "y"}'
LEASE = Durations().lease


class Held(ScriptedProvider):
    """Was *asked*, and answers once it may *go* on."""

    def __init__(self, *scripts) -> None:
        super().__init__(*scripts)
        self.asked, self.go = trio.Event(), trio.Event()

    @asynccontextmanager
    async def open_stream(self, prompt, *, key):
        async with super().open_stream(prompt, key=key) as events:
            self.asked.set()
            await self.go.wait()
            yield events


class Routers:
    """Opens routers over one store; all speak to the session of the first."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._rows = {}
        self._session = None
        self.time = StoreTime()

    def journal(self, kind=MemoryJournal) -> MemoryJournal:
        return kind(self._rows, shared=True, now=self.time.now)

    async def open(self, name: str, *providers, journal=None, stack=None, **more) -> House:
        house = await (stack or self._stack).enter_async_context(
            open_house(
                *providers,
                journal=journal or self.journal(),
                clock=Draws(name),
                router=name,
                **more,
            )
        )
        self._session = house.session_id = self._session or house.session_id
        return house


@asynccontextmanager
async def open_routers() -> AsyncIterator[Routers]:
    async with AsyncExitStack() as stack:
        yield Routers(stack)


async def texts(house: House) -> list[str]:
    return [m.text for m in (await house.state()).messages]


async def test_a_session_is_served_by_one_router_at_a_time(mock_clock):
    async with open_routers() as routers:
        held = Held(said("from a"))
        a = await routers.open("a", held)
        b = await routers.open("b", ScriptedProvider(said("from b")))
        reader = await a.execute("one")
        await held.asked.wait()
        for refused in (b.execute, b.stop):
            with pytest.raises(RunInFlight, match="another router"):
                await refused()
        held.go.set()
        assert (await outcome(reader)).status is Status.COMPLETED
        assert (await outcome(await b.execute("two"))).status is Status.COMPLETED
        assert await texts(b) == ["one", "from a", "two", "from b"]
        assert (await b.state()).run.active is None


async def test_routers_that_take_turns_each_know_what_the_other_did(mock_clock):
    async with open_routers() as routers:
        ones = ScriptedProvider(said("1"), said("3"), called("edit_file", EDIT))
        others = ScriptedProvider(said("2"), said("done"))
        a, b = await routers.open("a", ones), await routers.open("b", others)
        for house, text in ((a, "i"), (b, "ii"), (a, "iii")):
            await hear(await house.execute(text))
        assert [m.text for m in ones.prompts[1].messages] == ["i", "1", "ii", "2", "iii"]

        # b remembers an idle session; in truth a's run waits for its client.
        end = await outcome(await a.execute("fix it"))
        call_id = end.data["tool_requests"][0]["call_id"]
        end = await outcome(await b.answer(result(call_id, decision="approved")))
        assert end.status is Status.COMPLETED
        with pytest.raises(InvalidRequest):
            await a.answer(result(call_id, "other", decision="approved"))
        state = await a.state()
        assert isinstance(state.run.phase, Idle)
        assert [m.text for m in state.messages if m.role is Role.TOOL] == ["ok"]


async def test_what_one_router_answered_another_does_not_serve_again(mock_clock):
    async with open_routers() as routers:
        a = await routers.open("a", ScriptedProvider(said("1")))
        b = await routers.open("b", ScriptedProvider(said("2")))
        await hear(await a.execute("one"))
        call = Call(
            user_id=USER,
            session_id=a.session_id,
            message=Execute(request=request("two")),
            idempotency_key="k",
        )
        first = await outcome(await b.directory.tell(call))
        again = await outcome(await a.directory.tell(call))
        assert again.status is Status.COMPLETED
        assert again.data["message"] == first.data["message"]
        assert await texts(b) == ["one", "1", "two", "2"]


async def test_a_preview_reads_what_another_router_wrote(mock_clock):
    async with open_routers() as routers:
        a = await routers.open("a", ScriptedProvider(said("1")))
        b = await routers.open("b", ScriptedProvider(said("2")))
        await hear(await a.execute("one"))
        await hear(await b.execute("two"))
        decision = await a.directory.preview(USER, a.session_id, request("three"), {})
        assert [m.text for m in decision.prompt.messages] == ["one", "1", "two", "2", "three"]


async def test_a_router_that_stalled_past_its_lease_writes_nothing(mock_clock):
    async with open_routers() as routers:
        held = Held(said("too late"), said("after"))
        a = await routers.open("a", held)
        b = await routers.open("b", ScriptedProvider(said("instead")))
        reader = await a.execute("slow")
        await held.asked.wait()
        routers.time.missed += LEASE
        assert (await outcome(await b.execute("quick"))).status is Status.COMPLETED

        held.go.set()
        end = await outcome(reader)
        assert isinstance(end.error, LeaseLost)
        assert end.error.retryable
        state = await b.state()
        assert [m.text for m in state.messages] == ["quick", "instead"]
        assert (state.run.lease, state.run.active) == (2, None)

        await hear(await a.execute("again"))
        assert [m.text for m in held.prompts[1].messages] == ["quick", "instead", "again"]
        assert await texts(b) == ["quick", "instead", "again", "after"]
        assert (await b.state()).run.messages == 4


async def test_a_turn_whose_lease_is_lost_ends_at_the_next_renewal(mock_clock):
    async with open_routers() as routers:
        stall = Stall()
        a = await routers.open("a", ScriptedProvider([*said("half")[:1], stall]))
        b = await routers.open("b", ScriptedProvider(said("instead")))
        reader = await a.execute("slow")
        await stall.reached.wait()
        routers.time.missed += LEASE
        await hear(await b.execute("quick"))
        mock_clock.jump(Durations().lease_renewal)
        assert isinstance((await outcome(reader)).error, LeaseLost)
        assert stall.left.is_set()
        assert await texts(b) == ["quick", "instead"]


async def test_a_break_of_a_turn_that_was_overtaken_writes_nothing(mock_clock):
    async with open_routers() as routers:
        stall = Stall()
        a = await routers.open("a", ScriptedProvider([*said("half")[:1], stall]))
        b = await routers.open("b", ScriptedProvider(said("instead")))
        reader = await a.execute("slow")
        await stall.reached.wait()
        routers.time.missed += LEASE
        await hear(await b.execute("quick"))
        stopped = await a.stop()
        assert isinstance((await outcome(reader)).error, LeaseLost)
        assert isinstance((await outcome(stopped)).error, StorageUnavailable)
        assert await texts(b) == ["quick", "instead"]


async def test_a_long_turn_keeps_its_lease(mock_clock):
    async with open_routers() as routers:
        held = Held(said("at last"))
        a = await routers.open("a", held)
        b = await routers.open("b", ScriptedProvider())
        reader = await a.execute()
        await held.asked.wait()
        for _ in range(12):
            mock_clock.jump(Durations().lease_renewal)
            await wait_all_tasks_blocked()
            with pytest.raises(RunInFlight):
                await b.execute()
        held.go.set()
        assert (await outcome(reader)).status is Status.COMPLETED
        assert (await b.state()).run.lease == 1


async def test_a_store_out_of_reach_at_a_renewal_does_not_end_the_turn(mock_clock, caplog):
    async with open_routers() as routers:

        class Deaf(MemoryJournal):
            async def renew_lease(self, session_id, number, *, seconds):
                raise StorageUnavailable("the store is out of reach")

        held = Held(said("still"))
        a = await routers.open("a", held, journal=routers.journal(Deaf))
        reader = await a.execute()
        await held.asked.wait()
        mock_clock.jump(5 * LEASE)
        await wait_all_tasks_blocked()
        held.go.set()
        assert (await outcome(reader)).status is Status.COMPLETED
        assert "not renewed" in caplog.text


async def test_what_a_crashed_router_served_is_taken_over_once_its_lease_expires(mock_clock):
    async with open_routers() as routers:
        stall = Stall()
        b = await routers.open("b", ScriptedProvider(called("edit_file", EDIT), said("done")))
        end = await outcome(await b.execute("fix it"))
        call_id = end.data["tool_requests"][0]["call_id"]
        async with AsyncExitStack() as crashing:
            a = await routers.open("a", ScriptedProvider([stall]), stack=crashing)
            await a.answer(result(call_id, decision="approved"))
            await stall.reached.wait()
        with pytest.raises(RunInFlight):
            await b.answer(result(call_id, decision="approved"))
        assert isinstance((await b.state()).run.phase, AwaitingTool)

        routers.time.missed += LEASE
        end = await outcome(await b.answer(result(call_id, decision="approved")))
        assert end.status is Status.COMPLETED
        assert [m.role for m in (await b.state()).messages].count(Role.TOOL) == 1


async def test_a_router_that_starts_again_need_not_wait_for_its_own_lease(mock_clock):
    async with open_routers() as routers:
        stall = Stall()
        async with AsyncExitStack() as crashing:
            a = await routers.open("a", ScriptedProvider([stall]), stack=crashing)
            await a.execute()
            await stall.reached.wait()
        b = await routers.open("b", ScriptedProvider(said("x")))
        assert await routers.journal().unlock(router="b") == 0
        assert await routers.journal().unlock(router="a") == 1
        assert (await outcome(await b.execute())).status is Status.COMPLETED


async def test_a_refused_message_keeps_no_other_router_out(mock_clock):
    async with open_routers() as routers:
        a = await routers.open("a", ScriptedProvider())
        b = await routers.open("b", ScriptedProvider(said("x")))
        with pytest.raises(InvalidRequest):
            await a.answer(result("call"))
        assert (await outcome(await a.stop())).status is Status.IDLE
        await wait_all_tasks_blocked()
        assert (await outcome(await b.execute())).status is Status.COMPLETED


async def test_a_turn_that_wrote_nothing_gives_its_lease_back(mock_clock):
    async with open_routers() as routers:
        held = Held(said("x"))
        alone = {"limits": Limits(concurrent_turns=1), "durations": Durations(slot_wait=0)}
        a = await routers.open("a", held, **alone)
        b = await routers.open("b", ScriptedProvider(said("y")))
        other = await a.directory.create(USER, title="o", scope=None, key_id=None)
        mine, a.session_id = a.session_id, other.id
        reader = await a.execute()
        await held.asked.wait()
        a.session_id = mine
        assert (await outcome(await a.execute())).error.code == "router_busy"
        await wait_all_tasks_blocked()
        assert (await outcome(await b.execute())).status is Status.COMPLETED
        held.go.set()
        await hear(reader)


async def test_new_input_goes_on_under_a_new_lease(mock_clock):
    async with open_routers() as routers:
        stall = Stall()
        a = await routers.open("a", ScriptedProvider([*said("half")[:1], stall], said("whole")))
        reader = await a.execute("one")
        await stall.reached.wait()
        injected = await a.inject("two")
        assert isinstance((await outcome(reader)).error, Superseded)
        assert (await outcome(injected)).status is Status.COMPLETED
        assert await texts(a) == ["one", "half", "two", "whole"]
        assert (await a.state()).run.lease == 2


async def test_input_that_waited_is_refused_if_another_router_comes_first(mock_clock):
    async with open_routers() as routers:

        class Beaten(MemoryJournal):
            """Another router takes the session as soon as a turn gives it back."""

            async def record_turn(self, record):
                await super().record_turn(record)
                session = await self.session(record.user_id, record.session_id)
                await self.take_lease(session, router="b", seconds=LEASE)

        stall = Stall()
        script = ScriptedProvider([*said("half")[:1], stall])
        a = await routers.open("a", script, journal=routers.journal(Beaten))
        reader = await a.execute("one")
        await stall.reached.wait()
        injected = await a.inject("two")
        assert isinstance((await outcome(reader)).error, Superseded)
        assert isinstance((await outcome(injected)).error, RunInFlight)
        assert await texts(a) == ["one", "half"]


async def test_a_session_that_another_router_serves_is_not_deleted(mock_clock):
    async with open_routers() as routers:
        held = Held(said("x"))
        a = await routers.open("a", held)
        b = await routers.open("b", ScriptedProvider())
        reader = await a.execute()
        await held.asked.wait()
        with pytest.raises(RunInFlight):
            await b.directory.delete(USER, b.session_id)
        with pytest.raises(RunInFlight):
            await b.directory.update(USER, b.session_id, title=None, archived=True)
        held.go.set()
        await hear(reader)
        await b.directory.delete(USER, b.session_id)
        with pytest.raises(SessionNotFound):
            await a.execute()


async def test_a_session_that_another_router_archived_is_not_found(mock_clock):
    async with open_routers() as routers:
        a = await routers.open("a", ScriptedProvider(said("x"), said("y")))
        b = await routers.open("b", ScriptedProvider())
        await hear(await a.execute())
        await b.directory.update(USER, b.session_id, title=None, archived=True)
        with pytest.raises(SessionNotFound):
            await a.execute()
        await b.directory.update(USER, b.session_id, title=None, archived=False)
        assert (await outcome(await a.execute())).status is Status.COMPLETED


async def test_a_store_out_of_reach_refuses_the_message_and_the_session_stays_usable(mock_clock):
    async with open_routers() as routers:

        class Once(MemoryJournal):
            tries = 0

            async def take_lease(self, session, *, router, seconds):
                self.tries += 1
                number = await super().take_lease(session, router=router, seconds=seconds)
                if self.tries == 1:
                    raise StorageUnavailable("the outcome is not known")
                return number

        a = await routers.open("a", ScriptedProvider(said("x")), journal=routers.journal(Once))
        with pytest.raises(StorageUnavailable):
            await a.execute()
        assert (await outcome(await a.execute())).status is Status.COMPLETED


@pytest.mark.parametrize("written", [True, False])
async def test_a_lease_that_may_not_have_been_given_back_is_no_ground_to_trust_memory(
    mock_clock, caplog, written
):
    class Unsure(MemoryJournal):
        async def release_lease(self, session_id, number):
            if written:
                await super().release_lease(session_id, number)
            raise StorageUnavailable("the outcome is not known")

    async with open_routers() as routers:
        script = ScriptedProvider(said("2"))
        a = await routers.open("a", script, journal=routers.journal(Unsure))
        b = await routers.open("b", ScriptedProvider(said("1")))
        await hear(await a.stop())
        await wait_all_tasks_blocked()
        assert "left to expire" in caplog.text
        routers.time.missed += LEASE
        await hear(await b.execute("one"))
        await hear(await a.execute("two"))
        assert await texts(b) == ["one", "1", "two", "2"]


async def test_a_lease_that_was_overtaken_before_it_was_given_back_is_no_ground_either(mock_clock):
    class Overtaken(MemoryJournal):
        async def release_lease(self, session_id, number):
            routers.time.missed += LEASE
            await hear(await b.execute("one"))
            return await super().release_lease(session_id, number)

    async with open_routers() as routers:
        script = ScriptedProvider(said("2"))
        a = await routers.open("a", script, journal=routers.journal(Overtaken))
        b = await routers.open("b", ScriptedProvider(said("1")))
        await hear(await a.stop())
        await hear(await a.execute("two"))
        assert await texts(b) == ["one", "1", "two", "2"]


async def test_who_waits_for_a_lease_is_answered_when_the_router_leaves(mock_clock):
    async with open_routers() as routers:

        class Silent(MemoryJournal):
            asked = trio.Event()

            async def take_lease(self, session, *, router, seconds):
                self.asked.set()
                await trio.sleep_forever()

        journal = routers.journal(Silent)
        refused = []
        async with trio.open_nursery() as nursery, AsyncExitStack() as leaving:
            a = await routers.open("a", ScriptedProvider(), journal=journal, stack=leaving)

            async def tell():
                with pytest.raises(StorageUnavailable) as caught:
                    await a.execute()
                refused.append(caught.value)

            nursery.start_soon(tell)
            await journal.asked.wait()
            await leaving.aclose()
        assert len(refused) == 1


async def test_with_a_store_of_its_own_a_router_neither_takes_nor_reads_leases(mock_clock):
    class Counting(MemoryJournal):
        calls: list[str] = []

        async def record_turn(self, record):
            self.calls.append("record_turn")
            await super().record_turn(record)

        async def load(self, session, **more):
            self.calls.append("load")
            return await super().load(session, **more)

        async def take_lease(self, *_, **__):
            raise AssertionError("took a lease")

        renew_lease = release_lease = take_lease

    journal = Counting()
    held = Held(said("1"), called("edit_file", EDIT), said("2"))
    async with open_house(held, journal=journal) as house:
        reader = await house.execute()
        await held.asked.wait()
        mock_clock.jump(5 * LEASE)
        await wait_all_tasks_blocked()
        held.go.set()
        await hear(reader)
        end = await outcome(await house.execute())
        call_id = end.data["tool_requests"][0]["call_id"]
        await hear(await house.answer(result(call_id, decision="approved")))
        assert journal.calls == ["load", *["record_turn"] * 3]
        run = (await house.state()).run
        assert (run.lease, run.active) == (0, None)
