"""Decisions without a tool: disclosure, cost and plans, with their rejections."""

import json
from decimal import Decimal

import pytest

from smista.core.errors import InvalidRequest, NoRoute
from smista.core.events import Status
from smista.core.history import Role
from smista.core.messages import ApprovalDecision, ApprovalDecisions, ApprovalDecisionsData
from smista.core.phase import AwaitingApproval, Idle
from smista.core.records import EventType, PlanStatus
from tests.actors.house import hear, open_house, outcome, request, result
from tests.fakes import ScriptedProvider, called, descriptor, said

FILE = {
    "files": [{"path": "a.txt", "content": "x", "content_hash": "sha256:0", "required": True}],
    "instructions": [],
}
LOCAL = descriptor("openai-compat:near", "m", local=True)


def remote(*scripts):
    return ScriptedProvider(*scripts, provider_id="openai-compat:a", local=False)


def near(*scripts):
    return ScriptedProvider(*scripts, provider_id="openai-compat:near", local=True)


def policy(**changes):
    given = request().policy.model_dump(mode="json")
    return {**given, **changes}


def costly(limit: str, **facts):
    rule = {"name": "r", "model": "openai-compat:a/dear", "cost_limit": limit}
    prices = {
        "input_cost_per_million_tokens": Decimal(1000),
        "output_cost_per_million_tokens": Decimal(1000),
    }
    model = descriptor("openai-compat:a", "dear", **{**prices, **facts})
    return policy(routing={"rules": [rule]}), model


async def decide(house, end, decision: str, reason: str | None = None):
    made = ApprovalDecision(
        approval_id=end.data["approval"]["approval_id"], decision=decision, reason=reason
    )
    return await outcome(
        await house.tell(ApprovalDecisions(data=ApprovalDecisionsData(decisions=(made,))))
    )


async def test_a_prompt_without_context_asks_nothing():
    async with open_house(remote(said("x"))) as house:
        assert (await outcome(await house.execute())).status is Status.COMPLETED


