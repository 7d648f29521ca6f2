"""What Gemini is asked: contents in turn, thinking by generation, signatures, names, refusals."""

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
from smista.providers.gemini import Gemini
from smista.providers.gemini_models import parse_models
from smista.providers.masking import create_mask
from tests.providers.histories import histories

USER = Message(uuid="u", role=Role.USER, text="hello", run_id="r")
CALLED = Message(
    uuid="a",
    role=Role.ASSISTANT,
    text="",
    run_id="r",
    calls=(Call(call_id="c1", provider_call_id="", name="read", arguments="{}"),),
    provider="anthropic",
)
RESULT = Message(uuid="t", role=Role.TOOL, text="ok", run_id="r", call_id="c1")
READ = Tool(name="read", description="D", permission="file_read", parameters={})


def asked(*messages: Message, **more: Any) -> dict[str, Any]:
    fields = {"model": "gemini-3.8-flash", "system": "", "messages": messages or (USER,), **more}
    return json.loads(Gemini().request(Prompt(**fields)).body)


def parts(content: dict[str, Any], kind: str) -> list[Any]:
    return [part[kind] for part in content["parts"] if kind in part]


@given(histories())
def test_any_history_becomes_contents_the_api_takes(messages):
    sent = asked(*messages, tools=(READ,))["contents"]
    assert sent[0]["role"] == sent[-1]["role"] == "user"
    for before, content in pairwise([{"role": "user", "parts": []}, *sent]):
        assert content["parts"]
        assert all(text.strip() for text in parts(content, "text"))
        assert (before["role"], content["role"]) != ("model", "model")
        calls, answers = parts(before, "functionCall"), parts(content, "functionResponse")
        assert [(c["id"], c["name"]) for c in calls] == [(a["id"], a["name"]) for a in answers]
        # Results stand alone, right behind their calls.
        assert not answers or len(answers) == len(content["parts"])
        assert all(isinstance(call["args"], dict) for call in calls)


@given(histories())
def test_equal_histories_make_equal_bytes(messages):
    prompt = Prompt(model="gemini-4-neon", system="s", messages=messages)
    assert Gemini().request(prompt).body == Gemini().request(prompt).body


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-3.8-flash", Effort.LOW, {"thinkingLevel": "LOW"}),
        ("gemini-4-neon", Effort.MEDIUM, {"thinkingLevel": "MEDIUM"}),
        ("gemini-pro-latest", Effort.XHIGH, {"thinkingLevel": "HIGH"}),
        ("gemini-4-hydrogen", Effort.XHIGH, {"thinkingLevel": "XHIGH"}),
        ("gemini-3-pro-preview", Effort.MEDIUM, {"thinkingLevel": "HIGH"}),
        ("gemini-2.5-pro", Effort.LOW, {"thinkingBudget": 1024}),
        ("gemini-2.5-flash-lite", Effort.XHIGH, {"thinkingBudget": 24_576}),
    ],
)
def test_effort_reaches_each_generation_in_its_own_words(model, effort, config):
    sent = asked(model=model, effort=effort)["generationConfig"]["thinkingConfig"]
    assert sent == {"includeThoughts": True, **config}


@pytest.mark.parametrize(
    ("model", "effort"),
    [("gemini-2.0-flash", Effort.HIGH), ("gemma-3-27b-it", Effort.HIGH), ("gemini-4-neon", None)],
)
def test_a_model_without_such_a_control_gets_none(model, effort):
    assert "generationConfig" not in asked(model=model, effort=effort)


def test_a_budget_leaves_room_for_the_answer():
    body = asked(model="gemini-2.5-pro", effort=Effort.XHIGH, max_output_tokens=4096)
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2048
    assert body["generationConfig"]["maxOutputTokens"] == 4096


@pytest.mark.parametrize(
    ("model", "signed"), [("gemini-3.8-flash", True), ("gemini-2.5-flash", False)]
)
def test_calls_are_signed_where_the_model_wants_it(model, signed):
    (part,) = asked(USER, CALLED, RESULT, model=model)["contents"][1]["parts"]
    wanted = "skip_thought_signature_validator" if signed else None
    assert part.get("thoughtSignature") == wanted


def test_a_model_that_knows_neither_system_nor_tools_is_sent_neither():
    body = asked(model="gemma-3-27b-it", system="Be good.", tools=(READ,))
    assert set(body) == {"contents"}
    assert body["contents"][0]["parts"] == [{"text": "Be good."}, {"text": "hello"}]


def test_no_tools_and_no_system_leave_no_trace():
    assert set(asked()) == {"contents"}


def test_fc_49_names_are_mapped_both_ways_without_collisions():
    names = ("notes.list", "notes_list", "9lives", "b" * 70 + "x", "b" * 70 + "y")
    tools = tuple(
        Tool(name=n, description="D", permission="file_read", parameters={}) for n in names
    )
    request = Gemini().request(Prompt(model="m", system="", messages=(USER,), tools=tools))
    (offered,) = json.loads(request.body)["tools"]
    sent = [declared["name"] for declared in offered["functionDeclarations"]]
    assert len(set(sent)) == len(names)
    assert all(len(name) <= 64 and (name[0].isalpha() or name[0] == "_") for name in sent)
    assert [request.names.get(name, name) for name in sent] == list(names)


