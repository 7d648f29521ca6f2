"""Memory and skills through a session's actor: the router runs them, the user owns the outcome."""

import json
from dataclasses import replace

import pytest
import trio
import trio.testing

from actors.draft import Draft
from actors.envelope import Forget
from actors.memories import Memories
from actors.own_calls import run_own_call
from actors.parts import Durations
from smista.core.errors import SessionNotFound, StorageUnavailable
from smista.core.events import Status, ToolCallRequested, ToolCallStarted
from smista.core.facts import keyed_id, text_of
from smista.core.messages import Break
from smista.core.phase import AwaitingTool, Idle
from smista.core.records import (
    CallStatus,
    EventType,
    MemoryScope,
    SessionState,
    ToolCallRecord,
)
from smista.core.secret import Plain
from smista.core.stream import Finish, ToolCallEnded, ToolStarted, Usage
from smista.storage.memory import MemoryJournal
from tests.actors.house import USER, hear, open_house, open_quick, outcome, request, result
from tests.fakes import ScriptedProvider, Stall, TickingClock, called, descriptor, end, said

SKILL = "---\nname: s\ndescription: Writes changelogs\n---\nLONG BODY, see rules.md"
OTHER = "018bcfe5-6800-7001-8000-000000000002"


def remember(value=None, *, operation="record", scope="user", **more):
    return called(
        "memory",
        json.dumps(
            {"operation": operation, "scope": scope, **more}
            | ({} if value is None else {"value": value})
        ),
    )


def together(*calls):
    """One answer that asks for several tools."""
    steps = []
    for n, (name, arguments) in enumerate(calls):
        steps += [
            ToolStarted(index=n, name=name),
            ToolCallEnded(index=n, id=f"call_{n}", name=name, arguments=json.dumps(arguments)),
        ]
    return [*steps, Usage(input_tokens=1, output_tokens=1), end(Finish.TOOL_CALLS)]


def permitting(**modes):
    return {**request().policy.model_dump(mode="json"), "tools": {"permissions": modes}}


async def facts(house, **where):
    return await house.directory.facts(USER, **where)


async def another(house):
    """Begin another session of the same user."""
    return (await house.directory.create(USER, title="2", scope=None, key_id=None)).id


async def told(house):
    """What the memory calls of the session were answered, in order."""
    state = await house.state()
    return [m.text for m in state.messages if m.call_id]


async def test_a_fact_is_kept_in_the_turn_that_asks_and_shown_to_the_user_at_once():
    model = ScriptedProvider(remember("uses vim", key="editor"), said("noted"))
    async with open_house(model) as house:
        heard = await hear(await house.execute("I use vim"))
        kinds = [type(event) for event in heard]
        assert not {ToolCallRequested, ToolCallStarted} & set(kinds)
        ending = heard[-1]
        assert ending.status is Status.COMPLETED
        (shown,) = ending.data["remembered"]
        assert shown == {
            "operation": "recorded",
            "id": keyed_id(USER, "editor"),
            "key": "editor",
            "content": "uses vim",
        }
        (fact,) = await facts(house)
        assert (fact.key, text_of(fact), fact.restricted) == ("editor", "uses vim", False)
        state = await house.state()
        (call,) = state.calls.values()
        assert (call.tool_name, call.status) == ("memory", CallStatus.COMPLETED)
        calls = [e for e in await house.trace() if e.event_type is EventType.TOOL_CALL]
        assert [e.payload["status"] for e in calls] == ["pending", "completed"]
        assert len(model.prompts) == 2
        assert "uses vim" in model.prompts[1].system  # the same turn goes on with it


async def test_every_session_of_the_user_recalls_a_fact_newest_first_and_other_users_do_not():
    model = ScriptedProvider(
        remember("uses vim", key="editor"), remember("tabs"), said("noted"), said("a"), said("b")
    )
    async with open_house(model) as house:
        await outcome(await house.execute())
        house.session_id = await another(house)
        await outcome(await house.execute())
        system = model.prompts[-1].system
        assert system.index("(user) tabs") < system.index("(user: editor) uses vim")
        assert await house.directory.facts(OTHER) == ()
        with pytest.raises(SessionNotFound):
            await house.directory.facts(OTHER, session_id=house.session_id)


