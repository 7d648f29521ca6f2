"""Anything at all, to every endpoint: never a fault of ours."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.front.harness import EXECUTE_BODY, running
from tests.front.shapes import PRIVATE, WITH_BODY, changed, leaves

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
