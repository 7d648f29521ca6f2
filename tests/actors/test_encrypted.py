"""Encrypted sessions: what is asked of the client, and that nothing readable is ever stored."""

import json

import pytest
import trio

from smista.core.errors import (
    InternalError,
    InvalidRequest,
    ProviderRejected,
    ProviderUnavailable,
)
from smista.core.events import Status
from smista.core.messages import (
    Break,
    Decrypted,
    DecryptedData,
    Execute,
    Inject,
    InjectData,
    InjectMessage,
    SealedData,
    SealedRows,
)
from smista.core.stream import TextDelta, Usage
from smista.core.unsealed import listed, references
from tests.actors.house import USER, request
from tests.actors.sealed import Watched, open_sealed, restarted
from tests.fakes import ScriptedProvider, Stall, called, descriptor, said

ASKING = {
    **request().policy.model_dump(mode="json"),
    "tools": {"permissions": {"file_read": "allow", "file_write": "ask", "shell": "deny"}},
}
EDIT = json.dumps({"path": "PLANTED.txt", "old": "PLANTED a", "new": "PLANTED b"})


async def test_a_completed_run_is_sealed_and_then_idle():
    async with open_sealed(ScriptedProvider(said("PLANTED answer"))) as client:
        ending = await client.execute("PLANTED prompt")
        assert ending.status is Status.COMPLETED
        assert ending.allowed_continuations == ("sealed", "break")
        assert ending.data["message"]["content"] == "PLANTED answer"
        kinds = {name.partition(":")[0] for name in ending.data["to_encrypt"]}
        assert kinds == {"message", "trace"}
        await client.finish(ending)
        assert await client.said() == [
            ("user", "PLANTED prompt"),
            ("assistant", "PLANTED answer"),
        ]


async def test_a_trace_is_sealed_event_by_event_and_usage_counts_without_figures():
    async with open_sealed(ScriptedProvider(said("PLANTED"))) as client:
        await client.finish(await client.execute("PLANTED"))
        directory = client.house.directory
        events = await directory.trace(USER, client.session_id, offset=0, limit=100)
        (usage,) = await directory.usage(USER, client.session_id)
        opened = [json.loads(client.sealer.open_one(f"trace:{e.id}", e.payload)) for e in events]
        assert [each["type"] for each in opened] == [e.event_type.value for e in events]
        assert {"cost", "message", "routing_decision"} <= {each["type"] for each in opened}
        assert (usage.requests, usage.input_tokens, usage.cost) == (1, None, None)


async def test_history_is_opened_once_for_as_long_as_the_session_is_awake():
    model = ScriptedProvider(said("PLANTED one"), said("two"), said("three"))
    async with open_sealed(model) as client:
        await client.finish(await client.execute("PLANTED first"))
        async with restarted(client) as again:
            await again.finish(await again.execute("second"))
            await again.finish(await again.execute("third"))
            assert [len(each) for each in again.opened] == [2]
        texts = [message.text for message in model.prompts[2].messages]
        assert texts == ["PLANTED first", "PLANTED one", "second", "two", "third"]


async def test_tools_are_run_and_their_results_sealed_by_the_client():
    model = ScriptedProvider(called("read_file", '{"path": "PLANTED"}'), said("done"))
    async with open_sealed(model) as client:
        ending = await client.execute("look")
        assert ending.status is Status.AWAITING_TOOL
        kinds = {name.partition(":")[0] for name in ending.data["to_encrypt"]}
        assert kinds == {"message", "trace", "run_input"}
        ending = await client.tell(client.results(ending, "PLANTED content"))
        await client.finish(ending)
        *_, result, answer = await client.said()
        assert (result, answer) == (("tool", "PLANTED content"), ("assistant", "done"))
        async with restarted(client) as again:
            model.scripts.append(said("more"))
            await again.finish(await again.execute("go on"))
            texts = [message.text for message in model.prompts[-1].messages]
            assert texts == ["look", "", "PLANTED content", "done", "go on"]
            assert model.prompts[-1].messages[1].calls[0].arguments == '{"path": "PLANTED"}'


