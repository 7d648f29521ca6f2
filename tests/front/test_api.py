"""What each endpoint answers when all is well."""

from dataclasses import replace
from decimal import Decimal

import pytest

from smista.core.secret import Envelope
from smista.ports.journal import CostSum
from tests.front.harness import EXECUTE_BODY, MINE, ROUTED, running

SESSION = f"/api/v1/sessions/{MINE}"


async def test_status_is_public_and_names_the_version():
    async with running(sign_in=False) as front:
        answer = await front.client.get("/status")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "version": "1.2.3"}


async def test_a_user_is_made_signs_in_is_known_and_signs_out():
    async with running(sign_in=False) as front:
        made = await front.client.post("/api/v1/auth/bootstrap")
        assert made.status_code == 201
        user_id, key = made.json()["user_id"], made.json()["api_key"]
        assert key.startswith(f"sk-smista-api01-{user_id.replace('-', '')}-")
        signed = await front.client.post("/api/v1/auth/sign-in", headers={"X-Smista-Api-Key": key})
        assert signed.json()["expires_at"] == "2026-05-26T12:00:00Z"
        bearer = {"Authorization": f"Bearer {signed.json()['token']}"}
        me = await front.client.get("/api/v1/auth/me", headers=bearer)
        assert me.json() == {"user_id": user_id}
        out = await front.client.post("/api/v1/auth/sign-out", headers=bearer)
        assert out.json() == {"revoked": True}
        again = await front.client.get("/api/v1/auth/me", headers=bearer)
    assert again.status_code == 401
    assert again.json()["error"]["code"] == "token_revoked"


async def test_sessions_are_created_listed_fetched_updated_and_deleted():
    async with running() as front:
        made = await front.client.post("/api/v1/sessions", json={"title": "T", "key_id": "kf_a"})
        listed = await front.client.get("/api/v1/sessions?scope=/p&title=min")
        fetched = await front.client.get(SESSION)
        updated = await front.client.put(SESSION, json={"archived": True, "title": None})
        deleted = await front.client.delete(SESSION)
    assert made.status_code == 201
    assert made.json()["session"] == {
        "id": MINE,
        "title": "T",
        "key_id": "kf_a",
        "encrypted": True,
        "created_at": "2026-05-25T12:00:00Z",
        "updated_at": "2026-05-25T12:00:00Z",
        "archived": False,
    }
    assert listed.json()["sessions"][0]["title"] is None
    assert front.sessions.seen == [("/p", "min")]
    assert fetched.json() == {"session": {"id": MINE, "messages": [], "metadata": {}}}
    assert updated.json()["session"]["archived"] is True
    assert updated.json()["session"]["title"] == "Mine"
    assert deleted.json() == {"deleted": True}


async def test_preview_explains_the_route():
    async with running() as front:
        answer = await front.client.post(f"{SESSION}/preview", json=EXECUTE_BODY)
    assert answer.json() == {
        "classification": {
            "intent": "review",
            "source": "inferred",
            "reason": "keyword 'review' matched rule 0",
            "matched_rule": 0,
            "confidence": "high",
        },
        "routing": {
            "intent": "review",
            "provider": "ollama",
            "model": "qwen",
            "fallback_used": False,
            "override_used": False,
            "reason": "default route",
        },
        "included_context": ["a.py"],
        "excluded_context": [".env"],
        "estimated_cost": {"min": "0", "max": "0", "currency": "USD"},
        "required_permissions": [
            {"permission": "file_read", "mode": "allow"},
            {"permission": "shell", "mode": "ask"},
        ],
    }