async def test_a_session_fact_stays_in_its_session_and_goes_with_it():
    model = ScriptedProvider(
        remember("the bug is in b.py", scope="session"), said("ok"), said("a"), said("b")
    )
    async with open_house(model) as house:
        ending = await outcome(await house.execute())
        assert "remembered" not in ending.data
        first = house.session_id
        house.session_id = await another(house)
        await outcome(await house.execute())
        assert "b.py" not in model.prompts[-1].system
        house.session_id = first
        await outcome(await house.execute())
        assert "the bug is in b.py" in model.prompts[-1].system
        await house.directory.delete(USER, first)
        assert await house.journal.facts(MemoryScope.SESSION, first) == ()


async def test_a_fact_is_updated_by_its_short_id_and_forgotten_by_its_key():
    model = ScriptedProvider(remember("uses vim", key="editor"), remember("likes tabs"), said("x"))
    async with open_house(model) as house:
        await outcome(await house.execute())
        newest, _ = await facts(house)
        short = model.prompts[-1].system.split("[")[1].split("]")[0]
        model.scripts.extend(
            [
                remember("likes spaces", operation="update", key=short),
                remember(operation="forget", key="editor"),
                said("done"),
            ]
        )
        ending = await outcome(await house.execute())
        assert [each["operation"] for each in ending.data["remembered"]] == ["updated", "forgotten"]
        (left,) = await facts(house)
        assert (left.id, text_of(left)) == (newest.id, "likes spaces")
        assert "vim" not in model.prompts[-1].system


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"operation":"burn","scope":"user"}', "one of record, update, forget"),
        ('{"operation":"record"}', "missing 'scope'"),
        ('{"operation":"record","scope":"user","value":7}', "must be a string"),
        ('{"operation":"record","scope":"user"}', "needs a value"),
        ('{"operation":"record","scope":"user","key":null,"value":null}', "needs a value"),
        ('{"operation":"record","scope":"user","value":"  "}', "needs a value"),
        ('{"operation":"record","scope":"user","value":"v","x":1}', "unknown 'x'"),
        ('{"operation":"forget","scope":"user"}', "needs the key"),
        ('{"operation":"forget","scope":"user","key":"nix"}', "nothing was forgotten"),
        ('{"operation":"update","scope":"user","key":"nix","value":"v"}', "record it"),
        (json.dumps({"operation": "record", "scope": "user", "value": "v" * 1001}), "1000"),
        (json.dumps({"operation": "record", "scope": "user", "value": "v", "key": "k" * 101}),
         "at most 100"),
        ('{"operation":"record","scope":"user","value":"v","key":"a\\u0007b"}', "printable"),
        ("not json", "not valid JSON"),
        ("[" * 5000, ""),
        ('{"operation":"record","scope":"user","value":"my key is ghp_'
         + "a1B2" * 9 + '"}', "secrets are not remembered"),
    ],
)  # fmt: skip
async def test_wrong_arguments_are_an_answer_for_the_model_and_keep_nothing(arguments, answer):
    model = ScriptedProvider(called("memory", arguments), said("sorry"))
    async with open_house(model) as house:
        ending = await outcome(await house.execute())
        assert ending.status is Status.COMPLETED
        state = await house.state()
        (call,) = state.calls.values()
        assert call.status is CallStatus.FAILED
        assert answer in (await told(house))[0]
        assert await facts(house, session_id=house.session_id) == ()
        assert "remembered" not in ending.data