async def test_a_denied_call_is_answered_by_the_router_and_sealed_as_an_entry():
    model = ScriptedProvider(called("shell", '{"command": "PLANTED"}'), said("no"))
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", policy=ASKING)
        (entry,) = (
            json.loads(text)
            for name, text in ending.data["to_encrypt"].items()
            if name.startswith("tool_call:")
        )
        assert (entry["is_error"], entry["paths"]) == (True, [])
        await client.finish(ending)
        (call,) = (await client.state()).calls.values()
        assert (call.format, call.status.value) == ("entry", "failed")


async def test_a_diff_is_sealed_with_its_path():
    model = ScriptedProvider(called("edit_file", EDIT), said("done"))
    async with open_sealed(model) as client:
        ending = await client.execute("edit", policy=ASKING)
        diffs = [
            json.loads(text)
            for name, text in ending.data["to_encrypt"].items()
            if name.startswith("diff:")
        ]
        assert [each["path"] for each in diffs] == ["PLANTED.txt"]
        ending = await client.tell(client.results(ending, "PLANTED", decision="approved"))
        await client.finish(ending)
        (diff,) = (await client.state()).diffs.values()
        assert (diff.status.value, diff.path) == ("applied", "")


async def test_a_plan_is_sealed_and_carried_out():
    model = ScriptedProvider(said("PLANTED plan"), said("done"))
    async with open_sealed(model) as client:
        ending = await client.execute("x", input={"text": "PLANTED", "command": "plan"})
        assert ending.status is Status.AWAITING_APPROVAL
        assert ending.data["approval"]["detail"]["content"] == "PLANTED plan"
        ending = await client.tell(client.decision(ending, "approved", "PLANTED reason"))
        assert ending.status is Status.COMPLETED
        await client.finish(ending)
        plan = (await client.state()).plan
        assert (plan.status.value, plan.path, plan.content_hash) == ("approved", "", "")


async def test_a_rejected_plan_asks_for_what_is_left_to_seal():
    async with open_sealed(ScriptedProvider(said("PLANTED plan"))) as client:
        ending = await client.execute("x", input={"text": "PLANTED", "command": "plan"})
        ending = await client.tell(client.decision(ending, "rejected"))
        assert ending.status is Status.AWAITING_ENCRYPT
        assert ending.allowed_continuations == ("sealed", "break")
        await client.finish(ending)


REMOTE = {**ASKING, "privacy": {"remote": {"mode": "ask"}}}
FILES = {
    "files": [
        {"path": p, "content": f"PLANTED in {p}", "content_hash": "x", "required": True}
        for p in ("PLANTED.py", "/PLANTED/out.py")
    ],
    "instructions": [{"source": "PLANTED.md", "content": "PLANTED"}],
}


async def test_what_may_be_disclosed_is_asked_and_remembered_without_its_name():
    model = ScriptedProvider(said("a"), said("b"), local=False)
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", policy=REMOTE, attachments=FILES)
        assert ending.data["approval"]["detail"]["paths"] == ["PLANTED.py", "/PLANTED/out.py"]
        ending = await client.tell(client.decision(ending, "approved", "PLANTED"))
        await client.finish(ending)
        ending = await client.execute("PLANTED", policy=REMOTE, attachments=FILES)
        assert ending.data["approval"]["detail"]["paths"] == ["history"]


async def test_a_refused_disclosure_survives_a_restart():
    near = ScriptedProvider(said("near"), provider_id="openai-compat:b", local=True)
    model = ScriptedProvider(local=False)
    policy = {
        **REMOTE,
        "routing": {"default": {"model": "openai-compat:a/m", "fallbacks": ["openai-compat:b/m"]}},
    }
    async with open_sealed(model, near) as client:
        ending = await client.execute("PLANTED", policy=policy, attachments=FILES)
        async with restarted(client) as again:
            ending = await again.through(await again.tell(client.decision(ending, "rejected")))
            assert ending.status is Status.COMPLETED
            assert ending.data["message"]["content"] == "near"


async def test_a_break_at_a_pause_asks_for_envelopes_and_one_more_ends_it():
    async with open_sealed(ScriptedProvider(called("read_file", '{"path": "a"}'))) as client:
        await client.execute("PLANTED")
        ending = await client.tell(Break())
        assert ending.status is Status.AWAITING_ENCRYPT
        assert any(name.startswith("tool_call:") for name in ending.data["to_encrypt"])
        assert (await client.tell(Break())).status is Status.IDLE
        ending = await client.execute(
            "x", input={"text": "PLANTED 2", "command": "plan"}, policy={**ASKING, "routing": {}}
        )
        assert ending.status is Status.ERROR


