"""Whatever is sent: a client error with a stable code, no value told back, nothing broken."""

import json
from dataclasses import replace
from typing import Any

import pytest

from smista.core import errors
from smista.core.errors import SmistaError
from smista.front.replies import STATUSES, dump, error_reply, status_of
from tests.front.harness import EXECUTE_BODY, MINE, SETTINGS, UNKNOWN, running
from tests.front.shapes import (
    CANARY,
    JSON,
    OF_SESSION,
    PRIVATE,
    SESSION,
    WITH_BODY,
    body_for,
    changed,
    code,
)


async def test_every_private_endpoint_wants_a_token():
    async with running(sign_in=False) as front:
        for method, path in PRIVATE:
            answer = await front.client.request(method, path, json=body_for(path))
            assert (answer.status_code, code(answer)) == (401, "missing_credentials"), path
            answer = await front.client.request(
                method, path, json=body_for(path), headers={"Authorization": "Bearer x"}
            )
            assert (answer.status_code, code(answer)) == (401, "invalid_token"), path


async def test_a_foreign_and_an_unknown_session_are_the_same_404():
    async with running() as front:
        bodies = set()
        for owner, session_id in (("someone else", MINE), (front.sessions.owner, UNKNOWN)):
            front.sessions.owner = owner
            for method, path in OF_SESSION:
                answer = await front.client.request(
                    method, f"/api/v1/sessions/{session_id}{path}", json=body_for(path)
                )
                assert (answer.status_code, code(answer)) == (404, "session_not_found"), path
                bodies.add(answer.text)
    assert len(bodies) == 1


@pytest.mark.parametrize("bad", ["x", "1", MINE[:-1], MINE + "0", f"{{{MINE}}}", "%20", "é"])
async def test_a_session_id_that_is_no_uuid_is_400(bad: str):
    async with running() as front:
        for method, path in OF_SESSION:
            answer = await front.client.request(
                method, f"/api/v1/sessions/{bad}{path}", json=body_for(path)
            )
            assert (answer.status_code, code(answer)) == (400, "invalid_session_id"), path


async def test_a_session_id_in_capitals_is_the_same_session():
    async with running() as front:
        assert (await front.client.get(f"/api/v1/sessions/{MINE.upper()}")).status_code == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nul", b"\xff\xfe", b'{"a":NaN}', b'{"a":Infinity}', b'"\\ud800"', b"{'a':1}",
     b"[" * 100_000, b'{"a":' * 100_000, b'{"input":{"text":"a"}' + b" " * 300_000,
     b'{"n":' + b"9" * 10_000 + b"}"],
)  # fmt: skip
async def test_what_is_no_json_is_400(body: bytes):
    async with running() as front:
        for method, path in WITH_BODY:
            answer = await front.client.request(method, path, content=body, headers=JSON)
            assert (answer.status_code, code(answer)) == (400, "invalid_json"), path


@pytest.mark.parametrize("media", [None, "text/plain", "application/x-www-form-urlencoded", "json"])
async def test_a_body_that_is_not_declared_as_json_is_415(media: str | None):
    headers = {} if media is None else {"Content-Type": media}
    async with running() as front:
        for method, path in WITH_BODY:
            answer = await front.client.request(method, path, content=b"{}", headers=headers)
            assert (answer.status_code, code(answer)) == (415, "unsupported_media_type"), path
    assert front.sessions.calls == []


async def test_a_body_with_a_charset_is_json_too():
    async with running() as front:
        headers = {"Content-Type": "Application/JSON; charset=utf-8"}
        answer = await front.client.post(
            "/api/v1/sessions", content=b'{"title":"t"}', headers=headers
        )
    assert answer.status_code == 201


@pytest.mark.parametrize("body", [None, True, 1, 1.5, "text", [], [{}]])
async def test_json_that_is_no_object_is_422(body: Any):
    async with running() as front:
        for method, path in WITH_BODY:
            answer = await front.client.request(
                method, path, content=json.dumps(body), headers=JSON
            )
            assert (answer.status_code, code(answer)) == (422, "invalid_request"), path
            assert answer.json()["error"]["details"]["fields"][0]["place"] == "body"