async def test_what_needs_approval_is_run_by_the_router_once_it_is_given():
    asking = permitting(memory="ask")
    model = ScriptedProvider(remember("uses vim"), said("noted"))
    async with open_house(model) as house:
        ending = await outcome(await house.execute(policy=asking))
        assert ending.status is Status.AWAITING_TOOL
        (asked,) = ending.data["tool_requests"]
        assert (asked["name"], asked["requires_approval"]) == ("memory", "ask")
        assert await facts(house) == ()
        answer = result(asked["call_id"], "I ran it myself", decision="approved", is_error=True)
        ending = await outcome(await house.answer(answer))
        assert ending.status is Status.COMPLETED
        assert [text_of(f) for f in await facts(house)] == ["uses vim"]
        assert (await told(house))[0].startswith("remembered for all")
        approvals = [e for e in await house.trace() if e.event_type is EventType.APPROVAL]
        assert [e.payload["decision"] for e in approvals] == ["approved"]


@pytest.mark.parametrize(
    "call",
    [
        remember("the key is ghp_" + "a1B2" * 9),
        remember(operation="forget", key="nonsense"),
        called("use_skill", '{"name":"nonsense"}'),
    ],
)
async def test_nobody_is_asked_about_a_call_that_cannot_succeed(call):
    model = ScriptedProvider(call, said("sorry"))
    offered = {
        "files": [],
        "instructions": [],
        "available_skills": [{"name": "s", "content": SKILL}],
    }
    asking = permitting(memory="ask", skill="ask")
    async with open_house(model) as house:
        ending = await outcome(await house.execute(policy=asking, attachments=offered))
        assert ending.status is Status.COMPLETED
        (call,) = (await house.state()).calls.values()
        assert call.status is CallStatus.FAILED


async def test_a_call_whose_arguments_storage_masked_is_not_run():
    async with open_house() as house:
        state = await house.state()
    draft = Draft(SessionState(session=state.session), TickingClock().now())
    draft.begin_run(keyed_id(USER, "run"), request())
    draft.add_user("x")
    call = ToolCallRecord(
        id=keyed_id(USER, "call"),
        tool_name="memory",
        status=CallStatus.PENDING,
        arguments=Plain('{"operation":"record","scope":"user","value":"[masked: token]"}'),
        created_at=draft.now,
        masked=("token",),
    )
    draft.put_call(call)
    run_own_call(draft, call.id, local=True)
    assert draft.memory.written == ()
    assert draft.state.calls[call.id].status is CallStatus.FAILED


@pytest.mark.parametrize("word", [{"decision": "rejected"}, {}, {"is_error": True}])
async def test_without_the_users_yes_nothing_is_kept(word):
    model = ScriptedProvider(remember("uses vim"), said("as you like"))
    async with open_house(model) as house:
        ending = await outcome(await house.execute(policy=permitting(memory="ask")))
        (asked,) = ending.data["tool_requests"]
        await outcome(await house.answer(result(asked["call_id"], "no", **word)))
        assert await facts(house) == ()
        (call,) = (await house.state()).calls.values()
        assert call.status is CallStatus.FAILED


async def test_what_is_denied_is_not_offered_and_refused_when_it_is_called_anyway():
    model = ScriptedProvider(remember("uses vim"), said("as you like"))
    async with open_house(model) as house:
        ending = await outcome(await house.execute(policy=permitting(memory="deny")))
        assert ending.status is Status.COMPLETED
        assert "memory" not in {tool.name for tool in model.prompts[0].tools}
        assert await facts(house) == ()
        (call,) = (await house.state()).calls.values()
        assert call.status is CallStatus.FAILED


async def test_a_model_that_cannot_drive_the_tool_is_neither_offered_nor_granted_it():
    facts_of = descriptor("openai-compat:a", "m", local=True)
    plain = facts_of.model_copy(
        update={"capabilities": facts_of.capabilities.model_copy(update={"memory": False})}
    )
    model = ScriptedProvider(remember("uses vim"), said("ok"))
    async with open_house(model) as house:
        house.providers._catalog = house.providers._catalog._replace(models=(plain,))
        await outcome(await house.execute())
        assert "memory" not in {tool.name for tool in model.prompts[0].tools}
        assert "not offered" in (await told(house))[0]
        assert await facts(house) == ()