async def test_a_break_while_the_model_speaks_asks_for_what_was_said(nursery):
    stall = Stall()
    model = ScriptedProvider([TextDelta(text="PLANTED half"), Usage(input_tokens=1), stall])
    async with open_sealed(model) as client:
        first: list = []

        async def run():
            first.append(await client.execute("PLANTED"))

        nursery.start_soon(run)
        await stall.reached.wait()
        ending = await client.tell(Break())
        await trio.testing.wait_all_tasks_blocked()
        assert first[0].status is Status.IDLE
        assert ending.status is Status.AWAITING_ENCRYPT
        await client.finish(ending)
        assert await client.said() == [("user", "PLANTED"), ("assistant", "PLANTED half")]
        assert (await client.state()).messages[-1].interrupted


async def test_new_input_rides_the_next_response(nursery):
    stall = Stall()
    model = ScriptedProvider([TextDelta(text="PLANTED half"), stall], said("other"))
    async with open_sealed(model) as client:
        nursery.start_soon(client.execute, "PLANTED")
        await stall.reached.wait()
        words = InjectMessage(text="PLANTED instead")
        ending = await client.tell(Inject(data=InjectData(messages=(words,))))
        assert ending.status is Status.COMPLETED
        await client.finish(ending)
        assert [text for _, text in await client.said()] == [
            "PLANTED",
            "PLANTED half",
            "PLANTED instead",
            "other",
        ]


@pytest.mark.parametrize("fault", [ProviderRejected("PLANTED"), ProviderUnavailable("PLANTED")])
async def test_what_an_error_left_rides_the_next_response(fault):
    model = ScriptedProvider([TextDelta(text="PLANTED half"), fault], said("well"))
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED")
        assert (ending.status, "to_encrypt" in ending.data) == (Status.ERROR, False)
        await client.finish(await client.execute("again"))
        assert len(await client.said()) == 4


async def test_what_a_model_calls_a_tool_is_not_stored_unless_it_is_one():
    model = ScriptedProvider(called("PLANTED_tool", "{}"), said("well"))
    async with open_sealed(model) as client:
        await client.finish(await client.execute("look"))
        assert [text for _, text in await client.said()][-1] == "well"


async def test_a_client_may_ask_for_what_an_error_left():
    model = ScriptedProvider([TextDelta(text="PLANTED half"), ProviderRejected("PLANTED")])
    async with open_sealed(model) as client:
        await client.execute("PLANTED")
        ending = await client.tell(Break())
        assert ending.status is Status.AWAITING_ENCRYPT
        await client.finish(ending)
        assert await client.said() == [("user", "PLANTED"), ("assistant", "PLANTED half")]
        assert (await client.tell(Break())).status is Status.IDLE


async def test_a_fallback_leaves_nothing_readable():
    near = ScriptedProvider(said("near"), provider_id="openai-compat:b", local=True)
    model = ScriptedProvider(*([[ProviderUnavailable("PLANTED")]] * 3))
    policy = {
        **ASKING,
        "routing": {"default": {"model": "openai-compat:a/m", "fallbacks": ["openai-compat:b/m"]}},
    }
    async with open_sealed(model, near) as client:
        ending = await client.execute("PLANTED", policy=policy)
        assert ending.status is Status.COMPLETED
        await client.finish(ending)


# --- what is refused ------------------------------------------------------------------------


async def test_wrong_envelopes_are_refused_by_name_and_the_pause_stays():
    async with open_sealed(ScriptedProvider(said("a"))) as client:
        ending = await client.execute("PLANTED")
        good = client.seal(ending)
        name = next(iter(good))
        bad = [
            {k: v for k, v in good.items() if k != name},
            {**good, f"message:{client.session_id}": good[name]},
            *(
                {**good, name: good[name].model_copy(update=change)}
                for change in (
                    {"version": 3},
                    {"algorithm": "none"},
                    {"key_id": "kf_other"},
                    {"nonce": "AAAA"},
                    {"nonce": "?" * 32},
                    {"ciphertext": "AAAA"},
                    {"ciphertext": "A" * 29},
                )
            ),
        ]
        before = await client.state()
        for envelopes in bad:
            with pytest.raises(InvalidRequest) as caught:
                await client.tell(SealedRows(data=SealedData(encrypted=envelopes)))
            details = caught.value.details
            named = [*details.get("missing", ()), *details.get("unknown", ())]
            named += details.get("malformed", {})
            assert named in ([name], [f"message:{client.session_id}"])
            assert await client.state() == before
        await client.finish(ending)


