"""What a fallback is asked, what failed attempts cost, and whom locality leaves out."""

from decimal import Decimal

from smista.core.errors import FallbackExhausted, NoRoute, ProviderUnavailable
from smista.core.events import Status
from smista.core.intents import Effort
from smista.core.records import EventType
from smista.core.stream import Finish, StreamEnd, TextDelta, Usage
from tests.actors.house import open_quick, outcome
from tests.actors.test_approvals import near, policy, remote
from tests.fakes import ALL, ScriptedProvider, descriptor, said

ALPHA, BETA = "openai-compat:alpha", "openai-compat:beta"
DOWN = [ProviderUnavailable("down")]
THINKING = ALL.model_copy(update={"reasoning": True})
CHAIN = {"model": f"{ALPHA}/model-x", "fallbacks": [f"{BETA}/model-y"]}
LOCAL_ONLY = {"auto_apply": False, "local_only": True, "no_network": False}


async def test_fc_50_a_fallback_is_asked_by_its_own_name_and_with_parameters_that_fit_it():
    first = ScriptedProvider(*[DOWN] * 3, provider_id=ALPHA)
    second = ScriptedProvider(said("from beta"), provider_id=BETA)
    models = [
        descriptor(ALPHA, "model-x", local=True, max_output_tokens=8000, capabilities=THINKING),
        descriptor(BETA, "model-y", local=True, max_output_tokens=500),
    ]
    async with open_quick(first, second, models=models) as house:
        end = await outcome(await house.execute(policy=policy(routing={"default": CHAIN})))
        routed = [e for e in await house.trace() if e.event_type is EventType.ROUTING_DECISION]
    assert end.data["routing"]["model"] == "model-y"
    (asked, *_), (refitted,) = first.prompts, second.prompts
    assert (asked.model, asked.max_output_tokens, asked.effort) == ("model-x", 8000, Effort.MEDIUM)
    assert (refitted.model, refitted.max_output_tokens, refitted.effort) == ("model-y", 500, None)
    assert "parameters" not in routed[0].payload
    assert routed[-1].payload["model"] == "model-y"
    assert routed[-1].payload["parameters"] == {"max_output_tokens": 500}


async def test_a_fallback_serves_the_intent_that_the_user_named():
    first = ScriptedProvider(*[DOWN] * 3, provider_id=ALPHA)
    second = ScriptedProvider(said("from beta"), provider_id=BETA)
    models = [descriptor(ALPHA, "model-x", local=True), descriptor(BETA, "model-y", local=True)]
    task = {"text": "look at this", "command": "review", "explicit_model": None}
    async with open_quick(first, second, models=models) as house:
        chain = policy(routing={"default": CHAIN})
        end = await outcome(await house.execute(input=task, policy=chain))
    assert end.data["routing"]["model"] == "model-y"
    assert end.data["classification"]["intent"] == "review"


async def test_fc_51_locality_fails_rather_than_falls_back_to_a_cloud_and_the_trace_says_why():
    close, far = near(*[DOWN] * 3), remote()
    chain = {"model": "openai-compat:near/m", "fallbacks": ["openai-compat:a/m"]}
    given = {
        "policy": policy(routing={"default": chain}),
        "local_preferences": LOCAL_ONLY,
    }
    async with open_quick(close, far) as house:
        house.providers.fresh = False
        end = await outcome(await house.execute(**given))
        routed = [e for e in await house.trace() if e.event_type is EventType.ROUTING_DECISION]
        assert house.providers.asked == [True] * len(house.providers.asked)
    assert end.status is Status.ERROR
    assert isinstance(end.error, NoRoute | FallbackExhausted)
    assert far.prompts == []
    assert "openai-compat:a/m" in routed[-1].payload["reason"]
    assert "local_only" in routed[-1].payload["reason"]


async def test_fc_55_every_attempt_is_billed_and_traced_by_what_served():
    alias = "alias-fast"
    dear = {
        "input_cost_per_million_tokens": Decimal(1000),
        "output_cost_per_million_tokens": Decimal(0),
    }
    failed = [Usage(input_tokens=4000, output_tokens=0), ProviderUnavailable("gone")]
    answer = [
        TextDelta(text="x"),
        Usage(input_tokens=2000, output_tokens=1),
        StreamEnd(finish=Finish.STOP, model="vendor/big-2026"),
    ]
    first = ScriptedProvider(failed, *[DOWN] * 2, provider_id=ALPHA)
    second = ScriptedProvider(answer, provider_id=BETA)
    models = [
        descriptor(ALPHA, "model-x", local=True, **dear),
        descriptor(BETA, alias, local=True),
        descriptor(BETA, "vendor/big-2026", local=True, **dear),
    ]
    chain = {"model": f"{ALPHA}/model-x", "fallbacks": [f"{BETA}/{alias}"]}
    async with open_quick(first, second, models=models) as house:
        end = await outcome(await house.execute(policy=policy(routing={"default": chain})))
        costs = [e.payload for e in await house.trace() if e.event_type is EventType.COST]
    assert [(c["model"], c.get("served_model"), c["input_tokens"]) for c in costs] == [
        ("model-x", None, 4000),
        (alias, "vendor/big-2026", 2000),
    ]
    assert end.data["usage"]["input_tokens"] == 6000
    assert end.data["usage"]["actual_cost"] == "6"