async def test_one_answer_may_ask_for_a_memory_and_for_a_clients_tool():
    model = ScriptedProvider(
        together(
            ("memory", {"operation": "record", "scope": "user", "value": "uses vim"}),
            ("read_file", {"path": "a.txt"}),
            ("memory", {"operation": "record", "scope": "session", "value": "looks at a.txt"}),
        ),
        said("done"),
    )
    async with open_house(model) as house:
        ending = await outcome(await house.execute())
        assert ending.status is Status.AWAITING_TOOL
        (asked,) = ending.data["tool_requests"]
        assert asked["name"] == "read_file"
        assert [each["content"] for each in ending.data["remembered"]] == ["uses vim"]
        ending = await outcome(await house.answer(result(asked["call_id"])))
        assert ending.status is Status.COMPLETED
        assert "remembered" not in ending.data
        assert len(await facts(house, session_id=house.session_id)) == 2
        results = [m for m in model.prompts[-1].messages if m.call_id]
        assert len(results) == 3


async def test_a_restart_between_asking_and_approving_loses_nothing():
    rows = {}
    model = ScriptedProvider(remember("uses vim", scope="session"), said("noted"))
    async with open_house(model, journal=MemoryJournal(rows)) as house:
        session = house.session_id
        ending = await outcome(await house.execute(policy=permitting(memory="ask")))
        (asked,) = ending.data["tool_requests"]
    async with open_house(model, journal=MemoryJournal(rows)) as house:
        house.session_id = session
        await outcome(await house.answer(result(asked["call_id"], decision="approved")))
        assert [text_of(f) for f in await facts(house, session_id=session)] == ["uses vim"]
    async with open_house(ScriptedProvider(said("x")), journal=MemoryJournal(rows)) as house:
        house.session_id = session
        assert isinstance((await house.state()).run.phase, Idle)
        await outcome(await house.execute())
        (prompt,) = house.providers.provider("openai-compat:a").prompts
        assert "uses vim" in prompt.system


async def test_a_break_keeps_the_facts_of_calls_that_were_answered():
    stall = Stall()
    model = ScriptedProvider(remember("uses vim"), [stall])
    async with open_house(model) as house:
        reader = await house.execute()
        await stall.reached.wait()
        assert await facts(house) == ()  # nothing is told before it is written
        await house.tell(Break())
        ending = await outcome(reader)
        assert ending.status is Status.IDLE
        assert [each["content"] for each in ending.data["remembered"]] == ["uses vim"]
        assert [text_of(f) for f in await facts(house)] == ["uses vim"]


async def test_a_turn_interrupted_at_its_checkpoint_remembers_nothing_yet():
    stall = Stall()
    model = ScriptedProvider(called("read_file", '{"path":"a"}'), remember("x"), [stall])
    quick = Durations(orphan_grace=0.0)
    async with open_house(model, durations=quick) as house:
        ending = await outcome(await house.execute())
        call_id = ending.data["tool_requests"][0]["call_id"]
        reader = await house.answer(result(call_id))
        await stall.reached.wait()
        reader.close()
        await stall.left.wait()
        await house.directory._quiet()
        assert isinstance((await house.state()).run.phase, AwaitingTool)
        assert await facts(house) == ()
        model.scripts.extend([remember("x"), said("done")])
        await outcome(await house.answer(result(call_id)))
        assert [text_of(f) for f in await facts(house)] == ["x"]


class StalledFacts(MemoryJournal):
    """A store that does not come back with facts."""

    stalls = 0

    async def facts(self, scope, owner_id):
        if self.stalls:
            self.stalls -= 1
            await trio.sleep_forever()
        return await super().facts(scope, owner_id)


async def test_an_approved_call_does_not_wait_for_the_store_for_ever(autojump_clock):
    model = ScriptedProvider(remember("uses vim"), said("a pity"))
    journal = StalledFacts(shared=True)
    async with open_house(model, journal=journal, durations=Durations(own_tool=2)) as house:
        ending = await outcome(await house.execute(policy=permitting(memory="ask")))
        (asked,) = ending.data["tool_requests"]
        journal.stalls = 1
        ending = await outcome(await house.answer(result(asked["call_id"], decision="approved")))
        assert ending.status is Status.COMPLETED
        assert await told(house) == ["the store did not answer in time"]
        assert await facts(house) == ()


