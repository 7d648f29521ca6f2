"""Memory in an encrypted session: what it keeps is sealed, and never stored in clear."""

import pytest

from smista.core.events import Status
from smista.core.facts import text_of
from smista.core.records import CallStatus, MemoryScope
from tests.actors.house import USER, request
from tests.actors.sealed import PLANTED, open_sealed, restarted
from tests.actors.test_memories import permitting, remember
from tests.fakes import ScriptedProvider, called, said

FACT = f"{PLANTED} uses vim"
SKILL = {"name": "s", "content": f"---\ndescription: d\n---\n{PLANTED} BODY"}


async def test_a_fact_for_the_user_stays_sealed_in_its_session_and_is_recalled_after_a_restart():
    model = ScriptedProvider(remember(FACT, key=f"{PLANTED}-key"), said("noted"), said("again"))
    async with open_sealed(model) as client:
        ending = await client.finish(await client.execute())
        assert ending.status is Status.COMPLETED
        assert "remembered" not in ending.data
        memories = [name for name in ending.data["to_encrypt"] if name.startswith("memory:")]
        assert len(memories) == 1
        assert await client.house.journal.facts(MemoryScope.USER, USER) == ()
        (kept,) = await client.house.journal.facts(MemoryScope.SESSION, client.session_id)
        assert text_of(kept) is None
        assert kept.key is None
        async with restarted(client) as again:
            await again.finish(await again.execute("and now"))
            assert f"{PLANTED}-key) {FACT}" in model.prompts[-1].system


async def test_a_policy_that_allows_memory_keeps_a_fact_for_all_sessions_in_clear():
    model = ScriptedProvider(remember("uses vim"), said("noted"))
    async with open_sealed(model) as client:
        ending = await client.execute(policy=permitting(memory="allow"))
        await client.finish(ending)
        assert [each["content"] for each in ending.data["remembered"]] == ["uses vim"]
        (kept,) = await client.house.journal.facts(MemoryScope.USER, USER)
        assert text_of(kept) == "uses vim"


async def test_a_fact_is_updated_and_forgotten_where_it_is_sealed():
    model = ScriptedProvider(
        remember(FACT, key="k"), said("a"),
        remember(f"{PLANTED} uses ed", key="k", scope="session", operation="update"), said("b"),
        remember(key="k", scope="session", operation="forget"), said("c"),
    )  # fmt: skip
    async with open_sealed(model) as client:
        await client.finish(await client.execute())
        await client.finish(await client.execute())
        assert "uses ed" in model.prompts[-1].system
        async with restarted(client) as again:
            await again.finish(await again.execute())
            assert "Remembered" not in model.prompts[-1].system
            where = MemoryScope.SESSION, client.session_id
            assert await client.house.journal.facts(*where) == ()


@pytest.mark.parametrize("word", ["approved", "rejected"])
async def test_an_asked_memory_is_run_by_the_router_and_its_answer_sealed(word):
    model = ScriptedProvider(remember(FACT), said("noted"))
    async with open_sealed(model) as client:
        ending = await client.execute(policy=permitting(memory="ask"))
        assert ending.status is Status.AWAITING_TOOL
        ending = await client.tell(client.results(ending, "mine", decision=word))
        await client.finish(await client.through(ending))
        (call,) = (await client.state()).calls.values()
        status = CallStatus.COMPLETED if word == "approved" else CallStatus.FAILED
        assert call.status is status
        texts = [text for role, text in await client.said() if role == "tool"]
        assert len(texts) == 1
        assert ("remembered" in texts[0]) is (word == "approved")
        facts = await client.house.journal.facts(MemoryScope.SESSION, client.session_id)
        assert len(facts) == (word == "approved")


async def test_a_skill_is_read_in_an_encrypted_session():
    files = {**request().attachments.model_dump(mode="json"), "available_skills": [SKILL]}
    model = ScriptedProvider(called("use_skill", '{"name":"s"}'), said("done"))
    async with open_sealed(model) as client:
        ending = await client.finish(await client.execute(attachments=files))
        assert ending.status is Status.COMPLETED
        assert any("BODY" in text for _, text in await client.said())


async def test_a_sealed_fact_that_its_user_deletes_is_gone():
    model = ScriptedProvider(remember(FACT), said("noted"), said("again"))
    async with open_sealed(model) as client:
        await client.finish(await client.execute())
        where = {"session_id": client.session_id}
        (fact,) = await client.house.directory.facts(USER, **where)
        assert await client.house.directory.forget(USER, fact.id, **where)
        await client.finish(await client.execute())
        assert "Remembered" not in model.prompts[-1].system
