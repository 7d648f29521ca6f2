"""Whatever is sent: a client error with a stable code, no value told back, nothing broken."""

import json
import logging
from copy import deepcopy
from dataclasses import replace
from typing import Any

import httpx
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smista.core import errors
from smista.core.errors import SmistaError
from smista.core.events import failed
from smista.front.asked import Asked
from smista.front.mask import masked_text
from smista.front.replies import STATUSES, dump, error_reply, status_of
from tests.front.harness import EXECUTE_BODY, MINE, SETTINGS, UNKNOWN, FakeReader, running

SESSION = f"/api/v1/sessions/{MINE}"
WITH_BODY = [
    ("POST", "/api/v1/sessions"),
    ("PUT", SESSION),
    ("POST", f"{SESSION}/execute"),
    ("POST", f"{SESSION}/continue"),
    ("POST", f"{SESSION}/preview"),
]
OF_SESSION = [
    ("GET", ""),
    ("PUT", ""),
    ("DELETE", ""),
    ("POST", "/execute"),
    ("POST", "/continue"),
    ("POST", "/preview"),
    ("GET", "/traces"),
    ("GET", "/usage"),
]
PRIVATE = [
    *((method, SESSION + path) for method, path in OF_SESSION),
    ("POST", "/api/v1/auth/sign-out"),
    ("GET", "/api/v1/auth/me"),
    ("GET", "/api/v1/sessions"),
    ("POST", "/api/v1/sessions"),
    ("GET", "/api/v1/llm/providers"),
    ("GET", "/api/v1/llm/models"),
]
JSON = {"Content-Type": "application/json"}
CANARY = "sk-canary-0123456789abcdef"


def code(answer: httpx.Response) -> str:
    """Return the code of an error answer of the documented shape."""
    error = answer.json()["error"]
    assert set(error) <= {"code", "message", "details"}
    assert isinstance(error["message"], str)
    return error["code"]


def body_for(path: str) -> Any:
    if path.endswith("continue"):
        return {"type": "break"}
    return EXECUTE_BODY if path.endswith(("execute", "preview")) else {"title": "t"}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Return a valid execute body with one member replaced."""
    body = deepcopy(EXECUTE_BODY)
    place: Any = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return body


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
             {"title": "t", "scope": 1}, {"title": "t", "key_id": ""}],
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


def leaves(value: Any, path: tuple = ()) -> list[tuple]:
    """Return the path of every member of *value* that is not itself a container."""
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    return [path]


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


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(["break", "tool_results", "chat", "ollama/q", "ask"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "data", "input", "text", "policy", "title", "results", "x"]),
        inner,
        max_size=4,
    ),
    max_leaves=8,
)  # fmt: skip
PLACES = [*leaves(EXECUTE_BODY), ("policy", "routing"), ("attachments",), ("policy",)]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(bodies=st.lists(JSON_VALUES, min_size=4, max_size=4), place=st.sampled_from(PLACES))
async def test_no_json_at_all_can_break_an_endpoint(bodies: list, place: tuple):
    async with running() as front:
        for method, path in WITH_BODY:
            for body in bodies:
                answer = await front.client.request(method, path, json=body)
                assert answer.status_code < 500, (path, body)
                mutated = changed(*place, to=body)
                answer = await front.client.request(method, path, json=mutated)
                assert answer.status_code < 500, (path, mutated)


TOKEN_TEXT = st.binary(max_size=40).map(
    lambda raw: bytes(byte for byte in raw if byte == 9 or 32 <= byte != 127).strip()
)
ODD_NAMES = st.sampled_from(
    [b"Accept", b"Idempotency-Key", b"X-Smista-Timeout-Ms", b"X-Smista-Api-Key", b"Cookie",
     b"X-Smista-Provider-OpenAI-Api-Key", b"X-Smista-Provider--Api-Key", b"Content-Type",
     b"X-Forwarded-For", b"Authorization", b"Expect", b"Accept-Encoding", b"Range"]
)  # fmt: skip
ODD_PATHS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)


@settings(max_examples=15, deadline=None)
@given(
    lines=st.lists(st.tuples(ODD_NAMES, TOKEN_TEXT), max_size=4),
    target=ODD_PATHS,
    route=st.sampled_from(PRIVATE),
)
async def test_no_head_at_all_can_break_an_endpoint(lines: list, target: str, route: tuple):
    method, path = route
    odd_lines = b"".join(b"%b: %b\r\n" % line for line in lines)
    async with running() as front:
        for asked in (path, f"{path}?{target}", f"/{target}", f"/api/v1/sessions/{target}"):
            body = b"{}" if method in ("POST", "PUT") else b""
            head = front.head(
                method,
                asked,
                f"Authorization: Bearer {front.token}",
                f"Content-Length: {len(body)}",
                "Connection: close",
            )
            answer = await front.raw(head.removesuffix(b"\r\n") + odd_lines + b"\r\n" + body)
            assert answer.startswith(b"HTTP/1.1 "), (asked, odd_lines)
            assert int(answer.split(b" ", 2)[1]) < 500, (asked, odd_lines)


async def test_a_head_that_is_too_large_is_refused_in_our_shape():
    async with running(sign_in=False) as front:
        answer = await front.raw(front.head("GET", "/status", f"X-Large: {'x' * 200_000}"))
    assert answer.startswith(b"HTTP/1.1 431")
    assert b'"invalid_request"' in answer