@pytest.mark.parametrize(
    "body", [{}, {"title": None}, {"title": ""}, {"title": " \t"}, {"title": 5}, {"title": ["a"]},
             {"title": "t", "scope": 1}, {"title": "t", "key_id": ""},
             {"title": "t", "key_id": "kf_"}, {"title": "t", "key_id": "kf_a/b"},
             {"title": "t", "key_id": f"kf_{'a' * 65}"}, {"title": "t", "key_id": "kf_a\n"}],
)  # fmt: skip
async def test_a_session_without_a_title_is_422(body: dict):
    async with running() as front:
        answer = await front.client.post("/api/v1/sessions", json=body)
    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    fields = answer.json()["error"]["details"]["fields"]
    assert fields[0]["place"] in ("body.title", "body.scope", "body.key_id")


@pytest.mark.parametrize("body", [{"title": ""}, {"archived": "perhaps"}, {"title": {}}])
async def test_an_update_that_makes_no_sense_is_422(body: dict):
    async with running() as front:
        answer = await front.client.put(SESSION, json=body)
    assert (answer.status_code, code(answer)) == (422, "invalid_request")


@pytest.mark.parametrize(
    ("body", "expected", "place"),
    [
        (changed("input", to={}), "invalid_request", "body.input.text"),
        (changed("workspace", "referenced_paths", to="a"), "invalid_request",
         "body.workspace.referenced_paths"),
        (changed("local_preferences", "canary", to=True), "invalid_request",
         "body.local_preferences.*"),
        (changed("policy", "tools", "permissions", to={"canary": "maybe"}), "invalid_request",
         "body.policy.tools.permissions.*"),
        (changed("input", "command", to="dance"), "unknown_intent", "body.input.command"),
        (changed("input", "explicit_model", to="gpt"), "invalid_model_reference",
         "body.input.explicit_model"),
        (changed("input", "explicit_model", to="acme/gpt"), "unknown_provider",
         "body.input.explicit_model"),
        (changed("input", "explicit_model", to="openai-compat:openai/gpt"),
         "invalid_provider_name", "body.input.explicit_model"),
        (changed("policy", "routing", "rules",
                 to=[{"name": "n", "model": "ollama/q", "effort": "huge"}]), "unknown_effort",
         "body.policy.routing.rules.0.effort"),
        (changed("policy", "routing", "rules",
                 to=[{"name": "n", "model": "ollama/q", "cost_limit": 0.5}]), "invalid_request",
         "body.policy.routing.rules.0.cost_limit"),
    ],
)  # fmt: skip
async def test_a_wrong_member_is_named_by_its_place(body: dict, expected: str, place: str):
    async with running() as front:
        for path in ("execute", "preview"):
            answer = await front.client.post(f"{SESSION}/{path}", json=body)
            assert (answer.status_code, code(answer)) == (422, expected)
            assert answer.json()["error"]["details"]["fields"][0]["place"] == place
            assert "canary" not in answer.text


@pytest.mark.parametrize(
    "body",
    [{"type": "dance"}, {"type": 5}, {"data": {}}, {"type": "tool_results"},
     {"type": "tool_results", "data": {"results": [{"call_id": "c"}]}},
     {"type": "approval_decisions", "data": {"decisions": [{"approval_id": "a", "decision": "x"}]}},
     {"type": "sealed", "data": {"encrypted": {"a": {}}}}, {"type": "inject", "data": {}}],
)  # fmt: skip
async def test_a_continuation_that_makes_no_sense_is_422(body: dict):
    async with running() as front:
        answer = await front.client.post(f"{SESSION}/continue", json=body)
    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert front.sessions.calls == []


@pytest.mark.parametrize("query", ["limit=-1", "limit=x", "offset=1.5", "limit=", "offset=%D9%A1"])
async def test_a_page_that_is_no_number_is_422(query: str):
    async with running() as front:
        answer = await front.client.get(f"{SESSION}/traces?{query}")
    assert (answer.status_code, code(answer)) == (422, "invalid_request")


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "é"])
async def test_an_idempotency_key_is_short_printable_ascii(key: str):
    async with running() as front:
        answer = await front.client.post(
            f"{SESSION}/execute",
            json=EXECUTE_BODY,
            headers={"Idempotency-Key": key.encode("latin-1")},
        )
    assert (answer.status_code, code(answer)) == (422, "invalid_request")


