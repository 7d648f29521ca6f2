"""Statuses and bodies → errors of ours."""

import json
from typing import Any

import pytest

from smista.core import errors
from smista.providers.compatible import Compatible
from smista.providers.masking import create_mask

URL = "http://127.0.0.1:1/v1"


def failure(status: int, body: Any = b"") -> errors.ProviderError:
    dialect = Compatible(provider="openai-compat:t", base_url=URL, models={})
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return dialect.failure(status, raw, create_mask(None))


def error(message: str = "x", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


OVERFLOWS = [
    (400, error("anything", code="context_length_exceeded"), None, None),
    (
        400,
        error(
            "This model's maximum context length is 8192 tokens. However, you requested 0 output"
            " tokens and your prompt contains at least 8193 input tokens"
        ),
        8193,
        8192,
    ),
    (
        400,
        error("Input length (9001) exceeds model's maximum context length (8192)."),
        9001,
        8192,
    ),
    (
        400,
        {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9001, "n_ctx": 8192}},
        9001,
        8192,
    ),
    (
        500,
        {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9001, "n_ctx": 8192}},
        9001,
        8192,
    ),
    (500, error("Context size has been exceeded.", code=500, type="server_error"), None, None),
    (400, error("prompt is too long: 9001 tokens > 8192 maximum"), 9001, 8192),
    (
        400,
        error("input length and `max_tokens` exceed context limit: 8000 + 500 > 8192, lower it"),
        8000,
        8192,
    ),
    (413, b"", None, None),
    (
        400,
        error(
            "The input token count (9001) exceeds the maximum number of tokens allowed (8192).",
            status="INVALID_ARGUMENT",
        ),
        9001,
        8192,
    ),
]


@pytest.mark.parametrize(("status", "body", "tokens", "limit"), OVERFLOWS)
def test_fc_40_every_face_of_a_context_overflow(status, body, tokens, limit):
    found = failure(status, body)
    assert isinstance(found, errors.ContextLengthExceeded)
    assert not found.retryable
    assert found.details["kind"] == "context_overflow"
    assert (found.details.get("tokens"), found.details.get("limit")) == (tokens, limit)


@pytest.mark.parametrize(
    ("status", "body", "kind_of_error", "detail"),
    [
        (400, error("bad temperature"), errors.ProviderRejected, None),
        (400, error("m does not support tools"), errors.ProviderUnsupportedCapability, None),
        (401, error("no"), errors.InvalidProviderCredentials, None),
        (402, error("pay"), errors.ProviderFailure, "billing"),
        (403, error("no"), errors.ProviderAuthentication, None),
        (404, error("The model `m` does not exist"), errors.ModelNotFound, None),
        (404, error("x", code="model_not_found"), errors.ModelNotFound, None),
        (400, error("Invalid model name passed in model=m."), errors.ModelNotFound, None),
        (404, b"404 page not found", errors.ProviderFailure, "not_an_api"),
        (404, b"<html>nginx</html>", errors.ProviderFailure, "not_an_api"),
        (405, b"", errors.ProviderFailure, "not_an_api"),
        (408, b"", errors.ProviderTimeout, None),
        (418, b"", errors.ProviderFailure, "upstream_error"),
        (429, error("slow down"), errors.ProviderRateLimited, None),
        (429, error("x", code="insufficient_quota"), errors.ProviderFailure, "billing"),
        (429, error("You exceeded your current quota"), errors.ProviderFailure, "billing"),
        (429, error("quota per minute used up"), errors.ProviderRateLimited, None),
        (500, b"", errors.ProviderUnavailable, None),
        (502, b"<html>Bad Gateway</html>", errors.ProviderUnavailable, "bad_gateway"),
        (503, error("loading model"), errors.ProviderUnavailable, None),
        (504, b"", errors.ProviderUnavailable, "gateway_timeout"),
        (
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            errors.ProviderUnavailable,
            "overloaded",
        ),
    ],
)
def test_each_status_has_its_error(status, body, kind_of_error, detail):
    found = failure(status, body)
    assert type(found) is kind_of_error
    assert found.details.get("kind") == detail
    assert found.details["status"] == status
    assert "openai-compat:t" in found.message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_says_what_to_do(status):
    found = failure(status, b"<a href='http://evil.test'>moved</a>")
    assert found.details["kind"] == "redirect"
    assert "base_url" in found.message
    assert "evil" not in found.message


def test_the_provider_s_own_message_is_kept_and_cut():
    found = failure(400, error("y" * 2000))
    assert "y" * 400 in found.message
    assert len(found.message) < 700


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"3",
        b'"text"',
        b"{",
        b'{"error":[]}',
        b"\xff\xfe",
        b'{"error":{"code":[1],"message":{}}}',
    ],
)
def test_an_error_body_of_any_shape_gives_a_typed_error(body):
    for status in (400, 404, 413, 429, 500):
        assert isinstance(failure(status, body), errors.ProviderError)
