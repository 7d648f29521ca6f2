"""Turns through a session's actor: what a client hears, and what is remembered."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from smista.core.errors import (
    FallbackExhausted,
    InvalidRequest,
    NoRoute,
    ProviderUnavailable,
    RunInFlight,
    SessionNotFound,
)
from smista.core.events import (
    Status,
    TextDeltaEvent,
    ToolCallRequested,
    ToolCallStarted,
    UsageEvent,
)
from smista.core.history import Role
from smista.core.messages import Execute
from smista.core.phase import AwaitingTool, Idle
from smista.core.records import CallStatus, DiffStatus, EventType
from smista.core.stream import Finish, StreamEnd, TextDelta, Usage
from smista.ports.sessions import Call
from tests.actors.house import USER, hear, open_house, open_quick, outcome, request, result
from tests.fakes import ScriptedProvider, Stall, called, descriptor, said

EDIT = json.dumps({"path": "a.txt", "old": "Helo", "new": "Hello"})


def said_to(prompt):
    """The prompt without the ids of its messages, which each run gives anew."""
    return replace(prompt, messages=tuple((m.role, m.text) for m in prompt.messages))


def _policy(**routing):
    return {**request().policy.model_dump(mode="json"), "routing": routing}


async def test_a_prompt_is_answered_as_it_is_said_and_remembered():
    async with open_house(ScriptedProvider(said("once ", "upon"))) as house:
        heard = await hear(await house.execute("tell me"))
        assert [e.delta for e in heard if isinstance(e, TextDeltaEvent)] == ["once ", "upon"]
        assert [type(e) for e in heard].count(UsageEvent) == 1
        end = heard[-1]
        assert end.status is Status.COMPLETED
        assert end.allowed_continuations == ()
        assert end.data["message"]["content"] == "once upon"
        assert end.data["routing"]["provider"] == "openai-compat:a"
        assert end.data["usage"]["input_tokens"] == 10
        assert end.data["usage"]["actual_cost"] == "0"
        state = await house.state()
        assert [(m.role, m.text) for m in state.messages] == [
            (Role.USER, "tell me"),
            (Role.ASSISTANT, "once upon"),
        ]
        assert state.run.phase == Idle()
        assert end.data["trace_id"] == f"trace:{state.run.run_id}"


async def test_the_trace_tells_intent_route_context_messages_and_cost():
    async with open_house(ScriptedProvider(said("x"))) as house:
        await hear(await house.execute("hello"))
        kinds = [event.event_type for event in await house.trace()]
        for kind in (
            EventType.CLASSIFICATION,
            EventType.ROUTING_DECISION,
            EventType.MESSAGE,
            EventType.COST,
        ):
            assert kind in kinds
        assert {(e.provider, e.model) for e in await house.trace()} == {("openai-compat:a", "m")}


async def test_the_next_prompt_sees_what_was_said_before():
    provider = ScriptedProvider(said("one"), said("two"))
    async with open_house(provider) as house:
        await hear(await house.execute("first"))
        await hear(await house.execute("second"))
    texts = [message.text for message in provider.prompts[1].messages]
    assert texts == ["first", "one", "second"]


async def test_an_approved_edit_runs_at_the_client_and_the_model_hears_of_it():
    provider = ScriptedProvider(called("edit_file", EDIT, text="I fix it."), said("done"))
    async with open_house(provider) as house:
        heard = await hear(await house.execute("fix the typo"))
        end = heard[-1]
        assert end.status is Status.AWAITING_TOOL
        assert end.allowed_continuations == ("tool_results", "inject", "break")
        (asked,) = end.data["tool_requests"]
        assert asked["name"] == "edit_file"
        assert asked["arguments"] == json.loads(EDIT)
        assert asked["requires_approval"] == "ask"
        started = [e for e in heard if isinstance(e, ToolCallStarted)]
        requested = [e for e in heard if isinstance(e, ToolCallRequested)]
        assert started[0].call_id == requested[0].request.call_id == asked["call_id"]
        paused = await house.state()
        assert paused.diffs[asked["call_id"]].status is DiffStatus.PROPOSED
        assert isinstance(paused.run.phase, AwaitingTool)

        end = await outcome(
            await house.answer(result(asked["call_id"], "edited", decision="approved"))
        )
        assert end.status is Status.COMPLETED
        assert end.data["usage"]["input_tokens"] == 20
        state = await house.state()
        call = state.calls[asked["call_id"]]
        assert call.status is CallStatus.COMPLETED
        assert state.diffs[asked["call_id"]].status is DiffStatus.APPLIED
        assert [m.role for m in state.messages] == [
            Role.USER,
            Role.ASSISTANT,
            Role.TOOL,
            Role.ASSISTANT,
        ]
        events = await house.trace()
        assert EventType.APPROVAL in [e.event_type for e in events]
        statuses = [e.payload["status"] for e in events if e.event_type is EventType.TOOL_CALL]
        assert statuses == ["pending", "completed"]
    asked_again = provider.prompts[1].messages
    assert asked_again[-1].role is Role.TOOL
    assert asked_again[-1].text == "edited"


async def test_a_rejected_call_is_failed_and_its_change_rejected():
    provider = ScriptedProvider(called("edit_file", EDIT), said("as you like"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute("fix the typo"))
        call_id = end.data["tool_requests"][0]["call_id"]
        await hear(await house.answer(result(call_id, "", decision="rejected")))
        state = await house.state()
        assert state.calls[call_id].status is CallStatus.FAILED
        assert state.diffs[call_id].status is DiffStatus.REJECTED
    assert "rejected" in provider.prompts[1].messages[-1].text


async def test_a_denied_call_is_answered_in_the_same_turn_and_recorded():
    provider = ScriptedProvider(called("shell", '{"command": "ls"}'), said("then not"))
    policy = {
        **request().policy.model_dump(mode="json"),
        "tools": {"permissions": {"shell": "deny"}},
    }
    async with open_house(provider) as house:
        heard = await hear(await house.execute("fix it", policy=policy))
        assert heard[-1].status is Status.COMPLETED
        assert not [e for e in heard if isinstance(e, ToolCallStarted | ToolCallRequested)]
        (call,) = (await house.state()).calls.values()
        assert call.status is CallStatus.FAILED
    assert [tool.name for tool in provider.prompts[0].tools if tool.name == "shell"] == []
    assert provider.prompts[1].messages[-1].is_error


@pytest.mark.parametrize("arguments", ["{not json", '{"paht": "a.txt"}', '["a"]'])
async def test_arguments_that_make_no_sense_go_back_to_the_model(arguments):
    provider = ScriptedProvider(called("read_file", arguments), said("sorry"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute("fix it"))
        assert end.status is Status.COMPLETED
    assert provider.prompts[1].messages[-1].is_error


@pytest.mark.parametrize(
    "ids", [[], ["x"], ["CALL", "CALL"], ["CALL", "x"]], ids=["partial", "wrong", "doubled", "more"]
)
async def test_a_wrong_answer_is_refused_and_the_pause_stays(ids):
    provider = ScriptedProvider(called("edit_file", EDIT), said("done"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute("fix the typo"))
        call_id = end.data["tool_requests"][0]["call_id"]
        given = [result(call_id if i == "CALL" else i) for i in ids]
        with pytest.raises(InvalidRequest) as refused:
            await house.answer(*given)
        assert refused.value.details["expected"] == [call_id]
        end = await outcome(await house.answer(result(call_id, decision="approved")))
        assert end.status is Status.COMPLETED


async def test_a_turn_being_served_refuses_another_task_as_busy():
    stall = Stall()
    async with open_house(ScriptedProvider([TextDelta(text="a"), stall])) as house:
        reader = await house.execute()
        await stall.reached.wait()
        with pytest.raises(RunInFlight):
            await house.execute()
        await house.stop()
        assert (await outcome(reader)).status is Status.IDLE


async def test_a_new_task_abandons_a_pause_and_its_calls_end_failed():
    provider = ScriptedProvider(called("edit_file", EDIT), said("new"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute("fix the typo"))
        call_id = end.data["tool_requests"][0]["call_id"]
        assert (await outcome(await house.execute("something else"))).status is Status.COMPLETED
        assert (await house.state()).calls[call_id].status is CallStatus.FAILED


async def test_a_fault_before_output_is_retried_and_then_falls_back():
    first = ScriptedProvider(*[[ProviderUnavailable("down")]] * 3)
    second = ScriptedProvider(said("from b"), provider_id="openai-compat:b")
    policy = _policy(default={"model": "openai-compat:a/m", "fallbacks": ["openai-compat:b/m"]})
    async with open_quick(first, second) as house:
        end = await outcome(await house.execute(policy=policy))
        assert end.data["routing"] == {
            **end.data["routing"],
            "provider": "openai-compat:b",
            "fallback_used": True,
        }
    assert len(first.prompts) == 3
    assert second.prompts[0].model == "m"


async def test_when_every_candidate_failed_the_error_lists_them():
    provider = ScriptedProvider(*[[ProviderUnavailable("down")]] * 3)
    async with open_quick(provider) as house:
        end = await outcome(await house.execute())
        assert end.status is Status.ERROR
        assert isinstance(end.error, FallbackExhausted)
        assert end.error.details["attempts"][0]["model"] == "openai-compat:a/m"
        assert (await house.state()).run.phase == Idle()


async def test_a_fault_after_output_ends_the_run_and_keeps_what_was_said():
    provider = ScriptedProvider([TextDelta(text="half a "), ProviderUnavailable("gone")])
    async with open_quick(provider) as house:
        end = await outcome(await house.execute())
        assert end.error.code == "provider_unavailable"
        last = (await house.state()).messages[-1]
        assert (last.text, last.interrupted) == ("half a ", True)
    assert len(provider.prompts) == 1


async def test_without_a_route_the_error_says_so_before_anything_is_streamed():
    async with open_house(ScriptedProvider()) as house:
        heard = await hear(await house.execute(policy=_policy()))
        assert len(heard) == 1
        assert isinstance(heard[0].error, NoRoute)


async def test_another_users_session_is_not_found_whether_it_sleeps_or_not():
    async with open_house(ScriptedProvider(said("x"))) as house:
        stranger = Call(
            user_id="018bcfe5-6800-7001-8000-00000000000f",
            session_id=house.session_id,
            message=Execute(request=request()),
        )
        with pytest.raises(SessionNotFound):
            await house.directory.tell(stranger)
        await hear(await house.execute())
        with pytest.raises(SessionNotFound):
            await house.directory.tell(stranger)


async def test_preview_is_the_decision_that_execute_makes():
    provider = ScriptedProvider(said("x"))
    async with open_house(provider, models=[descriptor("openai-compat:a", "other")]) as house:
        asked = request("review this please")
        decision = await house.directory.preview(USER, house.session_id, asked, {})
        assert provider.prompts == []
        assert (await house.state()).messages == ()
        end = await outcome(await house.execute("review this please"))
        assert end.data["routing"]["model"] == decision.routing.model
        assert said_to(provider.prompts[0]) == said_to(decision.prompt)


async def test_a_call_is_priced_by_the_model_that_served_and_both_names_are_told():
    prices = {
        "input_cost_per_million_tokens": Decimal(1_000_000),
        "output_cost_per_million_tokens": Decimal(0),
    }
    big = descriptor("openai-compat:a", "vendor/big", local=False, **prices)
    usage = Usage(input_tokens=2, output_tokens=1)
    answer = [
        TextDelta(text="x"),
        usage,
        StreamEnd(finish=Finish.STOP, model="vendor/big"),
    ]
    async with open_house(ScriptedProvider(answer), models=[big]) as house:
        end = await outcome(await house.execute())
        assert end.data["usage"]["actual_cost"] == "2"
        (cost,) = [e for e in await house.trace() if e.event_type is EventType.COST]
        assert (cost.payload["model"], cost.payload["served_model"]) == ("m", "vendor/big")