async def test_two_sessions_that_write_one_key_at_once_both_succeed_and_the_last_one_holds():
    stall = Stall()
    model = ScriptedProvider(remember("one", key="k"), [stall], remember("two", key="k"), said("b"))
    async with open_house(model) as house:
        first = await house.execute()
        await stall.reached.wait()
        house.session_id = await another(house)
        assert (await outcome(await house.execute())).status is Status.COMPLETED
        assert [text_of(f) for f in await facts(house)] == ["two"]
        house.session_id = house.first
        await house.tell(Break())
        assert (await outcome(first)).data["remembered"][0]["content"] == "one"
        assert [text_of(f) for f in await facts(house)] == ["one"]  # its commit came last


async def test_a_fact_read_while_a_commit_is_under_way_is_not_kept():
    class Slow(MemoryJournal):
        def __init__(self):
            super().__init__()
            self.go, self.asked = trio.Event(), trio.Event()

        async def facts(self, scope, owner_id):
            found = await super().facts(scope, owner_id)
            self.asked.set()
            await self.go.wait()
            return found

    journal, memories = Slow(), Memories()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(memories.of, USER, journal)
        await journal.asked.wait()
        memories.changed(USER)
        journal.go.set()
    journal.asked = trio.Event()
    await memories.of(USER, journal)
    assert journal.asked.is_set()
    journal.asked = trio.Event()
    await memories.of(USER, journal)
    assert not journal.asked.is_set()


async def test_a_store_that_others_use_is_asked_each_time():
    rows = {}
    ours = MemoryJournal(rows, shared=True)
    model = ScriptedProvider(said("a"), remember("uses vim"), said("b"), said("c"))
    async with open_house(model, journal=ours, router="one") as house:
        await outcome(await house.execute())
        theirs = MemoryJournal(rows, shared=True)
        async with open_house(model, journal=theirs, router="two") as other:
            await outcome(await other.execute())
        await outcome(await house.execute())
        assert "uses vim" in model.prompts[-1].system


async def test_a_fact_written_in_sight_of_restricted_content_never_reaches_a_remote_model():
    remote = ScriptedProvider(said("hi"), provider_id="openai-compat:r", local=False)
    local = ScriptedProvider(remember("the password file is long", key="MARK"), said("noted"))
    private = {
        **request().policy.model_dump(mode="json"),
        "privacy": {"restricted_paths": [".env"], "remote": {"mode": "allow"}},
    }
    files = {
        "instructions": [],
        "files": [{"path": ".env", "content": "X=1", "content_hash": "sha256:0", "required": True}],
    }
    far = descriptor("openai-compat:r", "m")
    async with open_house(local, models=[far]) as house:
        house.provide(remote)
        ending = await outcome(await house.execute(policy=private, attachments=files))
        assert ending.data["remembered"][0]["key"] == "MARK"
        (fact,) = await facts(house)
        assert fact.restricted
        routed = {**private, "routing": {"default": {"model": "openai-compat:r/m"}}}
        house.session_id = await another(house)
        ending = await outcome(await house.execute("hello", policy=routed))
        assert ending.status is Status.COMPLETED
        (prompt,) = remote.prompts
        assert "MARK" not in prompt.system
        assert "password" not in prompt.system
        assert any("MARK" in label for label in ending.data["context"]["excluded"])


@pytest.mark.parametrize(("modes", "scope"), [({}, "session"), ({"memory": "allow"}, "user")])
async def test_an_encrypted_session_keeps_facts_to_itself_unless_the_policy_says_otherwise(
    modes, scope
):
    async with open_house() as house:
        state = await house.state()
    sealed = replace(state.session, key_id="kf_1")
    draft = Draft(SessionState(session=sealed), TickingClock().now())
    draft.begin_run(keyed_id(USER, "run"), request(policy=permitting(**modes)))
    draft.add_user("x")
    arguments = json.dumps({"operation": "record", "scope": "user", "value": "v"})
    call = ToolCallRecord(
        id=keyed_id(USER, "call"),
        tool_name="memory",
        status=CallStatus.PENDING,
        arguments=Plain(arguments),
        created_at=draft.now,
    )
    draft.put_call(call)
    run_own_call(draft, call.id, local=True)
    assert [f.scope.value for f in draft.memory.written] == [scope]


