"""Strangers stay out: browsers of other sites, keys in the query, floods."""

from dataclasses import replace

import pytest
import trio
from pydantic import SecretStr

from smista.core.budget import Rate
from smista.core.challenge import CHALLENGE, proof
from smista.front.guard import browser_refusal, client_address, query_refusal
from tests.front.harness import DONE, MINE, SETTINGS, FakeReader, running

ORIGIN = "https://app.example"
CORS = replace(SETTINGS, cors_origins=(ORIGIN,))
CONTINUE = f"/api/v1/sessions/{MINE}/continue"


def request(host: str | None, *lines: str, method="POST", path="/api/v1/auth/bootstrap") -> bytes:
    head = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), *lines]
    return "\r\n".join((*head, "Content-Length: 0", "Connection: close", "", "")).encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def test_only_the_right_host_and_port_are_answered():
    async with running(sign_in=False) as front:
        port = front.port
        right = [f"127.0.0.1:{port}", f"localhost:{port}", f"LocalHost:{port}"]
        wrong = [
            None,
            "",
            "127.0.0.1",
            "localhost",
            f"127.0.0.1:{port + 1}",
            f"127.0.0.2:{port}",
            f"evil.example:{port}",
            f"[::1]:{port}",
            f"localhost.evil.example:{port}",
            f"localhost.:{port}",
            f"user@127.0.0.1:{port}",
            f"127.0.0.1:{port}/",
            f"2130706433:{port}",
            f"0x7f000001:{port}",
            f"127.0.0.1:{port} evil.example",
            f"127.0.0.1:{port},evil.example",
        ]
        for host in right:
            assert status(await front.raw(request(host))) == 201, host
        made = len(front.journal.users)
        for host in wrong:
            answer = await front.raw(request(host))
            assert status(answer) == 403, host
            assert b'"forbidden"' in answer, host
        doubled = request(f"127.0.0.1:{port}", f"Host: 127.0.0.1:{port}")
        assert status(await front.raw(doubled)) == 403
        assert len(front.journal.users) == made


async def test_an_ipv6_router_answers_to_its_address_in_any_spelling():
    async with running(replace(SETTINGS, host="::1"), sign_in=False) as front:
        port = front.port

        async def ask(host: str) -> int:
            async with await trio.open_tcp_stream("::1", port) as stream:
                await stream.send_all(request(host))
                return status(b"".join([chunk async for chunk in stream]))

        for host in (f"[::1]:{port}", f"[0:0:0:0:0:0:0:1]:{port}", f"localhost:{port}"):
            assert await ask(host) == 201, host
        for host in ("[::1]", f"::1:{port}", f"[::2]:{port}", f"127.0.0.1:{port}", f"[::1:{port}"):
            assert await ask(host) == 403, host


@pytest.mark.parametrize("path", ["/status", "/api/v1/auth/bootstrap", "/nowhere", CONTINUE])
@pytest.mark.parametrize(
    "lines",
    [
        ("Sec-Fetch-Site: cross-site",),
        ("Sec-Fetch-Site: same-site",),
        ("Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"),
        ("Origin: https://evil.example",),
        ("Origin: null",),
        ("Origin: ",),
        (f"Origin: {ORIGIN}",),
        ("Origin: http://127.0.0.1",),
        ("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQ"),
        (
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ),
    ],
)
async def test_pages_of_other_sites_are_refused_on_every_path(path: str, lines: tuple[str, ...]):
    async with running(sign_in=False) as front:
        for method in ("POST", "GET", "OPTIONS"):
            asked = request(f"127.0.0.1:{front.port}", *lines, method=method, path=path)
            answer = await front.raw(asked)
            assert status(answer) == 403, (method, answer)
    assert front.journal.users == {}


async def test_a_stranger_is_refused_before_its_body_came():
    async with running(sign_in=False) as front:
        head = front.head("POST", "/api/v1/sessions", "Origin: null", "Content-Length: 100000")
        async with front.open_wire(head) as wire:
            assert b"403" in await wire.until(b"forbidden")


async def test_http2_with_prior_knowledge_is_no_way_in():
    async with running(sign_in=False) as front:
        answer = await front.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
    assert status(answer) in (400, 403)


