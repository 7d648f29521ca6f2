"""Exports of sessions while runs go on, and what an imported session can do."""

import json

import pytest

from smista.core.errors import SessionExists, SessionNotFound
from smista.core.events import Status
from smista.core.history import Role
from smista.core.records import CallStatus
from smista.core.session_copy import NOT_RUN
from smista.core.session_export import copy_of, export_of
from tests.actors.house import USER, hear, open_house, outcome, request, result
from tests.fakes import ScriptedProvider, called, said

OTHER = "018bcfe5-6800-7001-8000-000000000002"
READ = json.dumps({"path": "secret/a.txt"})


def _restricting():
    privacy = {"restricted_paths": ["secret/**"]}
    return {**request().policy.model_dump(mode="json"), "privacy": privacy}


async def _moved(house, user: str = USER) -> None:
    """Import what is exported of the house's session, and go on in the new one."""
    copy = await house.directory.export(USER, house.session_id)
    made = await house.directory.take_in(user, copy_of(export_of(copy), user))
    house.session_id = made.id


async def test_a_conversation_goes_on_in_the_imported_session():
    provider = ScriptedProvider(said("one"), said("two"))
    async with open_house(provider) as house:
        await hear(await house.execute("first"))
        await _moved(house)
        assert house.session_id != house.first
        end = await outcome(await house.execute("second"))
        assert end.status is Status.COMPLETED
        assert [m.text for m in provider.prompts[1].messages] == ["first", "one", "second"]
        texts = [m.text for m in (await house.state()).messages]
        assert texts == ["first", "one", "second", "two"]
        house.session_id = house.first
        assert [m.text for m in (await house.state()).messages] == ["first", "one"]


async def test_a_run_that_waits_for_its_client_is_not_exported_with_the_session():
    provider = ScriptedProvider(called("read_file", '{"path": "a"}'), said("done"))
    async with open_house(provider) as house:
        (asked,) = (await outcome(await house.execute())).data["tool_requests"]
        await _moved(house)
        state = await house.state()
        assert [c.status for c in state.calls.values()] == [CallStatus.FAILED]
        assert [m.text for m in state.messages if m.role is Role.TOOL] == [NOT_RUN]
        assert (await house.directory.fetch(USER, house.session_id))["metadata"] == {}
        house.session_id = house.first
        answered = await outcome(await house.answer(result(asked["call_id"])))
        assert answered.status is Status.COMPLETED


async def test_bodies_of_restricted_files_are_never_exported():
    secret = "the launch code"
    provider = ScriptedProvider(
        called("read_file", READ), called("read_file", '{"path": "a"}'), said("done")
    )
    async with open_house(provider) as house:
        paused = await outcome(await house.execute(policy=_restricting()))
        (asked,) = paused.data["tool_requests"]
        again = await outcome(
            await house.answer(result(asked["call_id"], secret, paths=("secret/a.txt",)))
        )
        assert again.status is Status.AWAITING_TOOL
        live = export_of(await house.directory.export(USER, house.session_id))
        assert live.tool_calls[0].result.text == "[restricted: secret/a.txt]"
        (asked,) = again.data["tool_requests"]
        await hear(await house.answer(result(asked["call_id"])))
        over = export_of(await house.directory.export(USER, house.session_id))
        assert over.tool_calls[0].result.text == "[restricted: secret/a.txt]"


async def test_an_encrypted_session_is_not_imported_beside_itself():
    async with open_house() as house:
        made = await house.directory.create(USER, title="t", scope=None, key_id="kf_1")
        copy = await house.directory.export(USER, made.id)
        with pytest.raises(SessionExists):
            await house.directory.take_in(USER, copy)
        await house.directory.delete(USER, made.id)
        assert (await house.directory.take_in(USER, copy)).id == made.id


async def test_only_its_owner_exports_a_session_and_owns_what_was_imported():
    async with open_house(ScriptedProvider(said("x"))) as house:
        await hear(await house.execute())
        with pytest.raises(SessionNotFound):
            await house.directory.export(OTHER, house.session_id)
        await _moved(house, OTHER)
        with pytest.raises(SessionNotFound):
            await house.directory.fetch(USER, house.session_id)
        assert await house.directory.fetch(OTHER, house.session_id)
