"""What is remembered, through the client."""

import pytest

from smista.sdk.client import ClientConfig, open_client
from smista.sdk.errors import ApiError
from tests.sdk.router import SESSION, FakeRouter, Reply
from tests.sdk.test_client import KEY

FACT = {
    "id": "018f9c3e-7a2b-7c4d-8e5f-00000000000a",
    "scope": "user",
    "key": "editor",
    "content": {"plaintext": "uses vim"},
    "restricted": False,
    "created_at": "2026-05-25T12:00:00Z",
    "updated_at": "2026-05-25T12:00:00Z",
}


async def test_facts_are_listed_read_and_forgotten(nursery):
    router = await FakeRouter().start(nursery)
    place = f"/api/v1/memory/{FACT['id']}"
    router.answer("GET", "/api/v1/memory", Reply({"facts": [FACT]}))
    router.answer("GET", place, Reply({"fact": FACT}))
    router.answer("DELETE", place, Reply({"deleted": True}))
    async with open_client(ClientConfig(url=router.url), api_key=KEY) as client:
        (fact,) = await client.facts(session_id=SESSION["id"])
        assert await client.fact(fact.id) == fact
        assert (fact.key, fact.content) == ("editor", {"plaintext": "uses vim"})
        await client.forget_fact(fact.id)
        router.answer("DELETE", place, Reply({"error": {"code": "not_found", "message": "x"}}, 404))
        with pytest.raises(ApiError) as caught:
            await client.forget_fact(fact.id)
    assert caught.value.code == "not_found"
