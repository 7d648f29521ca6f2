"""Preview and execute agree, whatever the policy: same route, same prompt, same refusal."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smista.core.decision import Decision
from smista.core.errors import SmistaError
from smista.core.events import Status
from tests.actors.house import USER, open_house, outcome, request
from tests.actors.portal import Portal
from tests.fakes import ScriptedProvider, descriptor, said

MODELS = ("openai-compat:near/m", "openai-compat:near/small", "openai-compat:a/m", "openai/gone")
PATHS = ("src/a.py", "src/auth/b.py", ".env", "/etc/hosts")
GLOBS = ("src/**", "*.py", "src/auth/**", ".env", "docs/**")
INTENTS = ("chat", "edit", "review", "plan")
PROMPTS = ("review this", "please fix it", "hello", "plan the work", "reveiw and fxi")

chains = st.lists(st.sampled_from(MODELS), min_size=1, max_size=3, unique=True)


@st.composite
def rules(draw):
    chain = draw(chains)
    return {
        "name": draw(st.text("abc", min_size=1, max_size=3)),
        "priority": draw(st.integers(0, 3)),
        "intent": draw(st.none() | st.sampled_from(INTENTS)),
        "paths": draw(st.lists(st.sampled_from(GLOBS), max_size=2)),
        "local_only": draw(st.booleans()),
        "effort": draw(st.sampled_from(["low", "medium", "high"])),
        "model": chain[0],
        "fallbacks": chain[1:],
        "cost_limit": draw(st.none() | st.just("0.001")),
    }


@st.composite
def bodies(draw):
    """A whole request, as a client could send it."""
    chain = draw(chains)
    files = draw(st.lists(st.sampled_from(PATHS), max_size=2, unique=True))
    return {
        "input": {
            "text": draw(st.sampled_from(PROMPTS)),
            "command": draw(st.none() | st.sampled_from(INTENTS)),
            "explicit_model": draw(st.none() | st.sampled_from(MODELS)),
        },
        "policy": {
            **request().policy.model_dump(mode="json"),
            "classification": {
                "rules": [
                    {"intent": "review", "keywords": ["review"]},
                    {"intent": "edit", "keywords": ["fix"]},
                    {"intent": "plan", "keywords": ["plan"]},
                ]
            },
            "routing": {
                "rules": draw(st.lists(rules(), max_size=4)),
                "default": draw(st.none() | st.just({"model": chain[0], "fallbacks": chain[1:]})),
            },
            "privacy": {
                "restricted_paths": draw(st.lists(st.sampled_from(GLOBS), max_size=1)),
                "remote": {"mode": draw(st.sampled_from(["allow", "ask", "deny"]))},
            },
        },
        "local_preferences": {
            "auto_apply": False,
            "local_only": draw(st.booleans()),
            "no_network": False,
        },
        "attachments": {
            "files": [
                {
                    "path": path,
                    "content": path,
                    "content_hash": "x",
                    "required": draw(st.booleans()),
                }
                for path in files
            ],
            "instructions": [],
        },
    }


class Twice:
    """One house for all examples, each in a session of its own."""

    def __init__(self) -> None:
        scripts = [said("x")] * 20_000
        self.near = ScriptedProvider(*scripts, provider_id="openai-compat:near", local=True)
        self.far = ScriptedProvider(*scripts, provider_id="openai-compat:a", local=False)
        small = descriptor("openai-compat:near", "small", local=True, max_context_tokens=12)
        self.portal = Portal(lambda: open_house(self.near, self.far, models=[small]))

    def both(self, body):
        return self.portal.call(self._both, body)

    async def _both(self, body):
        house = self.portal.house
        session = await house.directory.create(USER, title="t", scope=None, key_id=None)
        house.session_id = session.id
        self.near.prompts.clear()
        self.far.prompts.clear()
        try:
            told = await house.directory.preview(USER, session.id, request(**body), {})
        except SmistaError as error:
            told = error
        return told, await outcome(await house.execute(**body))

    @property
    def prompt(self):
        (prompt,) = [*self.near.prompts, *self.far.prompts]
        return replace(prompt, messages=tuple((m.role, m.text) for m in prompt.messages))


@pytest.fixture(scope="module")
def twice():
    twice = Twice()
    yield twice
    twice.portal.close()


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(body=bodies())
def test_preview_and_execute_agree_over_generated_policies(twice, body):
    told, end = twice.both(body)
    if isinstance(told, SmistaError):
        assert end.status is Status.ERROR
        assert (end.error.code, end.error.message) == (told.code, told.message)
        assert end.error.details == told.details
        return
    assert isinstance(told, Decision)
    if end.status is Status.AWAITING_APPROVAL:
        detail = end.data["approval"]["detail"]
        if end.data["approval"]["kind"] != "plan":
            assert (detail["provider"], detail["model"]) == told.descriptor.ref
            return
    else:
        assert end.status is Status.COMPLETED
        routing = end.data["routing"]
        assert (routing["provider"], routing["model"]) == told.descriptor.ref
        assert routing.get("matched_rule") == told.routing.matched_rule
        assert routing["fallback_used"] is told.routing.fallback_used
    previewed = tuple((m.role, m.text) for m in told.prompt.messages)
    assert twice.prompt == replace(told.prompt, messages=previewed)