async def test_the_user_deletes_a_fact_and_no_session_recalls_it_any_more():
    model = ScriptedProvider(
        together(
            ("memory", {"operation": "record", "scope": "user", "value": "uses vim"}),
            ("memory", {"operation": "record", "scope": "session", "value": "looks at a.txt"}),
        ),
        said("a"),
        said("b"),
    )
    async with open_house(model) as house:
        await outcome(await house.execute())
        for fact in await facts(house, session_id=house.session_id):
            where = {"session_id": house.session_id}
            assert not await house.directory.forget(OTHER, fact.id)
            assert await house.directory.forget(USER, fact.id, **where)
            assert not await house.directory.forget(USER, fact.id, **where)
        await outcome(await house.execute())
        assert "Remembered" not in model.prompts[-1].system


async def test_a_fact_deleted_while_a_turn_is_served_does_not_come_back_with_it():
    stall = Stall()
    model = ScriptedProvider(
        remember("old", scope="session", key="k"), said("a"),
        remember("new", scope="session", key="k"), [stall], said("b"),
    )  # fmt: skip
    async with open_house(model) as house:
        await outcome(await house.execute())
        reader = await house.execute()
        await stall.reached.wait()
        (fact,) = await facts(house, session_id=house.session_id)
        assert await house.directory.forget(USER, fact.id, session_id=house.session_id)
        await house.tell(Break())
        await outcome(reader)
        assert await facts(house, session_id=house.session_id) == ()
        await outcome(await house.execute())
        assert "Remembered" not in model.prompts[-1].system


async def test_what_a_failed_commit_left_is_read_anew():
    class Failing(MemoryJournal):
        broken = False

        async def record_turn(self, record):
            if self.broken and record.facts:
                raise StorageUnavailable("the disk is full")
            await super().record_turn(record)

    journal = Failing()
    model = ScriptedProvider(said("a"), remember("uses vim"), said("b"), said("c"))
    async with open_house(model, journal=journal) as house:
        await outcome(await house.execute())
        journal.broken = True
        ending = await outcome(await house.execute())
        assert ending.status is Status.ERROR
        assert "remembered" not in ending.data
        journal.broken = False
        house.session_id = await another(house)
        await outcome(await house.execute())
        assert "vim" not in model.prompts[-1].system


async def test_a_skill_on_offer_is_read_when_the_model_asks_for_it():
    offered = {
        "files": [],
        "instructions": [],
        "available_skills": [{"name": "s", "content": SKILL, "path": ".agents/skills/s/SKILL.md"}],
    }
    model = ScriptedProvider(called("use_skill", '{"name":"s"}'), said("done"))
    async with open_house(model) as house:
        heard = await hear(await house.execute(attachments=offered))
        assert heard[-1].status is Status.COMPLETED
        assert not any(isinstance(e, ToolCallRequested | ToolCallStarted) for e in heard)
        assert "s: Writes changelogs" in model.prompts[0].system
        assert "LONG BODY" not in model.prompts[0].system
        (answer,) = await told(house)
        assert "LONG BODY, see rules.md" in answer
        assert ".agents/skills/s" in answer
        assert "description:" not in answer


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [('{"name":"t"}', "there are s"), ("{}", "missing 'name'"), ('{"name":"../s"}', "there are s")],
)
async def test_a_skill_that_is_not_on_offer_is_an_answer_for_the_model(arguments, answer):
    offered = {
        "files": [],
        "instructions": [],
        "available_skills": [{"name": "s", "content": SKILL}],
    }
    model = ScriptedProvider(called("use_skill", arguments), said("done"))
    async with open_house(model) as house:
        await outcome(await house.execute(attachments=offered))
        assert answer in (await told(house))[0]