async def test_a_provider_key_for_a_name_that_cannot_be_is_422():
    async with running() as front:
        for name in ("a.b", "x!y"):
            header = {f"X-Smista-Provider-{name}-Api-Key": CANARY}
            answer = await front.client.get("/api/v1/llm/models", headers=header)
            assert (answer.status_code, code(answer)) == (422, "invalid_provider_name")
            assert CANARY not in answer.text


async def test_unknown_paths_and_methods_answer_in_our_shape():
    async with running() as front:
        for path in ("/", "/api/v1", "/api/v2/sessions", "/api/v1/sessions/", f"{SESSION}/", "//"):
            answer = await front.client.get(front.url + path)
            assert (answer.status_code, code(answer)) == (404, "not_found"), path
        for method, path, allowed in (
            ("DELETE", "/status", "GET, HEAD"),
            ("GET", f"{SESSION}/execute", "POST"),
            ("GET", "/api/v1/auth/bootstrap", "POST"),
            ("OPTIONS", SESSION, None),
            ("PATCH", "/api/v1/sessions", None),
        ):
            answer = await front.client.request(method, path)
            assert (answer.status_code, code(answer)) == (405, "method_not_allowed"), path
            assert allowed is None or answer.headers["allow"] == allowed


async def test_a_declared_body_beyond_the_limit_is_413_on_every_path():
    limited = replace(SETTINGS, max_request_body_bytes=100)
    async with running(limited, sign_in=False, linger=0.05, reap_every=0.02) as front:
        for path in ("/status", "/api/v1/sessions", f"{SESSION}/continue", "/nowhere"):
            for length in ("101", "9" * 18):
                head = front.head("POST", path, f"Content-Length: {length}", "Connection: close")
                answer = await front.raw(head)
                assert b"413" in answer.split(b"\r\n")[0], path
                assert b"request_too_large" in answer


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"a":[' + b"1," * 4_000_000 + b"1]}", 413),
        (b'{"attachments":{"files":[' + b'{"path":"a"},' * 300_000 + b"{}]}}", 413),
        (b'{"attachments":{"files":[' + b'{"path":"a"},' * 20_000 + b"{}]}}", 422),
        (b'{"type":"inject","data":{"messages":[' + b"1," * 90_000 + b"1]}}", 422),
    ],
)
async def test_a_body_of_very_many_little_values_is_refused_in_short(body: bytes, status: int):
    async with running() as front:
        for path in ("execute", "continue"):
            answer = await front.client.post(f"{SESSION}/{path}", content=body, headers=JSON)
            assert answer.status_code == status
            assert len(answer.content) < 10_000


async def test_a_large_body_that_makes_sense_is_served():
    file = {"path": "a", "content": "x" * 3_000_000, "content_hash": "h", "required": True}
    async with running() as front:
        body = changed("attachments", "files", to=[file])
        answer = await front.client.post(f"{SESSION}/execute", json=body)
    assert answer.status_code == 200
    assert len(front.sessions.calls[0].message.request.attachments.files[0].content) == 3_000_000


def every_error() -> list[type[SmistaError]]:
    found, pending = [], [SmistaError]
    while pending:
        found.append(pending.pop())
        pending.extend(found[-1].__subclasses__())
    return found


def test_every_code_has_a_status_and_every_status_a_code():
    codes = {kind.code for kind in every_error() if kind.__module__ == errors.__name__}
    assert codes == set(STATUSES)


def test_storage_that_may_come_back_is_503_and_other_storage_errors_502():
    assert status_of(errors.StorageUnavailable("x")) == 503
    assert status_of(errors.StorageError("x")) == 502


@pytest.mark.parametrize("details", [{"a": object()}, {"a": {1: "\ud800"}}, {"a": float("nan")}])
def test_an_error_with_odd_details_can_still_be_told(details: dict):
    reply = error_reply(errors.NoRoute("\ud83d" * 5000, **details))
    assert json.loads(reply.body)["error"]["code"] == "no_route"
    assert len(reply.body) < 5000
    assert dump({"a": "\ud83d"}) == b'{"a":"?"}'


async def test_a_head_that_is_too_large_is_refused_in_our_shape():
    async with running(sign_in=False) as front:
        answer = await front.raw(front.head("GET", "/status", f"X-Large: {'x' * 200_000}"))
    assert answer.startswith(b"HTTP/1.1 431")
    assert b'"invalid_request"' in answer