async def test_both_alphabets_and_both_versions_are_taken():
    async with open_sealed(ScriptedProvider(said("a"))) as client:
        ending = await client.execute("x")
        good = {
            name: each.model_copy(
                update={
                    "version": 1,
                    "nonce": each.nonce.replace("-", "+").replace("_", "/"),
                    "ciphertext": each.ciphertext + "=" * (-len(each.ciphertext) % 4),
                }
            )
            for name, each in client.seal(ending).items()
        }
        ending = await client.tell(SealedRows(data=SealedData(encrypted=good)))
        assert ending.status is Status.IDLE


async def test_an_incomplete_opening_is_refused():
    async with open_sealed(ScriptedProvider(said("a"), said("b"))) as client:
        await client.finish(await client.execute("x"))
        async with restarted(client) as again:
            ending = await again.tell(Execute(request=request("y")))
            assert ending.status is Status.AWAITING_DECRYPT
            sealed = again.seal(ending)
            with pytest.raises(InvalidRequest, match="2 of 2 are missing"):
                await again.tell(Decrypted(data=DecryptedData(plaintext={}, encrypted=sealed)))
            assert (await again.through(ending)).status is Status.COMPLETED


async def test_swapped_rows_do_not_open():
    async with open_sealed(ScriptedProvider(said("a"))) as client:
        ending = await client.execute("x")
        one, two, *_ = client.seal(ending).items()
        with pytest.raises(Exception, match="does not open"):
            client.sealer.open_one(one[0], two[1])


# --- restarts -------------------------------------------------------------------------------


async def test_after_a_restart_a_continuation_with_envelopes_goes_on():
    model = ScriptedProvider(called("read_file", '{"path": "PLANTED"}'), said("done"))
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED look")
        async with restarted(client) as again:
            results = client.results(ending, "PLANTED content")
            paused = await again.tell(results)
            assert paused.status is Status.AWAITING_DECRYPT
            kinds = sorted(name.partition(":")[0] for name in paused.data["to_decrypt"])
            assert kinds == ["message", "message", "run_input", "run_input"]
            ending = await again.through(paused)
            assert ending.status is Status.COMPLETED
            await again.finish(ending)
            assert [m.text for m in model.prompts[1].messages] == [
                "PLANTED look",
                "",
                "PLANTED content",
            ]
            assert ending.data["usage"]["input_tokens"] == 20


async def test_the_message_whose_output_was_lost_is_served_anew():
    model = ScriptedProvider(
        called("read_file", '{"path": "a"}'), said("PLANTED lost"), said("found")
    )
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", key="k")
        results = client.results(ending, "PLANTED")
        assert (await client.tell(results)).status is Status.COMPLETED
        async with restarted(client) as again:
            ending = await again.through(await again.tell(results))
            assert ending.data["message"]["content"] == "found"
            await again.finish(ending)
            roles = [role for role, _ in await again.said()]
            assert roles == ["user", "assistant", "tool", "assistant"]


async def test_a_lost_task_is_served_anew_under_its_key():
    model = ScriptedProvider(said("lost"), said("found"))
    async with open_sealed(model) as client:
        await client.execute("PLANTED", key="k")
        async with restarted(client) as again:
            ending = await again.execute("PLANTED", key="k")
            assert ending.data["message"]["content"] == "found"
            await again.finish(ending)
            assert [text for _, text in await again.said()] == ["PLANTED", "found"]


async def test_a_new_task_gives_up_what_was_lost():
    model = ScriptedProvider(said("lost"), said("new"))
    async with open_sealed(model) as client:
        await client.execute("PLANTED lost")
        async with restarted(client) as again:
            await again.finish(await again.execute("PLANTED new"))
            assert [text for _, text in await again.said()] == ["PLANTED new", "new"]


async def test_what_was_lost_can_still_be_sealed_by_who_heard_it():
    async with open_sealed(ScriptedProvider(said("PLANTED heard"))) as client:
        ending = await client.execute("PLANTED")
        async with restarted(client) as again:
            detail = await again.house.directory.fetch(USER, client.session_id)
            run = detail["metadata"]["run"]
            assert run["status"] == "awaiting_encrypt"
            assert sorted(run["data"]["lost"]) == sorted(ending.data["to_encrypt"])
            await again.finish(ending)
            assert await again.said() == [("user", "PLANTED"), ("assistant", "PLANTED heard")]


