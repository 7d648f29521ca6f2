"""Export and import over HTTP: documents in and out, and what is refused."""

from tests.front.harness import MINE, running
from tests.front.shapes import JSON, code

IMPORT = "/api/v1/sessions/import"


async def _document(front) -> dict:
    answer = await front.client.get(f"/api/v1/sessions/{MINE}/export")
    assert answer.status_code == 200
    return answer.json()


async def test_what_is_exported_can_be_imported():
    async with running() as front:
        document = await _document(front)
        assert (document["format"], document["version"]) == ("smista-session", 1)
        assert document["session"]["id"] == MINE
        answer = await front.client.post(IMPORT, json=document)
        assert answer.status_code == 201
        assert answer.json()["session"]["id"] == MINE
        (copy,) = front.sessions.seen[-1]
        assert copy.session.user_id == front.sessions.owner


async def test_the_trace_of_a_long_session_is_not_too_much():
    async with running() as front:
        document = await _document(front)
        assert (await front.client.post(IMPORT, json=document)).status_code == 201
        for items, status in ((150_000, 201), (550_000, 413)):
            payload = {"role": "user", "items": [0] * items}
            event = {
                "event_type": "message",
                "task_type": "chat",
                "provider": "ollama",
                "model": "m",
                "created_at": "2026-05-25T12:00:00Z",
                "plaintext": payload,
            }
            trace = [{"id": document["session"]["id"], "events": [event]}]
            answer = await front.client.post(IMPORT, json={**document, "trace": trace})
            assert answer.status_code == status


async def test_an_import_names_what_is_wrong_and_no_values():
    async with running() as front:
        document = await _document(front)
        document["session"]["id"] = "canary"
        answer = await front.client.post(IMPORT, json=document)
    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    fields = answer.json()["error"]["details"]["fields"]
    assert fields == [{"place": "body.session.id.0", "kind": "uuid_version"}]
    assert "canary" not in answer.text


async def test_other_documents_are_refused():
    async with running() as front:
        document = await _document(front)
        for changed in ({**document, "version": 2}, {**document, "format": "x"}, {}, []):
            assert (await front.client.post(IMPORT, json=changed)).status_code == 422
        answer = await front.client.post(IMPORT, content=b"{", headers=JSON)
        assert (answer.status_code, code(answer)) == (400, "invalid_json")


async def test_another_users_session_cannot_be_exported():
    async with running() as front:
        front.sessions.owner = "somebody else"
        answer = await front.client.get(f"/api/v1/sessions/{MINE}/export")
    assert (answer.status_code, code(answer)) == (404, "session_not_found")