async def test_use_skill_is_offered_only_where_there_is_a_skill():
    async with open_quick(ScriptedProvider(said("a"))) as house:
        await outcome(await house.execute())
        (prompt,) = house.providers.provider("openai-compat:a").prompts
        assert "use_skill" not in {tool.name for tool in prompt.tools}
        assert "memory" in {tool.name for tool in prompt.tools}


async def test_the_instructions_of_a_restricted_skill_are_refused_to_a_remote_model():
    offered = {
        "files": [],
        "instructions": [],
        "available_skills": [
            {"name": "s", "content": SKILL, "path": "private/s/SKILL.md"},
            {"name": "t", "content": "T", "path": "public/t/SKILL.md"},
        ],
    }
    policy = {
        **request().policy.model_dump(mode="json"),
        "routing": {"default": {"model": "openai-compat:r/m"}},
        "privacy": {"restricted_paths": ["private/**"], "remote": {"mode": "allow"}},
    }
    remote = ScriptedProvider(
        called("use_skill", '{"name":"s"}'),
        said("ok"),
        provider_id="openai-compat:r",
        local=False,
    )
    async with open_house(remote) as house:
        await outcome(await house.execute(policy=policy, attachments=offered))
        assert "a remote model may not see it" in (await told(house))[0]
        assert all("changelogs" not in prompt.system for prompt in remote.prompts)


async def test_a_preview_recalls_what_the_next_turn_will():
    model = ScriptedProvider(
        together(
            ("memory", {"operation": "record", "scope": "user", "value": "uses vim"}),
            ("memory", {"operation": "record", "scope": "session", "value": "looks at a.txt"}),
        ),
        said("a"),
        said("b"),
    )
    async with open_house(model) as house:
        await outcome(await house.execute())
        asked = USER, house.session_id, request("and now"), {}
        previewed = await house.directory.preview(*asked)
        await outcome(await house.execute("and now"))
        assert "uses vim" in previewed.prompt.system
        assert previewed.prompt.system == model.prompts[-1].system


async def test_other_routers_learn_that_a_fact_of_their_session_was_deleted():
    rows = {}
    model = ScriptedProvider(remember("MARK", scope="session"), said("a"), said("b"))
    ours, theirs = MemoryJournal(rows, shared=True), MemoryJournal(rows, shared=True)
    async with (
        open_house(model, journal=ours, router="one") as house,
        open_house(model, journal=theirs, router="two") as other,
    ):
        await outcome(await house.execute())
        where = {"session_id": house.session_id}
        (fact,) = await other.directory.facts(USER, **where)
        assert await other.directory.forget(USER, fact.id, **where)
        await outcome(await house.execute())
        assert "MARK" not in model.prompts[-1].system


async def test_a_memory_may_be_called_on_a_buffered_and_on_a_streamed_turn_alike():
    # Who reads late and who reads at once hear the same: the calls stay inside the router.
    for late in (False, True):
        model = ScriptedProvider(remember("x", scope="session"), said("done"))
        async with open_house(model) as house:
            reader = await house.execute()
            if late:
                await trio.testing.wait_all_tasks_blocked()
            heard = await hear(reader)
            assert [e.type for e in heard if e.type.startswith("tool_call")] == []
            assert heard[-1].status is Status.COMPLETED


async def test_a_fact_deleted_between_a_commit_and_the_turns_end_is_not_taken_back():
    class Late(MemoryJournal):
        """Says that a fact was deleted at the very moment when it has been written."""

        actor = None

        async def record_turn(self, record):
            await super().record_turn(record)
            for fact in record.facts if self.actor else ():
                self.actor.tell_nowait(Forget(fact.id))

    journal = Late()
    model = ScriptedProvider(
        said("a"), remember("MARK", scope="session"), said("b"), said("c"), said("d")
    )
    async with open_house(model, journal=journal) as house:
        await outcome(await house.execute())
        journal.actor = house.directory._awake[house.session_id]
        await outcome(await house.execute())
        await outcome(await house.execute())
        assert "MARK" not in model.prompts[-1].system
