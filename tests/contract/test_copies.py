"""A session that is read out and put in again is the same session."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from smista.core.errors import InvalidRequest
from smista.core.records import CallStatus, DiffStatus, MemoryRecord, MemoryScope, Session
from smista.core.secret import Plain, Sealed
from smista.core.session_copy import NOT_RUN, SessionCopy, as_new, record_of, settled
from smista.core.session_export import SessionExport, copy_of, export_of
from smista.ports.journal import Journal
from tests.contract.builders import (
    AT,
    ENVELOPE,
    OTHER,
    USER,
    calling,
    cost,
    event,
    full_turn,
    id_of,
    new_session,
    said,
    turn,
)
from tests.contract.stores import STORES
from tests.contract.turns import turns


def _document(copy: SessionCopy) -> dict:
    return json.loads(export_of(copy).model_dump_json(exclude_none=True))


def _back(document: dict, user: str = USER) -> SessionCopy:
    return copy_of(SessionExport.model_validate(document), user)


def _fact(number: int) -> MemoryRecord:
    return MemoryRecord(
        id=id_of(700 + number),
        scope=MemoryScope.SESSION,
        content=Plain("tabs"),
        created_at=AT,
        updated_at=AT,
        key="style",
    )


async def _filled(journal: Journal) -> Session:
    session = await new_session(journal, scope="/p")
    first = replace(full_turn(session), facts=(_fact(0),))
    await journal.record_turn(first)
    second = turn(
        session,
        messages=(said(2, "user", "more"),),
        events=(event(2, payload={"role": "user", "none": None}), cost(3, cost="0.25")),
        first_event=2,
        first_reference=2,
    )
    await journal.record_turn(second)
    return session


async def test_what_is_read_out_is_all_that_the_session_holds(journal: Journal):
    session = await _filled(journal)
    copy = await journal.read_out(session)
    assert [message.n for message in copy.messages] == [0, 1, 2]
    assert [len(batch.events) for batch in copy.batches] == [2, 2]
    assert copy.facts == (_fact(0),)
    whole = full_turn(session)
    assert (copy.tool_calls, copy.diffs, copy.plans) == (
        whole.tool_calls,
        whole.diffs,
        whole.plans,
    )
    assert (copy.approvals, copy.routing) == (whole.approvals, whole.routing)
    assert copy.references == whole.references


async def test_a_document_holds_the_whole_copy(journal: Journal):
    copy = await journal.read_out(await _filled(journal))
    assert _back(_document(copy)) == copy


async def test_an_imported_session_is_the_exported_one_under_new_ids(journal: Journal):
    old = await _filled(journal)
    exported = await journal.read_out(old)
    session = replace(old, id=id_of(500))
    assert await journal.take_in(as_new(_back(_document(exported)), session))

    new = await journal.read_out(session)
    assert as_new(exported, session) == new
    before, after = await journal.load(old), await journal.load(session)
    assert [(m.role, m.text) for m in after.messages] == [(m.role, m.text) for m in before.messages]
    assert not {m.uuid for m in after.messages} & {m.uuid for m in before.messages}
    assert set(after.calls) == {c.call_id for m in after.messages for c in m.calls}
    assert [a.target_id for a in new.approvals] == list(after.calls)
    assert await journal.trace(session.id) == await journal.trace(old.id)
    assert await journal.usage(session.id) == await journal.usage(old.id)
    assert await journal.session(USER, session.id) == session


@pytest.mark.parametrize("store", STORES)
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(records=turns(Session(id=id_of(10), user_id=USER, title="t", created_at=AT, updated_at=AT)))
async def test_sessions_as_chance_wrote_them_come_back_as_they_were(store: str, records):
    async with STORES[store]() as kept:
        session = await new_session(kept.journal, 10)
        for record in records:
            await kept.journal.record_turn(record)
        copy = await kept.journal.read_out(session)
        again = replace(copy, session=replace(session, id=id_of(11)))
        assert await kept.journal.take_in(again)
        assert replace(await kept.journal.read_out(again.session), session=session) == replace(
            _masked(copy), session=session
        )


def _masked(copy: SessionCopy) -> SessionCopy:
    # Nothing of chance looks like a key, so only the form is settled here.
    record = record_of(copy)
    return replace(copy, messages=record.messages, tool_calls=record.tool_calls)


async def test_a_session_that_is_there_is_left_as_it_is(journal: Journal):
    session = await journal.session(USER, (await _filled(journal)).id)
    copy = await journal.read_out(session)
    theirs = replace(session, user_id=OTHER, title="mine now")
    assert not await journal.take_in(replace(copy, session=theirs))
    assert await journal.session(USER, session.id) == session
    assert await journal.read_out(session) == copy


async def test_an_imported_session_goes_with_all_its_rows(kept):
    session = await _filled(kept.journal)
    before = await kept.counts()
    copy = await kept.journal.read_out(session)
    made = replace(session, id=id_of(500))
    await kept.journal.take_in(as_new(copy, made))
    await kept.journal.delete_session(made.id)
    assert await kept.counts() == before


def _call(copy: SessionCopy, **changes) -> SessionCopy:
    return replace(copy, tool_calls=(replace(copy.tool_calls[0], **changes),))


async def test_a_call_that_waits_for_its_client_ends_with_the_export(journal: Journal):
    copy = await journal.read_out(await _filled(journal))
    waiting = _call(copy, status=CallStatus.PENDING, completed_at=None, result=None)
    over = settled(waiting)
    assert (over.tool_calls[0].status, over.tool_calls[0].error) == (
        CallStatus.FAILED,
        Plain(NOT_RUN),
    )
    assert over.diffs[0].status is DiffStatus.REJECTED
    assert settled(copy) == copy


async def test_a_key_in_an_imported_call_is_not_stored(journal: Journal):
    copy = await journal.read_out(await _filled(journal))
    key = "ghp_" + "Ab1" * 12
    told = replace(_call(copy, result=Plain(key)), session=replace(copy.session, id=id_of(500)))
    await journal.take_in(told)
    assert key not in str(await journal.read_out(told.session))


@pytest.mark.parametrize("quoted", [None, 5, ["{key}"], {"token": "{key}"}])
async def test_what_an_imported_event_quotes_is_masked_whatever_its_form(journal: Journal, quoted):
    key = "ghp_" + "Ab1" * 12
    document = _document(await journal.read_out(await _filled(journal)))
    payload = {**document["trace"][0]["events"][0]["plaintext"], "result": quoted}
    (first, *rest) = document["trace"][0]["events"]
    document["session"]["id"] = id_of(501)
    document["trace"][0]["events"] = [
        {**first, "event_type": "tool_call", "plaintext": payload},
        *rest,
    ]
    copy = _back(json.loads(json.dumps(document).replace("{key}", key)))
    await journal.take_in(copy)
    stored = str(await journal.read_out(copy.session))
    assert key not in stored
    assert ("github token" in stored) is isinstance(quoted, list | dict)


async def test_a_number_that_cannot_be_stored_is_the_documents_fault(journal: Journal):
    document = _document(await journal.read_out(await _filled(journal)))
    document["session"]["id"] = id_of(502)
    copy = _back(_with(document, "trace.0.events.0.plaintext.reason", 10**30))
    with pytest.raises(InvalidRequest, match="cannot be imported"):
        await journal.take_in(copy)


@pytest.fixture
async def sealed(journal: Journal) -> SessionCopy:
    session = await new_session(journal, 30, key_id=ENVELOPE.key_id)
    call = id_of(300)
    await journal.record_turn(
        turn(
            session,
            messages=(
                replace(said(0, "user", Sealed(ENVELOPE))),
                replace(calling(1, "", call), content=Sealed(ENVELOPE), calls=(call,)),
            ),
            events=(event(0, payload=ENVELOPE), event(1, payload=ENVELOPE)),
        )
    )
    return await journal.read_out(session)


async def test_an_encrypted_session_keeps_its_ids_and_envelopes(journal: Journal, sealed):
    ids = [each.id for each in await journal.trace(sealed.session.id)]
    document = _document(sealed)
    await journal.delete_session(sealed.session.id)
    assert await journal.take_in(_back(document))
    assert await journal.read_out(sealed.session) == sealed
    assert [each.id for each in await journal.trace(sealed.session.id)] == ids


def _with(document: dict, path: str, value) -> dict:
    changed = json.loads(json.dumps(document))
    *names, last = path.split(".")
    place = changed
    for name in names:
        place = place[int(name) if name.isdigit() else name]
    place[int(last) if last.isdigit() else last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("session.id", "me"),
        ("messages.0.uuid", "no id"),
        ("messages.1.uuid", id_of(1000)),
        ("messages.0.role", "system"),
        ("messages.0.format", "html"),
        ("messages.0.run_id", "x"),
        ("messages.1.content", {"text": "no json"}),
        ("messages.1.content", {"text": '{"text": "a", "tool_calls": [{"call_id": "x"}]}'}),
        ("messages.1.content", {"text": "[" * 100_000}),
        ("messages.0.created_at", "2026-05-25T12:00:00"),
        ("messages.0.content", {"envelope": ENVELOPE.model_dump()}),
        ("tool_calls.0.id", "x"),
        ("facts.0.scope", "user"),
        ("trace.0.id", "x"),
        ("trace.0.events.1.plaintext.cost", "-1"),
        ("trace.0.events.1.plaintext.cost", "NaN"),
        ("trace.0.events.1.plaintext.provider", ["ollama"]),
        ("trace.0.events.1.plaintext.input_tokens", 2**70),
        ("trace.0.events.1.plaintext.input_tokens", "3"),
        ("trace.0.events.0", {**ENVELOPE.model_dump(), "event_type": "message"}),
    ],
)
async def test_what_was_not_exported_so_is_refused_with_its_place(
    journal: Journal, path: str, value
):
    document = _document(await journal.read_out(await _filled(journal)))
    with pytest.raises((InvalidRequest, ValueError)) as refused:
        _back(_with(document, path, value))
    if isinstance(refused.value, InvalidRequest):
        (field, *_) = refused.value.details["fields"]
        assert path.split(".")[0] in field["place"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("messages.0.content", {"text": "readable"}),
        ("session.key_id", "kf_2"),
        ("messages.0.content.envelope.nonce", "short"),
        ("messages.0.content.envelope.version", 10**30),
        ("trace.0.events.0.encrypted.algorithm", "none"),
        ("trace.0.events.0", None),
        ("messages.1.calls", ["x"]),
    ],
)
async def test_nothing_readable_comes_into_an_encrypted_session(sealed, path: str, value):
    document = _document(sealed)
    if value is None:
        value = _document_event(document)
    with pytest.raises(InvalidRequest):
        _back(_with(document, path, value))


def _document_event(document: dict) -> dict:
    first = dict(document["trace"][0]["events"][0])
    del first["encrypted"]
    return {**first, "plaintext": {"role": "user"}}