@pytest.mark.parametrize("site", ["none", "same-origin"])
async def test_the_users_own_address_bar_may_look(site: str):
    async with running(sign_in=False) as front:
        answer = await front.client.get("/status", headers={"Sec-Fetch-Site": site})
    assert answer.status_code == 200


async def test_an_allowed_origin_is_answered_and_may_read_the_answer():
    async with running(CORS, sign_in=False) as front:
        headers = {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}
        answer = await front.client.get("/status", headers=headers)
        refused = await front.client.get("/api/v1/auth/me", headers=headers)
        preflight = await front.client.options(
            CONTINUE,
            headers={
                **headers,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,x-smista-provider-a-api-key",
            },
        )
        stranger = await front.client.options(
            CONTINUE,
            headers={"Origin": "https://other.example", "Access-Control-Request-Method": "POST"},
        )
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "access-control-allow-credentials" not in answer.headers
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == ORIGIN
    assert preflight.status_code == 204
    assert "x-smista-provider-a-api-key" in preflight.headers["access-control-allow-headers"]
    assert stranger.status_code == 403
    assert "access-control-allow-origin" not in stranger.headers


@pytest.mark.parametrize("origin", ["null", ORIGIN + ".evil.example", "http://app.example", "*"])
def test_an_origin_that_only_looks_allowed_is_not(origin: str):
    headers = [(b"host", b"127.0.0.1:1"), (b"origin", origin.encode())]
    refusal = browser_refusal(
        headers, server=("127.0.0.1", 1), host="127.0.0.1", names=(), origins=(ORIGIN,)
    )
    assert refusal is not None


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        ("smista.example", False),
        ("SMISTA.example:7331", False),
        ("alias.example:8443", False),
        ("router.lan:7331", False),
        ("10.0.0.1:7331", False),
        ("router.lan", True),
        ("alias.example", True),
        ("localhost:7331", True),
        ("10.0.0.1", True),
    ],
)
def test_a_router_answers_to_its_own_name_and_to_those_of_its_proxy(host: str, refused: bool):
    refusal = browser_refusal(
        [(b"host", host.encode())],
        server=("::ffff:10.0.0.1", 7331),
        host="router.lan",
        names=("smista.example", "alias.example:8443"),
        origins=(),
    )
    assert (refusal is not None) == refused


@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "X-Smista-Api-Key", "token", "access_token", "key", "KEY", "auth",
     "Authorization", "password", "client-secret", "bearer", "%61pi%5Fkey", "sessionToken",
     "credentials", "openai.key", "x-smista-provider-openai-api-key"],
)  # fmt: skip
async def test_credentials_in_the_query_are_refused_on_every_path(name: str):
    async with running(sign_in=False) as front:
        for path in ("/status", "/api/v1/sessions", "/nowhere"):
            answer = await front.client.get(f"{path}?scope=a&{name}=canary-canary")
            assert answer.status_code == 400
            assert answer.json()["error"]["code"] == "credentials_in_query"
            assert "canary" not in answer.text


@pytest.mark.parametrize("query", [b"scope=token", b"title=key", b"limit=1&offset=2", b"a&&b=%zz"])
def test_harmless_parameters_pass(query: bytes):
    assert query_refusal(query) is None


def test_a_query_of_too_many_parameters_is_refused_unread():
    assert query_refusal(b"&".join([b"a=1"] * 1000)) is not None


async def test_an_address_that_asks_too_much_has_to_wait():
    rate = replace(SETTINGS, rate=Rate(burst=3, period=30.0))
    async with running(rate, sign_in=False) as front:
        answers = [await front.client.get("/api/v1/auth/me") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429]
    assert answers[-1].json()["error"]["code"] == "rate_limited"
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 30


