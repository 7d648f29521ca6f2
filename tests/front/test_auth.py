"""Keys and tokens: formats, hashes, what is remembered and for how long."""

import re
from dataclasses import replace

import pytest
import trio

from smista.core.errors import (
    Forbidden,
    InvalidApiKey,
    InvalidToken,
    MissingCredentials,
    StorageError,
    StorageUnavailable,
    TokenExpired,
    TokenRevoked,
)
from smista.front import auth as auth_module
from smista.front.auth import Auth
from tests.front.harness import NOON, SETTINGS, Clock, FakeJournal, running


@pytest.fixture
def journal() -> FakeJournal:
    return FakeJournal()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def auth(journal, clock) -> Auth:
    return Auth(journal, SETTINGS, now=clock)


class SlowHash:
    """Stands in for the token hash: counts, and answers when it is let go."""

    def __init__(self, monkeypatch) -> None:
        self.runs = 0
        self.started = trio.Event()
        self.release = trio.Event()
        monkeypatch.setattr(auth_module, "token_matches", self.check)

    def check(self, token: str, stored: str) -> bool:
        self.runs += 1
        trio.from_thread.run_sync(self.started.set)
        trio.from_thread.run(self.release.wait)
        return True


async def signed_in(auth: Auth) -> str:
    return (await auth.sign_in((await auth.bootstrap()).api_key)).token


async def test_what_is_stored_are_hashes_of_the_decided_kind(auth, journal):
    made = await auth.bootstrap()
    issued = await auth.sign_in(made.api_key)
    (user,), (token,) = journal.users.values(), journal.tokens.values()
    bare = user.id.replace("-", "")
    assert re.fullmatch(rf"sk-smista-api01-{bare}-[A-Za-z0-9]{{96}}", made.api_key)
    assert re.fullmatch(r"[0-9a-f]{32}-[a-z0-9]{64}", issued.token)
    assert issued.token.startswith(token.id.replace("-", ""))
    assert user.id[14] == token.id[14] == "7"
    assert user.api_key_hash.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert token.token_hash.startswith("$6$")
    assert user.created_at == token.created_at == NOON
    assert made.api_key not in repr((made, user))
    assert issued.token not in repr((issued, token))


async def test_every_credential_is_another_one(auth):
    first, second = await auth.bootstrap(), await auth.bootstrap()
    assert first.user_id != second.user_id
    assert first.api_key[-96:] != second.api_key[-96:]
    assert await signed_in(auth) != await signed_in(auth)


async def test_wrong_unknown_and_malformed_keys_are_told_apart_by_nothing(auth):
    key = (await auth.bootstrap()).api_key
    unknown = key[:16] + "0" * 32 + key[48:]
    last = "a" if key[-1] != "a" else "b"
    messages = set()
    for bad in (key[:-1] + last, unknown, "x", key + "a", key.replace("api01", "api02"), " "):
        with pytest.raises(InvalidApiKey) as caught:
            await auth.sign_in(bad)
        messages.add(caught.value.message)
    assert len(messages) == 1


async def test_an_unknown_key_costs_a_hash_like_a_wrong_one(auth, monkeypatch):
    checked = []
    real = auth_module.key_matches

    def spy(key: str, stored: str) -> bool:
        checked.append(stored)
        return real(key, stored)

    monkeypatch.setattr(auth_module, "key_matches", spy)
    key = (await auth.bootstrap()).api_key
    with pytest.raises(InvalidApiKey):
        await auth.sign_in(key[:16] + "0" * 32 + key[48:])
    assert len(checked) == 1
    assert checked[0].startswith("$argon2id$v=19$m=19456,t=2,p=1$")


@pytest.mark.parametrize("key", [None, ""])
async def test_signing_in_without_a_key_says_so(auth, key):
    with pytest.raises(MissingCredentials):
        await auth.sign_in(key)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic abc", "token"])
async def test_no_bearer_token_is_missing_credentials(auth, header):
    with pytest.raises(MissingCredentials):
        await auth.verify(header)


async def test_a_token_that_is_not_genuine_is_invalid(auth):
    token = await signed_in(auth)
    last = "a" if token[-1] != "a" else "b"
    for bad in (
        token[:-1] + last,
        "0" * 32 + token[32:],
        "x",
        token.upper(),
        token + "a",
        "é" * 97,
    ):
        with pytest.raises(InvalidToken):
            await auth.verify(f"Bearer {bad}")
    assert (await auth.verify(f"bearer {token}")).token_id


async def test_a_token_lives_as_long_as_configured_even_if_remembered(journal, clock):
    auth = Auth(journal, replace(SETTINGS, token_ttl_seconds=30), now=clock)
    token = await signed_in(auth)
    await auth.verify(f"Bearer {token}")
    clock.advance(seconds=29.9)
    await auth.verify(f"Bearer {token}")
    clock.advance(seconds=0.1)
    with pytest.raises(TokenExpired):
        await auth.verify(f"Bearer {token}")
    with pytest.raises(InvalidToken):
        await auth.verify(f"Bearer {token[:-3]}aaa")


