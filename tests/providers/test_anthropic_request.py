"""What Claude is asked: messages in turn, thinking by generation, marks, names, refusals."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from smista.core import errors
from smista.core.history import Call, Message, Role
from smista.core.intents import Effort
from smista.core.prompt import Prompt, Tool
from smista.providers.anthropic import Anthropic
from smista.providers.anthropic_models import parse_models
from smista.providers.masking import create_mask
from tests.providers.histories import histories

USER = Message(uuid="u", role=Role.USER, text="hello", run_id="r")
EFFORT = {"type": "adaptive", "display": "summarized"}


def asked(*messages: Message, **more: Any) -> dict[str, Any]:
    fields = {"model": "claude-opus-5-5", "system": "", "messages": messages or (USER,), **more}
    return json.loads(Anthropic().request(Prompt(**fields)).body)


def assistant(text: str, *calls: Call) -> Message:
    return Message(uuid="a", role=Role.ASSISTANT, text=text, run_id="r", calls=calls)


def call(call_id: str, name: str = "read", arguments: str = "{}") -> Call:
    return Call(call_id=call_id, provider_call_id="", name=name, arguments=arguments)


def tool(name: str = "read", **schema: Any) -> Tool:
    return Tool(name=name, description="D", permission="file_read", parameters=schema)


@given(histories())
def test_any_history_becomes_messages_the_api_takes(messages):
    sent = asked(*messages, tools=(tool(),))["messages"]
    roles = [message["role"] for message in sent]
    assert roles[0] == roles[-1] == "user"
    assert all(one != other for one, other in pairwise(roles))
    for before, message in pairwise([{"content": []}, *sent]):
        blocks = message["content"]
        assert blocks
        assert all(b["text"].strip() for b in blocks if b["type"] == "text")
        called = [b["id"] for b in before["content"] if b["type"] == "tool_use"]
        answered = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        # Every call has its one result, in the next message, before anything else.
        assert answered == called
        assert len(set(called)) == len(called)
        assert [b["type"] for b in blocks[: len(called)]] == ["tool_result"] * len(called)


@given(histories())
def test_equal_histories_make_equal_bytes(messages):
    prompt = Prompt(model="claude-opus-5-5", system="s", messages=messages)
    assert Anthropic().request(prompt).body == Anthropic().request(prompt).body


@pytest.mark.parametrize(
    ("model", "effort", "wanted"),
    [
        ("claude-opus-5-5", Effort.LOW, {"thinking": EFFORT, "output_config": {"effort": "low"}}),
        ("claude-fable-5", Effort.XHIGH, {"output_config": {"effort": "xhigh"}}),
        ("claude-opus-4-7", Effort.XHIGH, {"output_config": {"effort": "xhigh"}}),
        (
            "claude-opus-4-6",
            Effort.XHIGH,
            {"thinking": EFFORT, "output_config": {"effort": "high"}},
        ),
        ("claude-of-tomorrow", Effort.MEDIUM, {"output_config": {"effort": "medium"}}),
        ("claude-opus-4-5-20251101", Effort.LOW, {"output_config": {"effort": "low"}}),
        (
            "claude-haiku-4-5-20251001",
            Effort.HIGH,
            {"thinking": {"type": "enabled", "budget_tokens": 12_288}},
        ),
        (
            "claude-opus-4-20250514",
            Effort.MEDIUM,
            {"thinking": {"type": "enabled", "budget_tokens": 4096}},
        ),
    ],
)
def test_effort_reaches_each_generation_in_its_own_words(model, effort, wanted):
    body = asked(model=model, effort=effort)
    assert wanted.items() <= body.items()


@pytest.mark.parametrize(
    ("model", "effort"),
    [
        ("claude-3-5-haiku-20241022", Effort.HIGH),
        ("claude-sonnet-4-5-20250929", Effort.LOW),
        ("claude-opus-5-5", None),
    ],
)
def test_a_model_without_such_a_control_gets_none(model, effort):
    body = asked(model=model, effort=effort)
    assert "thinking" not in body
    assert "output_config" not in body


def test_a_budget_leaves_room_for_the_answer():
    body = asked(model="claude-sonnet-4-5", effort=Effort.XHIGH, max_output_tokens=4096)
    assert body["thinking"]["budget_tokens"] == 2048 < body["max_tokens"] == 4096
    assert "thinking" not in asked(
        model="claude-sonnet-4-5", effort=Effort.XHIGH, max_output_tokens=2000
    )


def test_a_budget_waits_until_the_tools_have_been_heard():
    result = Message(uuid="t", role=Role.TOOL, text="ok", run_id="r", call_id="c1")
    within = (USER, assistant("", call("c1")), result)
    assert "thinking" not in asked(*within, model="claude-sonnet-4-5", effort=Effort.HIGH)
    assert "thinking" in asked(*within, USER, model="claude-sonnet-4-5", effort=Effort.HIGH)
    assert "thinking" in asked(*within, model="claude-sonnet-5-5", effort=Effort.HIGH)


def test_the_version_of_the_api_is_named():
    prompt = Prompt(model="claude-opus-5-5", system="", messages=(USER,))
    assert Anthropic().request(prompt).headers["anthropic-version"] == "2026-10-21"


def test_the_limit_is_always_named():
    assert asked()["max_tokens"] == 32_000
    assert asked(max_output_tokens=9)["max_tokens"] == 9


def test_what_will_be_asked_again_is_marked_for_the_cache():
    body = asked(system="Be good.", tools=(tool(),))
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert json.dumps(asked(USER, assistant("a"), USER)).count("cache_control") == 0


def test_nothing_of_sampling_is_sent():
    body = asked(effort=Effort.HIGH, tools=(tool(),))
    assert not {"temperature", "top_p", "top_k"} & set(body)


def test_schemas_are_objects_without_alternatives_at_the_top():
    body = asked(tools=(tool(), tool("w", oneOf=[{"required": ["a"]}], description="W.")))
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {}}
    schema = body["tools"][1]["input_schema"]
    assert schema["type"] == "object"
    assert "oneOf" not in schema
    assert schema["description"] == 'W. Also: {"oneOf": [{"required": ["a"]}]}'
    assert "tools" not in asked()


def test_names_are_mapped_both_ways_without_collisions():
    long = "a" * 70
    tools = (tool("notes.list"), tool("notes_list"), tool(long + "x"), tool(long + "y"))
    prompt = Prompt(
        model="m",
        system="",
        messages=(USER, assistant("", call("c", "notes.list"), call("d", ""))),
        tools=tools,
    )
    request = Anthropic().request(prompt)
    body = json.loads(request.body)
    names = [offered["name"] for offered in body["tools"]]
    assert len(set(names)) == 4
    assert all(len(name) <= 64 for name in names)
    assert names[1] == "notes_list"
    assert [request.names.get(name, name) for name in names] == [t.name for t in tools]
    called = [b["name"] for b in body["messages"][1]["content"]]
    assert called[0] == names[0]
    assert called[1]


def test_the_key_has_a_header_of_its_own():
    headers = Anthropic().key_headers(SecretStr("sk-ant-1"))
    assert headers == {"x-api-key": "sk-ant-1"}


def error(kind: str, message: str, **more: Any) -> bytes:
    said = {"type": kind, "message": message, **more}
    return json.dumps({"type": "error", "error": said, "request_id": "req_1"}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (529, error("overloaded_error", "Overloaded"), errors.ProviderUnavailable),
        (429, error("rate_limit_error", "slow down"), errors.ProviderRateLimited),
        (
            401,
            error("authentication_error", "invalid x-api-key"),
            errors.InvalidProviderCredentials,
        ),
        (403, error("permission_error", "not yours"), errors.ProviderAuthentication),
        (404, error("not_found_error", "model: claude-x"), errors.ModelNotFound),
        (400, error("invalid_request_error", "bad"), errors.ProviderRejected),
        (413, b"", errors.ContextLengthExceeded),
        (500, error("api_error", "oops"), errors.ProviderUnavailable),
        (504, error("timeout_error", "late"), errors.ProviderUnavailable),
    ],
)
def test_fc_36_every_status_and_body_has_its_error(status, body, kind):
    assert type(Anthropic().failure(status, body, create_mask(None))) is kind


@pytest.mark.parametrize(
    ("message", "tokens", "limit"),
    [
        ("prompt is too long: 9001 tokens > 8192 maximum", 9001, 8192),
        ("input length and `max_tokens` exceed context limit: 8000 + 500 > 8192, ...", 8000, 8192),
    ],
)
def test_fc_40_a_context_that_is_too_long_is_told_with_its_numbers(message, tokens, limit):
    body = error("invalid_request_error", message)
    fault = Anthropic().failure(400, body, create_mask(None))
    assert isinstance(fault, errors.ContextLengthExceeded)
    assert (fault.details["tokens"], fault.details["limit"]) == (tokens, limit)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (402, error("billing_error", "pay")),
        (400, error("invalid_request_error", "Your credit balance is too low")),
        (
            *(429,),
            error(
                "rate_limit_error",
                "monthly",
                details={"error_code": "enforced_spend_limit_reached"},
            ),
        ),
    ],
)
def test_an_unpaid_bill_is_no_rate_limit(status, body):
    fault = Anthropic().failure(status, body, create_mask(None))
    assert fault.details["kind"] == "billing"
    assert not fault.retryable


def test_an_error_never_quotes_the_key():
    key = SecretStr("sk-ant-canary-0123456789")
    body = error("authentication_error", f"bad key {key.get_secret_value()}")
    assert "canary" not in str(Anthropic().failure(401, body, create_mask(key)))


LIST = {
    "data": [
        {
            "type": "model",
            "id": "claude-opus-5-5",
            "display_name": "Claude Opus 5.5",
            "created_at": "2026-09-20T00:00:00Z",
            "lifecycle": "active",
            "line": "opus",
            "max_input_tokens": 1_000_000,
            "max_tokens": 128_000,
            "capabilities": {
                "image_input": {"supported": True},
                "structured_outputs": {"supported": True},
                "thinking": {"supported": True, "types": {}},
                "effort": {"supported": True},
            },
        },
        {"id": "claude-opus-5", "created_at": "2026-07-24T00:00:00Z", "lifecycle": "active"},
        {
            "id": "claude-opus-9-preview",
            "created_at": "2026-11-01T00:00:00Z",
            "lifecycle": "deprecated",
            "line": "opus",
        },
        {"id": "claude-2", "created_at": "2023-01-01T00:00:00Z", "lifecycle": "retired"},
        {
            "id": "claude-haiku-x",
            "created_at": "2026-01-01T00:00:00Z",
            "capabilities": {
                "image_input": {"supported": False},
                "thinking": {"supported": False},
            },
        },
        {"display_name": "no id"},
        None,
    ],
    "has_more": False,
}


def test_the_list_of_models_tells_windows_and_abilities():
    models = {model.model: model for model in parse_models(LIST)}
    assert "claude-2" not in models
    opus = models["claude-opus-5-5"]
    assert (opus.max_context_tokens, opus.max_output_tokens) == (1_000_000, 128_000)
    assert opus.display_name == "Claude Opus 5.5"
    assert opus.capabilities.images
    assert opus.capabilities.reasoning
    assert opus.capabilities.tools
    haiku = models["claude-haiku-x"]
    assert not haiku.capabilities.images
    assert not haiku.capabilities.reasoning


def test_the_newest_model_comes_first():
    names = [model.model for model in parse_models(LIST)]
    assert names == ["claude-opus-9-preview", "claude-opus-5-5", "claude-opus-5", "claude-haiku-x"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(["data", "id", "capabilities", "thinking", "created_at"]), x
            )
        ),
    )
)
def test_a_list_that_makes_no_sense_is_empty_or_partial(value):
    assert isinstance(parse_models(value), tuple)
    assert isinstance(parse_models({"data": [value]}), tuple)
