"""Splitting an encrypted turn, the envelopes for it, and what sealed rows weigh: all pure."""

import json
from base64 import b64encode, urlsafe_b64encode
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from smista.core.envelopes import content_size, decoded_size, fault_of, wrong_envelopes
from smista.core.errors import InvalidRequest
from smista.core.gates import DISCLOSURE
from smista.core.history import Message, Role
from smista.core.model_ref import ModelDescriptor
from smista.core.opening import arrive, lost, opened, unopened, without_lost
from smista.core.phase import AwaitingApproval, AwaitingEncrypt, Idle
from smista.core.pipeline import decide
from smista.core.records import (
    ApprovalRecord,
    MemoryRecord,
    MemoryScope,
    SessionState,
    Unsealed,
)
from smista.core.sealing import Told, notes_of, split
from smista.core.secret import Envelope, Opened, Plain
from smista.core.snapshot import Snapshot
from smista.core.totals import Totals
from smista.core.unsealed import listed, references
from smista.storage.memory import MemoryJournal
from tests.actors.house import request
from tests.contract.builders import AT, full_turn, id_of, new_session, plan
from tests.fakes import ALL

KEY = "kf_test"
SOUND = Envelope(
    version=2, algorithm="xchacha20poly1305", key_id=KEY, nonce="A" * 32, ciphertext="A" * 30
)