async def test_a_trace_is_tagged_and_paged():
    sealed = Envelope(version=2, algorithm="a", key_id="kf_a", nonce="bg", ciphertext="Y2k")
    async with running() as front:
        plain = await front.client.get(f"{SESSION}/traces?limit=5&offset=2")
        front.sessions.events = (replace(ROUTED, payload=sealed, id="0198"),)
        encrypted = await front.client.get(f"{SESSION}/traces")
    assert front.sessions.seen == [(2, 5), (0, 50)]
    assert plain.json()["trace"] == {
        "session_id": MINE,
        "events": [
            {
                "event_type": "routing_decision",
                "task_type": "review",
                "provider": "ollama",
                "model": "qwen",
                "matched_rule": "r -> ollama/qwen",
                "created_at": "2026-05-25T12:00:00Z",
                "payload": {
                    "plaintext": {
                        "type": "routing_decision",
                        "provider": "ollama",
                        "model": "qwen",
                        "reason": "best",
                    }
                },
            }
        ],
    }
    (event,) = encrypted.json()["trace"]["events"]
    assert event["payload"] == {"encrypted": sealed.model_dump()}
    assert event["id"] == "0198"


async def test_usage_sums_what_is_known_and_leaves_out_the_rest():
    async with running() as front:
        front.sessions.costs = (
            CostSum(
                provider="openai",
                model="a",
                task_type="plan",
                requests=2,
                input_tokens=100,
                output_tokens=20,
                cost="0.10",
            ),
            CostSum(
                provider="openai",
                model="a",
                task_type="edit",
                requests=1,
                input_tokens=1,
                cost="0.205",
            ),
            CostSum(provider="x", model="b", task_type="edit", requests=4),
        )
        usage = (await front.client.get(f"{SESSION}/usage")).json()
        front.sessions.costs = ()
        empty = (await front.client.get(f"{SESSION}/usage")).json()
    assert usage["total"] == {
        "input_tokens": 101,
        "output_tokens": 20,
        "total_tokens": 121,
        "estimated_cost": "0.305",
        "currency": "USD",
    }
    assert usage["by_model"][1] == {"provider": "x", "model": "b", "request_count": 4}
    assert usage["by_task_type"][0] == {
        "task_type": "plan",
        "input_tokens": 100,
        "output_tokens": 20,
        "estimated_cost": "0.1",
        "request_count": 2,
    }
    assert Decimal(usage["by_task_type"][1]["estimated_cost"]) == Decimal("0.205")
    assert empty == {"total": {}, "by_model": [], "by_task_type": []}


async def test_models_are_listed_with_the_keys_of_the_request():
    async with running() as front:
        answer = await front.client.get(
            "/api/v1/llm/models",
            headers={
                "X-Smista-Provider-OpenAI-Api-Key": "sk-openai-key",
                "X-Smista-Provider-my-vllm-Api-Key": "sk-vllm-key",
                "X-Smista-Timeout-Ms": "99999999",
            },
        )
        providers = await front.client.get("/api/v1/llm/providers")
        front.sessions.catalog = front.sessions.catalog.__class__(())
        without = await front.client.get("/api/v1/llm/models")
    credentials, deadline = front.sessions.seen[0]
    assert {name: key.get_secret_value() for name, key in credentials.items()} == {
        "openai": "sk-openai-key",
        "openai-compat:my-vllm": "sk-vllm-key",
    }
    assert deadline == 60.0
    assert answer.json() == {
        "models": [
            {
                "provider": "ollama",
                "model": "qwen",
                "display_name": None,
                "local": True,
                "auth": "none",
                "capabilities": {"streaming": True},
                "max_context_tokens": 32768,
                "max_output_tokens": None,
                "default_parameters": {},
            }
        ],
        "unavailable": [{"provider": "gemini", "reason": "timeout"}],
    }
    assert without.json() == {"models": []}
    assert providers.json() == {
        "providers": [{"id": "ollama", "display_name": "Ollama", "local": True}]
    }


@pytest.mark.parametrize("text", ["", "0", "soon", "-5", "1e3"])
async def test_an_unusable_listing_deadline_falls_back_to_ten_seconds(text: str):
    async with running() as front:
        await front.client.get("/api/v1/llm/models", headers={"X-Smista-Timeout-Ms": text})
    assert front.sessions.seen[0][1] == 10.0
