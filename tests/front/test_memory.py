"""What is remembered, over HTTP."""

from smista.core.records import MemoryRecord, MemoryScope
from smista.core.secret import Envelope, Plain, Sealed
from tests.front.harness import MINE, NOON, UNKNOWN, running

FACT = "018f9c3e-7a2b-7c4d-8e5f-00000000000a"
SEALED = "018f9c3e-7a2b-7c4d-8e5f-00000000000b"
ENVELOPE = Envelope(version=2, algorithm="xchacha20poly1305", key_id="k", nonce="n", ciphertext="c")


def remembered():
    mine = MemoryRecord(
        id=FACT,
        scope=MemoryScope.USER,
        content=Plain("uses vim"),
        key="editor",
        created_at=NOON,
        updated_at=NOON,
    )
    of_session = MemoryRecord(
        id=SEALED,
        scope=MemoryScope.SESSION,
        content=Sealed(ENVELOPE),
        created_at=NOON,
        updated_at=NOON,
        restricted=True,
    )
    return mine, of_session


async def test_facts_are_listed_shown_and_deleted():
    async with running() as front:
        front.sessions.remembered = remembered()
        listed = await front.client.get("/api/v1/memory")
        wider = await front.client.get(f"/api/v1/memory?session_id={MINE}")
        shown = await front.client.get(f"/api/v1/memory/{FACT.upper()}")
        deleted = await front.client.delete(f"/api/v1/memory/{FACT}")
        again = await front.client.delete(f"/api/v1/memory/{FACT}")
    (fact,) = listed.json()["facts"]
    assert fact == {
        "id": FACT,
        "scope": "user",
        "key": "editor",
        "content": {"plaintext": "uses vim"},
        "restricted": False,
        "created_at": "2026-05-25T12:00:00Z",
        "updated_at": "2026-05-25T12:00:00Z",
    }
    assert shown.json() == {"fact": fact}
    sealed = wider.json()["facts"][1]
    assert sealed["content"]["encrypted"]["ciphertext"] == "c"
    assert "key" not in sealed
    assert deleted.json() == {"deleted": True}
    assert (again.status_code, again.json()["error"]["code"]) == (404, "not_found")


async def test_another_users_facts_and_ids_that_name_nothing_are_404():
    async with running() as front:
        front.sessions.remembered = remembered()
        front.sessions.owner = "somebody else"
        answers = [
            await front.client.get("/api/v1/memory"),
            await front.client.get(f"/api/v1/memory/{FACT}"),
            await front.client.delete(f"/api/v1/memory/{FACT}"),
            await front.client.get(f"/api/v1/memory?session_id={MINE}"),
            await front.client.delete(f"/api/v1/memory/{FACT}?session_id={UNKNOWN}"),
            await front.client.get("/api/v1/memory/junk"),
        ]
        bad = await front.client.get("/api/v1/memory?session_id=junk")
    assert answers[0].json() == {"facts": []}
    assert [answer.status_code for answer in answers[1:]] == [404] * 5
    assert bad.json()["error"]["code"] == "invalid_session_id"