def sized(tokens: int) -> Envelope:
    """An envelope whose text has as many bytes as *tokens* tokens of ASCII."""
    return SOUND.model_copy(update={"ciphertext": "A" * -(-(tokens * 4 + 16) * 4 // 3)})


# --- envelopes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"version": 1}, None),
        ({"version": 0}, "version"),
        ({"version": 3}, "version"),
        ({"algorithm": "aes"}, "algorithm"),
        ({"key_id": "kf_other"}, "key_id"),
        ({"nonce": "A" * 31}, "nonce"),
        ({"nonce": "A" * 33}, "nonce"),
        ({"nonce": "A" * 31 + "!"}, "nonce"),
        ({"ciphertext": "A" * 21}, "ciphertext"),
        ({"ciphertext": "A" * 22}, None),
        ({"ciphertext": "A" * 22 + "=="}, None),
        ({"ciphertext": "+/-_" * 8}, None),
        ({"ciphertext": "A" * 22 + "\n"}, "ciphertext"),
        ({"ciphertext": ""}, "ciphertext"),
    ],
)
def test_an_envelope_is_judged_by_its_shape_alone(change, fault):
    assert fault_of(SOUND.model_copy(update=change), KEY) == fault


@given(st.binary(max_size=40), st.booleans(), st.booleans())
def test_base64_of_any_kind_has_the_size_of_its_bytes(data, urlsafe, padded):
    text = (urlsafe_b64encode if urlsafe else b64encode)(data).decode()
    assert decoded_size(text if padded else text.rstrip("=")) == len(data)


@pytest.mark.parametrize("version", ["2", 2.0, True, None])
def test_a_version_is_a_whole_number_and_nothing_like_it(version):
    with pytest.raises(ValidationError):
        Envelope.model_validate({**SOUND.model_dump(), "version": version})


def test_a_refusal_names_references_and_no_other_words():
    wanted = {f"message:{id_of(n)}" for n in (1, 2)}
    given = {
        f"message:{id_of(1)}": SOUND.model_copy(update={"version": 9}),
        f"trace:{id_of(3)}": SOUND,
        "a secret in the place of a name": SOUND,
    }
    error = wrong_envelopes(wanted, given, KEY)
    assert isinstance(error, InvalidRequest)
    assert error.details == {
        "missing": [f"message:{id_of(2)}"],
        "unknown": [f"trace:{id_of(3)}"],
        "malformed": {f"message:{id_of(1)}": "version"},
    }
    assert wrong_envelopes(wanted, dict.fromkeys(wanted, SOUND), KEY) is None


# --- the split ------------------------------------------------------------------------------


async def planted_turn():
    """A turn with a mark wherever there is room for text, and the state it leads to."""
    session = await new_session(MemoryJournal(), key_id=KEY)
    record = full_turn(session)
    words, asking_one = record.messages
    called = tuple(call.id for call in record.tool_calls)
    record = replace(
        record,
        messages=(replace(words, content=Plain("PLANTED")), replace(asking_one, calls=called)),
        routing=tuple(replace(each, reason="PLANTED") for each in record.routing),
        references=tuple(replace(r, reason="PLANTED", path="PLANTED") for r in record.references),
        tool_calls=tuple(
            replace(c, arguments=Plain("PLANTED"), result=Plain("PLANTED"), paths=("PLANTED",))
            for c in record.tool_calls
        ),
        diffs=tuple(replace(d, path="PLANTED", body=Plain("PLANTED")) for d in record.diffs),
        plans=(plan(9, content=Plain("PLANTED"), path="PLANTED", content_hash="PLANTED"),),
        facts=(
            MemoryRecord(
                id=id_of(8),
                scope=MemoryScope.SESSION,
                key="PLANTED",
                content=Plain("PLANTED"),
                created_at=AT,
                updated_at=AT,
            ),
        ),
        approvals=tuple(
            ApprovalRecord(
                id=id_of(n),
                target_type=DISCLOSURE,
                target_id=target,
                decision="approved",
                reason="PLANTED",
                created_at=AT,
            )
            for n, target in enumerate(("openai", "openai history", "openai /PLANTED"))
        ),
        answered=tuple(
            replace(
                each,
                outcome={
                    "status": "error",
                    "data": {"error": {"code": "no_route", "message": "PLANTED"}},
                },
            )
            for each in record.answered
        ),
        events=tuple(replace(e, payload={"reason": "PLANTED"}) for e in record.events),
        run=replace(
            record.run,
            phase=AwaitingApproval("a", DISCLOSURE, "Invoke", {"paths": ["PLANTED", "history"]}),
            barred="PLANTED",
            spent=Totals(calls=1, input_tokens=1),
        ),
    )
    return record, SessionState(session=session, input=record.input)


def cut(record, state, *, listing=True):
    return split(
        record,
        state,
        state,
        arrived=Unsealed(),
        told=Told(listing=listing),
        new_id=lambda: id_of(77),
    )


async def test_a_split_record_holds_nothing_readable_and_loses_nothing():
    record, state = await planted_turn()
    done = cut(record, state)
    assert "PLANTED" not in repr(done.record)
    names = references(done.record.run.unsealed)
    assert set(done.state.texts) == set(names) == set(listed(done.record.run.unsealed))
    assert sorted({name.partition(":")[0] for name in names}) == [
        "diff",
        "memory",
        "message",
        "plan",
        "run_input",
        "tool_call",
        "trace",
    ]
    assert all(
        "PLANTED" in text
        for name, text in done.state.texts.items()
        if "calls" not in text and not name.startswith("run_input")
    )
    assert [each.target_id for each in done.state.run.unsealed.approvals] == [
        "openai",
        "openai history",
        "openai (sealed)",
    ]
    assert done.record.run.phase.detail == {"paths": ["history"]}


async def test_what_no_response_listed_is_late_until_one_does():
    record, state = await planted_turn()
    done = cut(record, state, listing=False)
    assert listed(done.state.run.unsealed) == ()
    again = cut(replace(record, run=done.state.run, events=()), done.state)
    assert set(references(done.state.run.unsealed)) <= set(listed(again.state.run.unsealed))


async def test_envelopes_complete_the_rows_and_the_texts_open_them_again():
    record, state = await planted_turn()
    done = cut(record, state)
    sealed = dict.fromkeys(references(done.state.run.unsealed), SOUND)
    live, rows = arrive(done.state, sealed)
    assert live.run.unsealed == Unsealed()
    assert live.texts == {}
    assert len(rows.messages) == 2
    assert rows.batches[0].events[0].payload == SOUND

    woken = replace(done.state, texts={}, input=None)
    assert set(lost(woken)) == set(sealed)
    assert references(without_lost(woken).run.unsealed) == ()
    later, _ = arrive(woken, sealed)
    assert [message.opened for message in later.messages] == [False, False, False]
    assert set(unopened(later.messages)) == {n for n in sealed if n.startswith(("mess", "tool"))}
    whole = opened(later, done.state.texts)
    assert [message.text for message in whole.messages] == ["PLANTED", "reading", "PLANTED"]
    assert whole.messages[2].paths == ("PLANTED",)
    assert whole.input == record.input
    assert notes_of(whole) == done.state.noted
    assert isinstance(whole.facts[0].content, Opened)
    assert whole.facts[0].key == "PLANTED"


async def test_what_was_sealed_of_a_run_does_not_say_which_run_it_was():
    record, state = await planted_turn()
    done = cut(record, state)
    woken = replace(done.state, texts={}, input=None)
    later, _ = arrive(woken, dict.fromkeys(references(done.state.run.unsealed), SOUND))
    name = f"run_input:{record.input.run_id}"
    lie = {**json.loads(done.state.texts[name]), "run_id": "x", "created_at": "2000-01-01T00:00"}
    assert opened(later, {name: json.dumps(lie)}).input == record.input


@pytest.mark.parametrize(
    "notes",
    [
        {"spent": {"calls": "z", "cost": "1"}},
        {"spent": {"calls": 1, "cost": "NaN"}},
        {"ceiling": "NaN"},
        {"barred": 5},
        {"detail": "x"},
        {"disclosed": "abc"},
    ],
)
async def test_notes_of_another_form_are_nonsense(notes):
    record, state = await planted_turn()
    done = cut(record, state)
    woken = replace(done.state, texts={}, input=None)
    later, _ = arrive(woken, dict.fromkeys(references(done.state.run.unsealed), SOUND))
    name = f"run_input:{later.sealed_input.notes_id}"
    assert opened(later, {name: done.state.texts[name]}).noted == done.state.noted
    with pytest.raises(ValueError, match="validation error"):
        opened(later, {name: json.dumps(notes)})


async def test_a_checkpoint_that_waits_for_nothing_is_idle():
    record, state = await planted_turn()
    bare = replace(
        record,
        run=replace(record.run, phase=AwaitingEncrypt(())),
        **dict.fromkeys(("messages", "tool_calls", "diffs", "plans", "facts", "events"), ()),
    )
    assert cut(bare, state).record.run.phase == Idle()


@pytest.mark.parametrize("text", ["no json", "[]", '{"text": 1}', '{"text": "a", "tool_calls": 3}'])
async def test_texts_of_another_form_are_nonsense(text):
    record, state = await planted_turn()
    done = cut(record, state)
    woken, _ = arrive(
        replace(done.state, texts={}), dict.fromkeys(references(done.state.run.unsealed), SOUND)
    )
    with pytest.raises((ValueError, KeyError, TypeError)):
        opened(woken, {f"message:{record.messages[1].uuid}": text})


# --- what sealed rows weigh -----------------------------------------------------------------


def asking(history: tuple[Message, ...], **more) -> Snapshot:
    model = ModelDescriptor(
        provider="openai-compat:a",
        model="m",
        auth="none",
        capabilities=ALL,
        max_context_tokens=400,
        local=True,
    )
    return Snapshot(
        request=request("now"), text="now", run_id="r2", history=history, models=(model,), **more
    )


def remembered(n: int, *, tokens: int, **more) -> Message:
    return Message(
        uuid=str(n),
        role=Role.USER,
        text="",
        run_id="r1",
        sealed=sized(tokens),
        opened=False,
        **more,
    )


def held(snapshot: Snapshot) -> list[str]:
    return [item.label for item in decide(snapshot).items if item.included]


def test_a_row_weighs_the_same_sealed_and_opened():
    closed = tuple(remembered(n, tokens=60) for n in range(6))
    shown = tuple(replace(m, text="é" * 5000, opened=True) for m in closed)
    assert held(asking(closed)) == held(asking(shown))
    assert 1 < len(held(asking(closed))) < 7


def test_equal_sealed_rows_never_merge():
    same = tuple(replace(remembered(n, tokens=2), text="same", opened=True) for n in range(3))
    assert len(held(asking(same))) == 4


def test_what_became_free_is_not_given_to_rows_that_were_not_opened():
    rows = (remembered(0, tokens=90), *(remembered(n, tokens=60) for n in (1, 2, 3)))
    assert len(held(asking(rows))) == 4
    chosen = rows[1:3]
    shown = tuple(replace(m, text="x", opened=True) if m in chosen else m for m in rows)
    assert held(asking(shown, closed=True))[:-1] == ["message 2 (user)", "message 3 (user)"]


def test_the_size_of_a_text_is_read_from_its_ciphertext():
    assert content_size(sized(25)) in (100, 101)
    assert content_size(SOUND.model_copy(update={"ciphertext": "AA"})) == 0


def test_notes_are_json_and_empty_while_there_is_nothing_to_note():
    state = SessionState(session=None)
    assert notes_of(state) == ""
    noted = replace(state, run=replace(state.run, barred="no"), disclosed=frozenset({"a /x"}))
    assert json.loads(notes_of(noted)) == {"barred": "no", "disclosed": ["a /x"]}