async def test_a_break_after_a_restart_ends_the_run():
    async with open_sealed(ScriptedProvider(called("read_file", '{"path": "a"}'))) as client:
        await client.execute("PLANTED")
        async with restarted(client) as again:
            # Nothing was sealed of it, so nothing is left of it.
            assert (await again.tell(Break())).status is Status.IDLE
            state = await again.state()
            assert (state.messages, state.calls) == ((), {})


async def test_new_input_to_a_run_whose_start_is_lost_is_refused():
    async with open_sealed(ScriptedProvider(called("read_file", '{"path": "a"}'))) as client:
        await client.execute("PLANTED")
        async with restarted(client) as again:
            words = Inject(data=InjectData(messages=(InjectMessage(text="x"),)))
            with pytest.raises(InvalidRequest, match="send a new execute"):
                await again.tell(words)


async def test_an_awake_session_tells_its_pause_again():
    async with open_sealed(ScriptedProvider(called("read_file", '{"path": "a"}'))) as client:
        ending = await client.execute("PLANTED")
        detail = await client.house.directory.fetch(USER, client.session_id)
        assert detail["metadata"]["run"]["data"] == ending.data


async def test_the_same_answer_sent_again_is_told_again_with_what_is_to_be_sealed():
    model = ScriptedProvider(called("read_file", '{"path": "a"}'), said("done"))
    async with open_sealed(model) as client:
        results = client.results(await client.execute("PLANTED"))
        first, second = await client.tell(results), await client.tell(results)
        assert first == second
        await client.finish(first)
        sealing = client.sealing(first)
        assert (await client.tell(sealing)).status is Status.IDLE


async def test_text_that_waits_keeps_a_session_awake(autojump_clock):
    async with open_sealed(ScriptedProvider(said("a"), said("b"))) as client:
        ending = await client.execute("PLANTED")
        await trio.sleep(1700)
        assert client.house.directory.awake == 1
        await client.finish(ending)
        await trio.sleep(61)
        assert client.house.directory.awake == 0


async def test_preview_and_execute_agree_without_opening_anything():
    model = ScriptedProvider(*(said(f"answer {n} " + "x" * 400) for n in range(6)))
    small = descriptor("openai-compat:a", "small", local=True, max_context_tokens=1200)
    policy = {**ASKING, "routing": {"default": {"model": "openai-compat:a/small"}}}
    async with open_sealed(model, models=[small]) as client:
        for n in range(5):
            await client.finish(await client.execute(f"PLANTED {n} é" + "y" * 300))
        async with restarted(client) as again:
            wanted = await again.house.directory.preview(
                USER, client.session_id, request("PLANTED last", policy=policy), {}
            )
            ending = await again.execute("PLANTED last", policy=policy)
            assert ending.status is Status.COMPLETED
            held = [item.label for item in wanted.included if item.kind == "message"]
            shown = list(ending.data["context"]["included"])
            assert 1 < len(held) < 11
            assert shown == [label for label in held if label != "the prompt"]
            assert len(again.opened[0]) == len(shown)


# --- memory ---------------------------------------------------------------------------------

FACT = json.dumps(
    {"operation": "record", "scope": "session", "key": "PLANTED key", "value": "PLANTED fact"}
)
REMEMBERING = {
    **request().policy.model_dump(mode="json"),
    "tools": {"permissions": {"memory": "allow"}},
}


async def test_what_is_remembered_is_sealed_and_opened_with_the_history():
    model = ScriptedProvider(called("memory", FACT), said("noted"), said("known"))
    async with open_sealed(model) as client:
        await client.finish(await client.execute("PLANTED", policy=REMEMBERING))
        (fact,) = (await client.state()).facts
        assert fact.key is None
        assert json.loads(client.sealed[f"memory:{fact.id}"]) == {
            "key": "PLANTED key",
            "content": "PLANTED fact",
        }
        async with restarted(client) as again:
            wanted = await again.house.directory.preview(
                USER, client.session_id, request("again", policy=REMEMBERING), {}
            )
            ending = await again.execute("again", policy=REMEMBERING)
            assert len(again.opened) == 1
            assert f"memory:{fact.id}" in again.opened[0]
            assert "PLANTED fact" in model.prompts[-1].system
            assert "memory" in {item.kind for item in wanted.included}
            await again.finish(ending)