async def test_files_are_disclosed_to_a_remote_model_only_once_the_user_agrees():
    provider = remote(said("x"), said("y"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute(attachments=FILE))
        assert end.status is Status.AWAITING_APPROVAL
        assert end.allowed_continuations == ("approval_decisions", "break")
        assert end.data["approval"]["kind"] == "remote_disclosure"
        assert end.data["approval"]["detail"] == {
            "provider": "openai-compat:a",
            "model": "m",
            "paths": ["a.txt"],
        }
        assert provider.prompts == []
        shown = (await house.directory.fetch(house.user, house.session_id))["metadata"]["run"]
        assert shown == end.envelope()

        assert (await decide(house, end, "approved")).status is Status.COMPLETED
        approvals = [e for e in await house.trace() if e.event_type is EventType.APPROVAL]
        assert approvals[0].payload["decision"] == "approved"

        # The whole workspace is covered now, what was said before is not.
        other = {**FILE, "files": [{**FILE["files"][0], "path": "b.txt"}]}
        end = await outcome(await house.execute("again", attachments=other))
        assert end.data["approval"]["detail"]["paths"] == ["history"]
        assert (await decide(house, end, "approved")).status is Status.COMPLETED


async def test_the_intent_that_the_user_named_holds_for_the_call_they_agreed_to():
    task = {"text": "look at this", "command": "review", "explicit_model": None}
    async with open_house(remote(said("x"))) as house:
        end = await outcome(await house.execute(attachments=FILE, input=task))
        end = await decide(house, end, "approved")
        assert end.data["classification"]["intent"] == "review"
        assert end.data["classification"]["source"] == "explicit"


async def test_a_path_outside_the_workspace_is_asked_for_each_time_anew():
    outside = {**FILE, "files": [{**FILE["files"][0], "path": "/etc/hosts"}]}
    async with open_house(remote(said("x"), said("y"))) as house:
        end = await outcome(await house.execute(attachments=FILE))
        await decide(house, end, "approved")
        end = await outcome(await house.execute("again", attachments=outside))
        assert "/etc/hosts" in end.data["approval"]["detail"]["paths"]


async def test_a_refused_disclosure_goes_to_a_local_model():
    far, close = remote(), near(said("from here"))
    routes = {
        "default": {"model": "openai-compat:a/m", "fallbacks": ["openai-compat:near/m"]},
    }
    async with open_house(far, close) as house:
        end = await outcome(await house.execute(attachments=FILE, policy=policy(routing=routes)))
        end = await decide(house, end, "rejected")
        assert end.data["routing"]["provider"] == "openai-compat:near"
        # What was written under the refusal stays away from remote models.
        assert (await house.state()).messages[-1].restricted
    assert far.prompts == []


async def test_a_refused_disclosure_without_a_local_model_has_no_route():
    async with open_house(remote()) as house:
        end = await outcome(await house.execute(attachments=FILE))
        end = await decide(house, end, "rejected")
        assert isinstance(end.error, NoRoute)
        assert (await house.state()).run.phase == Idle()


async def test_tool_output_is_disclosed_only_once_the_user_agrees():
    provider = remote(called("read_file", '{"path": "a.txt"}'), said("done"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute())
        call_id = end.data["tool_requests"][0]["call_id"]
        end = await outcome(await house.answer(result(call_id, "the text")))
        assert end.data["approval"]["detail"]["paths"] == ["tool:read_file"]
        assert len(provider.prompts) == 1
        assert (await decide(house, end, "approved")).status is Status.COMPLETED


async def test_a_local_model_is_asked_for_where_the_policy_says_so():
    asks = policy(privacy={"local": {"mode": "ask"}})
    async with open_house(ScriptedProvider(said("x"))) as house:
        end = await outcome(await house.execute(attachments=FILE, policy=asks))
        assert end.data["approval"]["detail"]["local"] is True


async def test_a_call_above_the_ceiling_needs_the_users_word():
    asks, model = costly("0.01")
    provider = ScriptedProvider(said("x"))
    async with open_house(provider, models=[model]) as house:
        end = await outcome(await house.execute(policy=asks))
        detail = end.data["approval"]["detail"]
        assert end.data["approval"]["kind"] == "cost_limit"
        assert detail["cost_limit"] == "0.01"
        assert Decimal(detail["estimated_cost"]) > Decimal("0.01")
        assert detail["spent"] == "0"
        assert (await decide(house, end, "approved")).status is Status.COMPLETED


async def test_a_refused_cost_ends_the_run_idle_and_costs_nothing():
    asks, model = costly("0.01")
    provider = ScriptedProvider()
    async with open_house(provider, models=[model]) as house:
        end = await outcome(await house.execute(policy=asks))
        assert (await decide(house, end, "rejected")).status is Status.IDLE
    assert provider.prompts == []


async def test_a_ceiling_with_a_model_of_unknown_price_asks_too():
    asks, model = costly(
        "100", input_cost_per_million_tokens=None, output_cost_per_million_tokens=None
    )
    async with open_house(remote(said("x")), models=[model]) as house:
        end = await outcome(await house.execute(policy=asks))
        assert end.data["approval"]["detail"]["estimated_cost"] is None
        assert (await decide(house, end, "approved")).status is Status.COMPLETED


PLAN = {"text": "plan it", "command": "plan"}


async def test_an_approved_plan_is_carried_out():
    edit = json.dumps({"path": "a.txt", "old": "a", "new": "b"})
    provider = ScriptedProvider(said("1. edit"), called("edit_file", edit), said("done"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute(input=PLAN))
        detail = end.data["approval"]["detail"]
        assert end.data["approval"]["kind"] == "plan"
        assert detail["content"] == "1. edit"
        assert detail["path"] == f".smista/plans/{detail['plan']}.md"
        assert detail["content_hash"].startswith("sha256:")
        assert (await house.state()).plan.status is PlanStatus.DRAFT

        end = await decide(house, end, "approved")
        assert end.status is Status.AWAITING_TOOL
        assert (await house.state()).plan.status is PlanStatus.APPROVED
    assert "edit_file" not in [tool.name for tool in provider.prompts[0].tools]
    assert "edit_file" in [tool.name for tool in provider.prompts[1].tools]
    assert provider.prompts[1].messages[-1].role is Role.USER


async def test_a_plan_refused_with_a_reason_is_made_again_with_it():
    provider = ScriptedProvider(said("plan A"), said("plan B"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute(input=PLAN))
        end = await decide(house, end, "rejected", "use fewer steps")
        assert end.data["approval"]["detail"]["content"] == "plan B"
    assert provider.prompts[1].messages[-1].text == "use fewer steps"


async def test_a_plan_refused_without_a_reason_ends_the_run():
    async with open_house(ScriptedProvider(said("plan A"))) as house:
        end = await outcome(await house.execute(input=PLAN))
        assert (await decide(house, end, "rejected")).status is Status.IDLE
        assert (await house.state()).plan.status is PlanStatus.REJECTED


async def test_in_plan_mode_a_writing_call_is_refused_to_the_model():
    edit = json.dumps({"path": "a.txt", "old": "a", "new": "b"})
    provider = ScriptedProvider(called("edit_file", edit), said("then the plan"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute(input=PLAN))
        assert end.data["approval"]["detail"]["content"] == "then the plan"
    assert provider.prompts[1].messages[-1].is_error


async def test_a_decision_about_another_approval_is_refused_and_the_pause_stays():
    async with open_house(remote(said("x"))) as house:
        end = await outcome(await house.execute(attachments=FILE))
        wrong = ApprovalDecision(approval_id="no", decision="approved")
        with pytest.raises(InvalidRequest):
            await house.tell(ApprovalDecisions(data=ApprovalDecisionsData(decisions=(wrong,))))
        assert isinstance((await house.state()).run.phase, AwaitingApproval)
        assert (await decide(house, end, "approved")).status is Status.COMPLETED


async def test_bodies_of_restricted_results_go_when_the_run_ends():
    guarded = policy(privacy={"restricted_paths": [".env"]})
    provider = ScriptedProvider(called("read_file", '{"path": ".env"}'), said("done"))
    async with open_house(provider) as house:
        end = await outcome(await house.execute(policy=guarded))
        call_id = end.data["tool_requests"][0]["call_id"]
        await hear(await house.answer(result(call_id, "KEY=marker", paths=(".env",))))
        state = await house.state()
        assert state.calls[call_id].result.text == "[restricted: .env]"
        assert "marker" not in str(state.messages)
        assert state.messages[-1].restricted
    assert "KEY=marker" in provider.prompts[1].messages[-1].text
