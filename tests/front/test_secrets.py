"""No answer, log line or repr ever shows a key."""

import json
import logging
from typing import Any

import httpx
import pytest
import trio

from smista.core import errors
from smista.core.events import failed
from smista.front.asked import Asked
from smista.front.mask import masked_text
from tests.front.harness import EXECUTE_BODY, FakeReader, running
from tests.front.shapes import (
    CANARY,
    JSON,
    PRIVATE,
    SESSION,
    body_for,
    changed,
    leaves,
)


@pytest.mark.parametrize(
    "key",
    [CANARY, "AIzaSyA0123456789abcdefgh", "Bearer abcdefghij", "0" * 32 + "-" + "a1" * 32,
     "ghp_0123456789abcdef"],
)  # fmt: skip
def test_what_looks_like_a_key_is_masked(key: str):
    assert key not in masked_text(f"it was '{key}', sadly")


@pytest.mark.parametrize("text", ["task-management-is-fun", "018f9c3e-7a2b-7c4d-8e5f-1a2b3c4d5e6f"])
def test_what_only_resembles_a_key_stays(text: str):
    assert masked_text(text) == text


async def provoke(front, canary: str, answers: list[httpx.Response]) -> None:
    """Send *canary* in every header and every field, so that every kind of error comes up."""
    secret_headers = {
        "X-Smista-Api-Key": canary,
        "X-Smista-Provider-OpenAI-Api-Key": canary,
        "X-Smista-Provider-my-vllm-Api-Key": canary,
        "Cookie": f"a={canary}",
        "Idempotency-Key": canary,
        "X-Smista-Timeout-Ms": canary,
    }
    tokens = (f"Bearer {front.token}", f"Bearer {canary}", f"Basic {canary}", canary)
    for method, path in [*PRIVATE, ("POST", "/api/v1/auth/sign-in"), ("GET", f"/{canary}")]:
        if path.endswith("sign-out"):
            continue
        for token in tokens:
            headers = {**secret_headers, "Authorization": token}
            answers.append(
                await front.client.request(method, path, json=body_for(path), headers=headers)
            )
    for leaf in leaves(EXECUTE_BODY):
        for value in (canary, [canary], {canary: canary}):
            body = changed(*leaf, to=value)
            answers.append(await front.client.post(f"{SESSION}/preview", json=body))
    tries = [
        *(("POST", f"{SESSION}/continue", dumps) for dumps in map(json.dumps, odd(canary))),
        *(("POST", "/api/v1/sessions", bad) for bad in (f'{{"{canary}', f'["{canary}",]', canary)),
        ("GET", f"/api/v1/sessions/{canary}", ""),
        ("GET", f"{SESSION}/traces?limit={canary}", ""),
        ("GET", f"/?t={canary}", ""),
        ("GET", f"/status?token={canary}", ""),
    ]
    for method, url, content in tries:
        sent = await front.client.request(method, url, content=content, headers=JSON)
        answers.append(sent)


def odd(canary: str) -> list[Any]:
    return [{"type": canary}, {"type": "inject", "data": {canary: canary}}, canary]


@pytest.mark.parametrize("fault", [None, "error", "crash"])
async def test_no_answer_and_no_log_ever_shows_a_key(fault: str | None, caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("httpcore").setLevel(logging.WARNING)
    answers: list[httpx.Response] = []
    async with running() as front:
        if fault == "error":
            front.sessions.fault = errors.InvalidProviderCredentials(
                f"the provider says {CANARY} is wrong", sent=CANARY, nested=[{CANARY: CANARY}]
            )
        elif fault == "crash":
            front.sessions.fault = RuntimeError(f"unexpected {CANARY}")
        await provoke(front, CANARY, answers)
    assert len({answer.status_code for answer in answers}) >= 5
    for answer in answers:
        assert CANARY not in answer.text, answer.request.url
        assert CANARY not in repr(dict(answer.headers))
    assert CANARY not in caplog.text
    assert (fault == "crash") == ("RuntimeError" in caplog.text)


async def test_keys_of_any_shape_are_kept_out_of_errors_and_streams():
    key = 'plain"words\\are-a-key-too'
    async with running() as front:
        error = errors.ProviderFailure(f"refused: {key}", body=key)
        headers = {"X-Smista-Provider-OpenAI-Api-Key": key}
        front.sessions.reader = FakeReader(failed(error))
        buffered = await front.client.post(f"{SESSION}/execute", json=EXECUTE_BODY, headers=headers)
        front.sessions.fault = error
        preview = await front.client.post(f"{SESSION}/preview", json=EXECUTE_BODY, headers=headers)
    for answer in (buffered, preview):
        assert answer.status_code == 502
        assert answer.json()["error"]["message"] == "refused: [redacted]"
        assert answer.json()["error"]["details"] == {"body": "[redacted]"}


async def test_a_request_and_its_call_show_no_key_in_their_repr():
    async with running() as front:
        await front.client.post(
            f"{SESSION}/execute",
            json=EXECUTE_BODY,
            headers={"X-Smista-Provider-OpenAI-Api-Key": CANARY},
        )
    assert CANARY not in repr(front.sessions.calls)
    asked = Asked(
        headers={"x-smista-api-key": CANARY}, query={"a": CANARY}, read=trio.lowlevel.checkpoint,
        template="/",
    )  # fmt: skip
    assert CANARY not in repr(asked)