async def test_a_fact_that_its_user_deletes_before_it_is_sealed_is_not_stored():
    model = ScriptedProvider(called("memory", FACT), said("noted"))
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", policy=REMEMBERING)
        (name,) = (each for each in ending.data["to_encrypt"] if each.startswith("memory:"))
        directory = client.house.directory
        await directory.forget(USER, name.removeprefix("memory:"), session_id=client.session_id)
        await client.finish(ending)
        assert (await client.state()).facts == ()


async def test_a_users_fact_stays_in_the_session_unless_the_policy_allows_it():
    fact = json.dumps({"operation": "record", "scope": "user", "value": "PLANTED fact"})
    model = ScriptedProvider(called("memory", fact), said("noted"))
    policy = {**REMEMBERING, "tools": {"permissions": {}}}
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", policy=policy)
        while ending.status is Status.AWAITING_TOOL:
            ending = await client.tell(client.results(ending, "", decision="approved"))
        await client.finish(ending)
        assert len((await client.state()).facts) == 1
        assert await client.house.directory.facts(USER) == ()


async def test_a_run_that_was_restarted_goes_on_after_an_approved_call_of_the_routers():
    model = ScriptedProvider(called("memory", FACT), said("well"))
    policy = {**REMEMBERING, "tools": {"permissions": {"memory": "ask"}}}
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", policy=policy)
        assert ending.status is Status.AWAITING_TOOL
        async with restarted(client) as again:
            results = client.results(ending, "", decision="approved")
            ending = await again.through(await again.tell(results))
            assert ending.status is Status.COMPLETED
            await again.finish(ending)
            # What the call asked for was sealed when the user's word came.
            assert (await again.state()).facts == ()


async def test_restricted_results_are_forgotten_with_the_run_and_sealed_anew():
    model = ScriptedProvider(called("read_file", '{"path": "keys/PLANTED"}'), said("done"))
    policy = {**ASKING, "privacy": {"restricted_paths": ["keys/**"]}}
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", policy=policy)
        results = client.results(ending, "PLANTED secret", paths=("keys/PLANTED",))
        ending = await client.tell(results)
        (call_id,) = (each.call_id for each in results.data.results)
        entry = json.loads(ending.data["to_encrypt"][f"tool_call:{call_id}"])
        assert entry["content"] == "[restricted: keys/PLANTED]"
        await client.finish(ending)
        assert "PLANTED secret" not in [text for _, text in await client.said()]


async def test_a_restart_between_asking_for_texts_and_getting_them_loses_nothing():
    model = ScriptedProvider(said("one"), said("two"))
    async with open_sealed(model) as client:
        await client.finish(await client.execute("PLANTED first"))
        async with restarted(client) as second:
            ending = await second.tell(
                Execute(request=request("x", input={"text": "PLANTED second", "command": "review"}))
            )
            assert ending.status is Status.AWAITING_DECRYPT
        async with restarted(client) as third:
            ending = await third.tell(second.decrypted(ending))
            # What was opened is there, what was just sealed has to be opened as well.
            assert ending.status is Status.AWAITING_DECRYPT
            assert len(ending.data["to_decrypt"]) == 2
            ending = await third.through(ending)
            assert ending.data["classification"]["intent"] == "review"
            await third.finish(ending)
            texts = [message.text for message in model.prompts[-1].messages]
            assert texts == ["PLANTED first", "one", "PLANTED second"]


async def test_an_encrypted_session_is_served_under_leases_as_well():
    model = ScriptedProvider(called("read_file", '{"path": "a"}'), said("done"), said("more"))
    async with open_sealed(model, journal=Watched(shared=True)) as client:
        ending = await client.tell(client.results(await client.execute("PLANTED"), "PLANTED"))
        await client.finish(ending)
        await client.finish(await client.execute("more"))
        assert client.opened == []
        assert len(await client.said()) == 6


async def test_a_fetched_session_says_how_its_sealed_texts_look():
    model = ScriptedProvider(
        called("read_file", '{"path": "a"}'), called("shell", '{"command": "a"}'), said("done")
    )
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", policy=ASKING)
        await client.finish(await client.tell(client.results(ending)))
        detail = await client.house.directory.fetch(USER, client.session_id)
        forms = [(each["role"], each["format"]) for each in detail["messages"]]
        assert forms == [
            ("user", "text"),
            ("assistant", "calls"),
            ("tool", "text"),
            ("assistant", "calls"),
            ("tool", "entry"),
            ("assistant", "text"),
        ]


