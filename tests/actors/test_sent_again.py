"""The same message twice: served once, billed once, answered both times."""

import pytest
import trio

from smista.core.errors import InvalidRequest, Superseded
from smista.core.events import Status, TextDeltaEvent, TurnEnd
from smista.core.history import Role
from smista.core.messages import Execute
from smista.core.stream import TextDelta
from smista.ports.sessions import Call
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, hear, open_house, outcome, request, result
from tests.fakes import ScriptedProvider, Stall, called, said

EDIT = '{"path": "a.txt", "old": "a", "new": "b"}'


async def keyed(house, key: str, text: str = "tell me"):
    message = Execute(request=request(text))
    return await house.directory.tell(
        Call(user_id=USER, session_id=house.session_id, message=message, idempotency_key=key)
    )


async def test_a_continuation_sent_again_is_answered_with_what_was_committed():
    provider = ScriptedProvider(called("edit_file", EDIT), said("done"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute("fix it"))
        call_id = end.data["tool_requests"][0]["call_id"]
        first = await outcome(await house.answer(result(call_id, decision="approved")))
        again = await outcome(await house.answer(result(call_id, decision="approved")))
        assert again == first
        assert again.data["message"]["content"] == "done"
        with pytest.raises(InvalidRequest):  # another answer to a pause that is over
            await house.answer(result(call_id, "different", decision="approved"))
    assert len(provider.prompts) == 2


async def test_a_continuation_that_led_to_more_tools_tells_them_again():
    provider = ScriptedProvider(called("edit_file", EDIT), called("edit_file", EDIT))
    async with open_house(provider) as house:
        end = await outcome(await house.execute("fix it"))
        answer = result(end.data["tool_requests"][0]["call_id"], decision="approved")
        first = await outcome(await house.answer(answer))
        assert await outcome(await house.answer(answer)) == first
        assert first.status is Status.AWAITING_TOOL


async def test_the_same_continuation_at_the_same_moment_is_served_once():
    stall = Stall()
    provider = ScriptedProvider(
        called("edit_file", EDIT), [TextDelta(text="one "), TextDelta(text="two"), stall]
    )
    async with open_house(provider) as house:
        end = await outcome(await house.execute("fix it"))
        answer = result(end.data["tool_requests"][0]["call_id"], decision="approved")
        first, second = await house.answer(answer), await house.answer(answer)
        await stall.reached.wait()
        third = await house.answer(answer)
        assert third.ready() == [TextDeltaEvent("one two")]
        await house.stop()
        ends = [await outcome(reader) for reader in (first, second, third)]
        assert [end.status for end in ends] == [Status.IDLE] * 3
    assert len(provider.prompts) == 2


async def test_a_task_with_a_key_is_served_once_and_without_one_twice():
    provider = ScriptedProvider(said("one"), said("two"), said("three"))
    async with open_house(provider) as house:
        first = await outcome(await keyed(house, "k"))
        assert await outcome(await keyed(house, "k")) == first
        await hear(await house.execute())
        await hear(await house.execute())
        users = [m for m in (await house.state()).messages if m.role is Role.USER]
        assert len(users) == 3
    assert len(provider.prompts) == 3


async def test_a_key_with_another_body_is_refused():
    async with open_house(ScriptedProvider(said("one"))) as house:
        await hear(await keyed(house, "k"))
        with pytest.raises(InvalidRequest, match="Idempotency-Key"):
            await keyed(house, "k", "something else")


async def test_a_key_is_remembered_while_the_session_sleeps(autojump_clock):
    provider = ScriptedProvider(said("one"))
    async with open_house(provider, journal=MemoryJournal()) as house:
        first = await outcome(await keyed(house, "k"))
        await trio.sleep(100)
        assert house.directory.awake == 0
        assert await outcome(await keyed(house, "k")) == first


async def test_an_error_is_told_again_and_not_tried_again():
    provider = ScriptedProvider()
    async with open_house(provider) as house:
        message = Execute(
            request=request(policy={**request().policy.model_dump(mode="json"), "routing": {}})
        )
        call = Call(user_id=USER, session_id=house.session_id, message=message, idempotency_key="k")
        first = await outcome(await house.directory.tell(call))
        again = await outcome(await house.directory.tell(call))
        assert (first.error.code, first.error.message) == (again.error.code, again.error.message)


async def test_a_superseded_task_tells_its_fate_again():
    stall = Stall()
    async with open_house(ScriptedProvider([TextDelta(text="a"), stall], said("b"))) as house:
        first = await keyed(house, "k")
        await stall.reached.wait()
        await hear(await house.inject("else"))
        assert isinstance((await outcome(first)).error, Superseded)
        again: TurnEnd = await outcome(await keyed(house, "k"))
        assert again.error.code == "superseded"