async def test_a_verified_token_is_remembered_for_a_minute(auth, journal, mock_clock):
    token = await signed_in(auth)
    for _ in range(3):
        await auth.verify(f"Bearer {token}")
    assert journal.token_reads == 1
    mock_clock.jump(59.0)
    await auth.verify(f"Bearer {token}")
    assert journal.token_reads == 1
    mock_clock.jump(2.0)
    await auth.verify(f"Bearer {token}")
    assert journal.token_reads == 2


async def test_signing_out_is_at_once(auth):
    token = await signed_in(auth)
    other = await signed_in(auth)
    identity = await auth.verify(f"Bearer {token}")
    await auth.verify(f"Bearer {other}")
    await auth.sign_out(identity)
    for _ in range(2):
        with pytest.raises(TokenRevoked):
            await auth.verify(f"Bearer {token}")
    with pytest.raises(InvalidToken):
        await auth.verify(f"Bearer {token[:-3]}aaa")
    await auth.verify(f"Bearer {other}")


async def test_many_first_uses_of_a_token_cost_one_hash(auth, monkeypatch):
    token = await signed_in(auth)
    slow = SlowHash(monkeypatch)
    found = []

    async def use() -> None:
        found.append(await auth.verify(f"Bearer {token}"))

    async with trio.open_nursery() as users:
        for _ in range(100):
            users.start_soon(use)
        await slow.started.wait()
        slow.release.set()
    assert len(found) == 100
    assert slow.runs == 1


async def test_a_token_revoked_while_it_is_checked_is_revoked(auth, monkeypatch, mock_clock):
    token = await signed_in(auth)
    identity = await auth.verify(f"Bearer {token}")
    mock_clock.jump(61)
    slow = SlowHash(monkeypatch)
    outcomes = []

    async def use() -> None:
        try:
            outcomes.append(await auth.verify(f"Bearer {token}"))
        except TokenRevoked:
            outcomes.append("revoked")

    async with trio.open_nursery() as users:
        users.start_soon(use)
        users.start_soon(use)
        await slow.started.wait()
        await auth.sign_out(identity)
        slow.release.set()
    assert outcomes == ["revoked", "revoked"]


async def test_a_check_whose_client_left_is_done_by_the_next_one(auth, monkeypatch):
    token = await signed_in(auth)
    slow = SlowHash(monkeypatch)
    found = []

    async def use() -> None:
        found.append(await auth.verify(f"Bearer {token}"))

    async with trio.open_nursery() as users, trio.open_nursery() as leaving:
        leaving.start_soon(use)
        await slow.started.wait()
        users.start_soon(use)
        leaving.cancel_scope.cancel()
        slow.release.set()
    assert len(found) == 1


async def test_a_disabled_user_is_forbidden(auth, journal, mock_clock):
    made = await auth.bootstrap()
    token = (await auth.sign_in(made.api_key)).token
    journal.users[made.user_id] = replace(journal.users[made.user_id], disabled_at=NOON)
    with pytest.raises(Forbidden):
        await auth.sign_in(made.api_key)
    with pytest.raises(Forbidden):
        await auth.verify(f"Bearer {token}")
    with pytest.raises(InvalidApiKey):
        await auth.sign_in(made.api_key[:-4] + "aaaa")


async def test_bootstrap_can_be_switched_off():
    async with running(replace(SETTINGS, local_bootstrap_enabled=False), sign_in=False) as front:
        answer = await front.client.post("/api/v1/auth/bootstrap")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert front.journal.users == {}


async def test_storage_that_fails_is_told_as_each_endpoint_says():
    async with running() as front:
        key = {"X-Smista-Api-Key": front.api_key}
        front.journal.broken = StorageError("disk")
        made = await front.client.post("/api/v1/auth/bootstrap")
        signed = await front.client.post("/api/v1/auth/sign-in", headers=key)
        front.journal.broken = StorageUnavailable("away")
        away = await front.client.post("/api/v1/auth/sign-in", headers=key)
        out = await front.client.post("/api/v1/auth/sign-out")
    assert (made.status_code, made.json()["error"]["code"]) == (500, "internal_error")
    assert (signed.status_code, signed.json()["error"]["code"]) == (502, "storage_error")
    assert (away.status_code, away.json()["error"]["code"]) == (503, "storage_error")
    assert out.status_code in (401, 503)


async def test_a_sign_out_whose_client_left_still_revokes(auth, journal):
    token = await signed_in(auth)
    identity = await auth.verify(f"Bearer {token}")
    with trio.CancelScope() as leaving:
        leaving.cancel()
        await auth.sign_out(identity)
    with pytest.raises(TokenRevoked):
        await auth.verify(f"Bearer {token}")
    assert journal.tokens[identity.token_id].revoked_at == NOON