async def test_a_run_that_began_with_too_much_to_be_sealed_goes_on_but_not_after_a_restart():
    model = ScriptedProvider(called("read_file", '{"path": "a"}'), said("done"))
    large = {
        "files": [
            {"path": "a", "content": "x" * 5_000_000, "content_hash": "h", "required": False}
        ],
        "instructions": [],
    }
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED", attachments=large)
        assert not any(name.startswith("run_input:") for name in ending.data["to_encrypt"])
        async with restarted(client) as again:
            with pytest.raises(InvalidRequest, match="send a new execute"):
                await again.tell(client.results(ending))
        assert (await client.tell(client.results(ending))).status is Status.COMPLETED


async def test_a_plan_is_decided_on_after_a_restart():
    model = ScriptedProvider(said("PLANTED plan"), said("done"))
    async with open_sealed(model) as client:
        ending = await client.execute("x", input={"text": "PLANTED", "command": "plan"})
        async with restarted(client) as again:
            ending = await again.through(await again.tell(client.decision(ending, "approved")))
            assert ending.data["message"]["content"] == "done"
            await again.finish(ending)
            state = await again.state()
            assert state.plan.status.value == "approved"
            assert json.loads(client.sealed[f"plan:{state.plan.id}"])["content"] == "PLANTED plan"
        prompt = model.prompts[-1]
        assert [m.text for m in prompt.messages][:2] == ["PLANTED", "PLANTED plan"]


async def test_a_cost_is_asked_about_again_after_a_restart_for_its_figures_are_sealed():
    priced = descriptor(
        "openai-compat:a",
        "priced",
        local=True,
        input_cost_per_million_tokens="1000",
        output_cost_per_million_tokens="1000",
    )
    policy = {
        **ASKING,
        "routing": {
            "default": {"model": "openai-compat:a/priced"},
            "rules": [
                {
                    "name": "r",
                    "intent": "chat",
                    "model": "openai-compat:a/priced",
                    "effort": "low",
                    "cost_limit": "0.001",
                }
            ],
        },
        "classification": {"default_intent": "chat"},
    }
    async with open_sealed(ScriptedProvider(said("done")), models=[priced]) as client:
        ending = await client.execute("PLANTED", policy=policy)
        assert ending.data["approval"]["kind"] == "cost_limit"
        async with restarted(client) as again:
            ending = await again.through(await again.tell(client.decision(ending, "approved")))
            assert ending.data["approval"]["kind"] == "cost_limit"
            ending = await again.tell(again.decision(ending, "approved"))
            assert ending.status is Status.COMPLETED
            await again.finish(ending)


async def test_runs_that_fail_for_ever_do_not_pile_up_more_than_can_be_sealed(monkeypatch):
    monkeypatch.setattr("smista.core.sealing.EVENTS_AT_MOST", 20)
    model = ScriptedProvider(*([[ProviderRejected("PLANTED")]] * 9), said("well"))
    async with open_sealed(model) as client:
        for _ in range(9):
            assert (await client.execute("PLANTED")).status is Status.ERROR
        ending = await client.execute("PLANTED")
        traces = [name for name in ending.data["to_encrypt"] if name.startswith("trace:")]
        assert len(traces) <= 30
        await client.finish(ending)
        assert len(await client.said()) == 11


async def test_what_one_request_cannot_carry_is_sealed_in_several(monkeypatch):
    monkeypatch.setattr("smista.core.sealing.LISTED_AT_MOST", 12_000)
    model = ScriptedProvider(*([[ProviderRejected("PLANTED")]] * 4), said("well"))
    async with open_sealed(model) as client:
        for n in range(4):
            await client.execute(f"PLANTED {n} " + "x" * 8_000)
        ending, rounds = await client.execute("PLANTED last"), 0
        while ending.status is not Status.IDLE:
            assert sum(map(len, ending.data["to_encrypt"].values())) <= 12_000
            ending, rounds = await client.tell(client.sealing(ending)), rounds + 1
        assert rounds > 3
        assert [text[:9] for _, text in await client.said()] == [
            *(f"PLANTED {n}" for n in range(4)),
            "PLANTED l",
            "well",
        ]


