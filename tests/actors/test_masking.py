"""Keys in what tools are given and answer reach the model of the live run, and no storage."""

import json

from smista.core.events import Status
from smista.core.records import CallStatus, EventType
from smista.sdk.frames import tool_request
from smista.sdk.lost_calls import LOST, lost
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, House, hear, open_house, outcome, result
from tests.fakes import ScriptedProvider, TickingClock, called, said

KEY = "ghp_" + "Ab1" * 12
PASSWORD = "t0p9Qx7v" + "Lm2Kd4Rs"
FILE = f"TOKEN={KEY}\nDB_PASSWORD='{PASSWORD}'\n"
WRITE = json.dumps({"path": ".envrc", "content": FILE})


def _stored(rows) -> str:
    return "\n".join(str(row) for row in rows.values())


async def test_the_live_run_goes_on_in_clear_and_storage_holds_no_key():
    rows = {}
    provider = ScriptedProvider(called("write_file", WRITE), said("done"), said("again"))
    async with open_house(provider, journal=MemoryJournal(rows)) as house:
        paused = await outcome(await house.execute("make the file"))
        (asked,) = paused.data["tool_requests"]
        assert asked["arguments"]["content"] == FILE
        assert "masked" not in asked
        answered = result(asked["call_id"], f"wrote {KEY}", decision="approved")
        assert (await outcome(await house.answer(answered))).status is Status.COMPLETED
        told = [message.text for message in provider.prompts[1].messages]
        assert f"wrote {KEY}" in told
        assert provider.prompts[1].messages[1].calls[0].arguments == WRITE
        assert KEY not in _stored(rows)
        assert PASSWORD not in _stored(rows)
        state = await house.state()
        call = state.calls[asked["call_id"]]
        assert call.masked == ("github token", "password")
        assert json.loads(call.arguments.text)["content"].startswith("TOKEN=[masked: github token]")
        assert call.result.text == "wrote [masked: github token]"
        assert "+TOKEN=[masked: github token]" in state.diffs[call.id].body.text


async def test_the_trace_says_what_kinds_of_keys_were_masked():
    provider = ScriptedProvider(called("write_file", WRITE), said("done"))
    async with open_house(provider) as house:
        (asked,) = (await outcome(await house.execute())).data["tool_requests"]
        await hear(await house.answer(result(asked["call_id"], KEY, is_error=True)))
        events = [e.payload for e in await house.trace() if e.event_type is EventType.TOOL_CALL]
        assert [event["masked"] for event in events] == [["github token", "password"]] * 2
        assert events[1]["error"] == "[masked: github token]"


async def test_a_call_without_keys_is_stored_as_it_was_asked():
    arguments = '{"path":  "a.txt", "content": "no \\u006bey"}'
    async with open_house(ScriptedProvider(called("write_file", arguments))) as house:
        (asked,) = (await outcome(await house.execute())).data["tool_requests"]
        call = (await house.state()).calls[asked["call_id"]]
        assert (call.arguments.text, call.masked) == (arguments, ())


async def test_after_a_restart_a_call_that_lost_its_arguments_can_only_be_answered_as_failed():
    rows, clock = {}, TickingClock()
    before = ScriptedProvider(called("write_file", WRITE))
    async with open_house(before, journal=MemoryJournal(rows), clock=clock) as house:
        await hear(await house.execute("make the file"))
        session_id = house.session_id

    after = ScriptedProvider(said("I ask again"))
    async with open_house(after, journal=MemoryJournal(rows), clock=clock) as house:
        house.session_id = session_id
        fetched = await house.directory.fetch(USER, session_id)
        (asked,) = fetched["metadata"]["run"]["data"]["tool_requests"]
        assert (asked["masked"], asked["arguments"]) == (True, {})
        assert await _ends(house, (lost(tool_request(asked)),)) is Status.COMPLETED
        call = (await house.state()).calls[asked["call_id"]]
        assert (call.status, call.error.text) == (CallStatus.FAILED, LOST)
        assert [m.text for m in after.prompts[0].messages][-1] == LOST
        assert "[masked: github token]" in after.prompts[0].messages[1].calls[0].arguments


async def test_a_client_that_kept_the_arguments_may_still_answer_after_a_restart():
    rows, clock = {}, TickingClock()
    before = ScriptedProvider(called("write_file", WRITE))
    async with open_house(before, journal=MemoryJournal(rows), clock=clock) as house:
        (asked,) = (await outcome(await house.execute())).data["tool_requests"]
        session_id = house.session_id
    async with open_house(
        ScriptedProvider(said("done")), journal=MemoryJournal(rows), clock=clock
    ) as house:
        house.session_id = session_id
        answered = result(asked["call_id"], "written", decision="approved")
        assert await _ends(house, (answered,)) is Status.COMPLETED
        assert (await house.state()).calls[asked["call_id"]].status is CallStatus.COMPLETED


async def test_a_call_that_needed_no_approval_is_answered_without_a_decision():
    entry = {"call_id": "c", "name": "read_file", "arguments": {}, "requires_approval": "allow"}
    answer = lost(tool_request({**entry, "masked": True}))
    assert (answer.decision, answer.is_error) == (None, True)


async def test_the_words_of_the_user_stay_as_they_were_written():
    async with open_house(ScriptedProvider(said("ok"))) as house:
        await hear(await house.execute(f"what is {KEY} for?"))
        assert (await house.state()).messages[0].text == f"what is {KEY} for?"


async def _ends(house: House, results) -> Status:
    return (await outcome(await house.answer(*results))).status


async def test_a_large_result_is_masked_too_and_the_run_goes_on():
    large = "x = 1\n" * 40_000 + KEY
    provider = ScriptedProvider(called("read_file", '{"path": "a"}'), said("done"))
    async with open_house(provider) as house:
        (asked,) = (await outcome(await house.execute())).data["tool_requests"]
        end = await outcome(await house.answer(result(asked["call_id"], large)))
        assert end.status is Status.COMPLETED
        (call,) = (await house.state()).calls.values()
        assert call.result.text == large.replace(KEY, "[masked: github token]")