async def test_break_and_inject_come_through_whatever_the_rate():
    rate = replace(SETTINGS, rate=Rate(burst=4, period=3000.0))
    inject = {"type": "inject", "data": {"messages": [{"text": "stop"}]}}
    async with running(rate) as front:
        results = {"type": "tool_results", "data": {"results": []}}
        assert (await front.client.post(CONTINUE, json=results)).status_code == 200
        assert (await front.client.post(CONTINUE, json={"type": "what"})).status_code == 422
        for message in (inject, {"type": "break"}) * 5:
            front.sessions.reader = FakeReader(DONE)
            assert (await front.client.post(CONTINUE, json=message)).status_code == 200
        assert (await front.client.post(CONTINUE, json=results)).status_code == 429
        malformed = await front.client.post(CONTINUE, json={"type": "inject"})
        stranger = await front.client.post(
            CONTINUE, json={"type": "break"}, headers={"Authorization": "Bearer nobody"}
        )
    assert malformed.status_code == stranger.status_code == 429


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], "10.0.0.9"),
        ([(b"x-forwarded-for", b"1.1.1.1, 2.2.2.2")], "2.2.2.2"),
        ([(b"x-real-ip", b"3.3.3.3")], "3.3.3.3"),
        ([(b"forwarded", b'for=4.4.4.4, for="[2001:db8::1]:44"')], "2001:db8::1"),
        ([(b"x-forwarded-for", b"unknown")], "10.0.0.9"),
    ],
)
def test_behind_a_trusted_proxy_its_word_counts(headers: list, expected: str):
    assert str(client_address(headers, "10.0.0.9", trust_proxy_headers=True)) == expected
    assert str(client_address(headers, "10.0.0.9", trust_proxy_headers=False)) == "10.0.0.9"


@pytest.mark.parametrize(
    "line",
    [b"GET ?a=b HTTP/1.1", b"GET http://x/status HTTP/1.1", b"OPTIONS * HTTP/1.1",
     b"CONNECT a:1 HTTP/1.1", b"GET //status HTTP/1.1", b"GET /%00%ff HTTP/1.1",
     b"GET /api/v1/sessions/%2e%2e/usage HTTP/1.1", b"get /status HTTP/1.1",
     b"FOO /status HTTP/1.1", b"GET /status HTTP/1.0", b"\x00\x01\x02", b"GET  HTTP/1.1"],
)  # fmt: skip
async def test_odd_request_lines_get_a_client_error(line: bytes):
    async with running(sign_in=False) as front:
        host = f"Host: 127.0.0.1:{front.port}".encode()
        answer = await front.raw(b"\r\n".join((line, host, b"Connection: close", b"", b"")))
        assert 200 <= status(answer) < 500
        assert (await front.client.get("/status")).status_code == 200


NONCE = "n0nce-of-a-client-that-asks"
KNOWN = replace(SETTINGS, secret=SecretStr("the user's own"))


async def test_whoever_asks_is_told_whose_router_it_is():
    async with running(settings=KNOWN, sign_in=False) as front:
        answer = await front.client.get("/status", headers={CHALLENGE: NONCE})
        expected = proof("the user's own", NONCE, address="127.0.0.1", port=front.port)
        assert answer.json() == {"status": "ok", "version": "1.2.3", "proof": expected}


@pytest.mark.parametrize("nonce", [None, "", "short", "with space in it 123", "x" * 129, "é" * 20])
async def test_what_is_no_challenge_is_answered_without_a_proof(nonce):
    lines = [] if nonce is None else [f"X-Smista-Challenge: {nonce}"]
    async with running(settings=KNOWN, sign_in=False) as front:
        asked = request(f"127.0.0.1:{front.port}", *lines, method="GET", path="/status")
        assert b"proof" not in await front.raw(asked)


async def test_a_router_without_a_secret_proves_nothing():
    async with running(sign_in=False) as front:
        answer = await front.client.get("/status", headers={CHALLENGE: NONCE})
        assert answer.json() == {"status": "ok", "version": "1.2.3"}


@pytest.mark.parametrize(
    "change", [{"nonce": "another-nonce-of-it"}, {"address": "127.0.0.2"}, {"port": 2}]
)
def test_a_proof_is_for_one_nonce_and_one_socket(change):
    asked = {"nonce": NONCE, "address": "127.0.0.1", "port": 1}
    assert proof("s", **asked) != proof("s", **(asked | change))
    assert proof("s", **asked) != proof("t", **asked)


def test_one_socket_has_one_proof_however_its_address_is_written():
    for one, other in (
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::1", "0:0::1"),
        ("fe80::1%2", "fe80::1"),
    ):
        assert proof("s", NONCE, address=one, port=1) == proof("s", NONCE, address=other, port=1)