async def test_what_never_fits_into_a_request_is_given_up_and_the_session_goes_on(monkeypatch):
    monkeypatch.setattr("smista.core.sealing.LISTED_AT_MOST", 12_000)
    async with open_sealed(ScriptedProvider(said("one"), said("two"))) as client:
        await client.finish(await client.execute("PLANTED " + "\u4e16" * 5_000))
        await client.finish(await client.execute("PLANTED again"))
        assert [text for _, text in await client.said()] == ["one", "PLANTED again", "two"]


async def test_a_row_that_no_response_listed_is_given_up_with_its_router(monkeypatch):
    monkeypatch.setattr("smista.core.sealing.LISTED_AT_MOST", 12_000)
    model = ScriptedProvider([ProviderRejected("PLANTED")], said("well"))
    async with open_sealed(model) as client:
        await client.execute("PLANTED " + "x" * 11_000)
        ending = await client.execute("PLANTED " + "y" * 11_000)
        assert len(ending.data["to_encrypt"]) == 1
        async with restarted(client) as again:
            assert (await again.tell(again.sealing(ending))).status is Status.IDLE
            assert len(await again.said()) == 1


async def test_a_session_that_waits_tells_only_what_its_answer_has_to_seal(nursery):
    stall = Stall()
    model = ScriptedProvider(
        called("read_file", '{"path": "a"}'), [TextDelta(text="PLANTED half"), stall]
    )
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED")
        results = client.results(ending)
        nursery.start_soon(client.tell, results)
        await stall.reached.wait()
        await client.house.directory.drain(grace=0, settle=5)
        detail = await client.house.directory.fetch(USER, client.session_id)
        told = detail["metadata"]["run"]["data"]["to_encrypt"]
        state = client.house.directory._awake[client.session_id].state
        assert set(told) == set(listed(state.run.unsealed))


async def test_a_fault_of_the_router_is_answered_and_closes_the_session_only(monkeypatch):
    async with open_sealed(ScriptedProvider(said("one"))) as client:
        with monkeypatch.context() as broken:
            broken.setattr("actors.session.wrong_answer", lambda *_: 1 / 0)
            with pytest.raises(InternalError):
                await client.execute("PLANTED")
        await client.finish(await client.execute("PLANTED"))


async def test_texts_nested_beyond_measure_are_refused():
    model = ScriptedProvider(called("read_file", '{"path": "a"}'), said("one"), said("two"))
    async with open_sealed(model) as client:
        ending = await client.execute("PLANTED")
        await client.finish(await client.tell(client.results(ending)))
        async with restarted(client) as again:
            ending = await again.tell(Execute(request=request("PLANTED")))
            deep = dict.fromkeys(ending.data["to_decrypt"], "[" * 200_000)
            data = DecryptedData(plaintext=deep, encrypted=again.seal(ending))
            with pytest.raises(InvalidRequest, match="form it was sealed in"):
                await again.tell(Decrypted(data=data))
            await again.finish(await again.through(ending))


async def test_nothing_of_a_run_but_its_rows_is_left_when_it_is_over():
    model = ScriptedProvider(called("read_file", '{"path": "a"}'), said("done"))
    async with open_sealed(model) as client:
        ending = await client.tell(client.results(await client.execute("PLANTED")))
        assert (await client.state()).sealed_input is not None
        await client.finish(ending)
        state = await client.state()
        assert (state.sealed_input, state.run.before) == (None, None)
        assert references(state.run.unsealed) == ()


@pytest.mark.parametrize("kind", ["paused", "unsealed"])
async def test_an_encrypted_session_is_archived_and_brought_back_without_what_was_not_sealed(kind):
    first = called("read_file", '{"path": "a"}') if kind == "paused" else said("PLANTED")
    async with open_sealed(ScriptedProvider(first, said("again"))) as client:
        await client.execute("PLANTED")
        directory = client.house.directory
        await directory.update(USER, client.session_id, title=None, archived=True)
        await directory.update(USER, client.session_id, title=None, archived=False)
        assert (await client.state()).run.phase.name == "Idle"
        await client.finish(await client.execute("more"))
        assert await client.said() == [("user", "more"), ("assistant", "again")]
        await directory.delete(USER, client.session_id)
        assert client.session_id not in repr(client.house.journal.kept)