@pytest.mark.parametrize("model", ["../../v1/files", "a?key=b", "models/x#y"])
def test_a_model_s_name_cannot_lead_elsewhere(model):
    url = Gemini().request(Prompt(model=model, system="", messages=(USER,))).url
    path, _, query = url.partition("?")
    assert query == "alt=sse"
    name = path.removeprefix("https://generativelanguage.googleapis.com/v1beta/models/")
    assert not set(name) & set("/?#")


def test_the_key_is_in_a_header_and_never_in_the_address():
    gemini = Gemini()
    assert gemini.key_headers(SecretStr("AIza1")) == {"x-goog-api-key": "AIza1"}
    prompt = Prompt(model="m", system="", messages=(USER,))
    assert "key" not in gemini.request(prompt).url
    assert "key" not in gemini.models_url


def error(code: int, message: str, status: str, *details: Any) -> Any:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
DAILY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("status", "value", "kind"),
    [
        (400, error(400, "bad", "INVALID_ARGUMENT"), errors.ProviderRejected),
        (
            400,
            error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"),
            errors.InvalidProviderCredentials,
        ),
        (
            400,
            error(400, "expired", "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"}),
            errors.InvalidProviderCredentials,
        ),
        (403, error(403, "no", "PERMISSION_DENIED"), errors.ProviderAuthentication),
        (
            404,
            error(404, "models/x is not found for API version v1beta", "NOT_FOUND"),
            errors.ModelNotFound,
        ),
        (500, error(500, "oops", "INTERNAL"), errors.ProviderUnavailable),
        (503, error(503, "The model is overloaded.", "UNAVAILABLE"), errors.ProviderUnavailable),
        (504, error(504, "late", "DEADLINE_EXCEEDED"), errors.ProviderUnavailable),
        (429, error(429, "busy", "RESOURCE_EXHAUSTED"), errors.ProviderRateLimited),
        (429, error(429, QUOTA, "RESOURCE_EXHAUSTED", RETRY), errors.ProviderRateLimited),
        (429, error(429, QUOTA, "RESOURCE_EXHAUSTED", RETRY, DAILY), errors.ProviderFailure),
        (429, error(429, QUOTA, "RESOURCE_EXHAUSTED"), errors.ProviderFailure),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_every_status_and_body_has_its_error(status, value, kind, listed):
    body = json.dumps([value] if listed else value).encode()
    assert type(Gemini().failure(status, body, create_mask(None))) is kind


def test_the_wait_that_a_body_asks_for_is_kept():
    body = json.dumps(error(429, QUOTA, "RESOURCE_EXHAUSTED", RETRY)).encode()
    assert Gemini().failure(429, body, create_mask(None)).retry_after == 34.5


def test_fc_40_a_context_that_is_too_long_is_told_with_its_numbers():
    message = "The input token count (9001) exceeds the maximum number of tokens allowed (8192)."
    body = json.dumps(error(400, message, "INVALID_ARGUMENT")).encode()
    fault = Gemini().failure(400, body, create_mask(None))
    assert isinstance(fault, errors.ContextLengthExceeded)
    assert (fault.details["tokens"], fault.details["limit"]) == (9001, 8192)


def entry(name: str, *methods: str, **more: Any) -> dict[str, Any]:
    return {"name": f"models/{name}", "supportedGenerationMethods": list(methods), **more}


LIST = {
    "models": [
        entry(
            "gemini-4-neon",
            *("generateContent", "countTokens"),
            displayName="Gemini 4 Neon",
            inputTokenLimit=1_048_576,
            outputTokenLimit=1_048_576,
            thinking=True,
        ),
        entry("gemma-3-27b-it", "generateContent", inputTokenLimit=131_072),
        entry("gemini-embedding-001", "embedContent"),
        entry("gemini-2.5-flash-image", "generateContent"),
        entry("gemini-2.5-flash-preview-tts", "generateContent"),
        entry("gemini-live-2.5-flash", "generateContent"),
        entry("imagen-4.0-generate-001", "predict"),
        entry("veo-3.0", "predictLongRunning"),
        {"name": 7, "supportedGenerationMethods": ["generateContent"]},
        {"supportedGenerationMethods": ["generateContent"]},
        None,
    ]
}


def test_the_list_of_models_holds_those_one_can_chat_with():
    neon, gemma = parse_models(LIST)
    assert (neon.model, neon.display_name) == ("gemini-4-neon", "Gemini 4 Neon")
    assert (neon.max_context_tokens, neon.max_output_tokens) == (1_048_576, 65_536)
    assert neon.capabilities.reasoning
    assert neon.capabilities.tools
    assert gemma.model == "gemma-3-27b-it"
    assert not gemma.capabilities.tools
    assert not gemma.capabilities.reasoning


KEYS = st.sampled_from(["models", "name", "supportedGenerationMethods", "thinking"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["generateContent", "models/", "models/x"]),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(VALUES)
def test_a_list_that_makes_no_sense_is_empty_or_partial(value):
    assert isinstance(parse_models(value), tuple)
    assert isinstance(parse_models({"models": [value]}), tuple)
