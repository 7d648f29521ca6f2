"""What a client brings of an encrypted session: envelopes for rows that wait, and opened texts.

Pure: a session's state goes in, and comes out with them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, cast

from pydantic import TypeAdapter

from smista.core.exchanges import with_result
from smista.core.gates import DISCLOSURE
from smista.core.history import Call, Message, Role
from smista.core.phase import AwaitingApproval, AwaitingTool
from smista.core.records import (
    CallStatus,
    DiffRecord,
    MemoryRecord,
    PlanRecord,
    RunState,
    SealedInput,
    SessionState,
    StoredMessage,
    ToolCallRecord,
    Unsealed,
)
from smista.core.sealing import INPUT
from smista.core.secret import Envelope, Opened, Plain, Sealed, SecretContent
from smista.core.totals import Totals
from smista.core.unsealed import filled, references, without

_CALLS: Final = TypeAdapter(list[Call])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Notes:
    """What `sealing.notes_of` writes down, read again as strictly as if a stranger had sent it."""

    spent: Totals | None = None
    barred: str | None = None
    ceiling: Decimal | None = None
    unpriced_agreed: bool = False
    detail: dict[str, Any] | None = None
    disclosed: tuple[str, ...] = ()


_NOTES: Final = TypeAdapter(_Notes)

# --- envelopes ------------------------------------------------------------------------------


def arrive(state: SessionState, given: Mapping[str, Envelope]) -> tuple[SessionState, Unsealed]:
    """Return *state* with the envelopes that were *given*, and the rows they complete.

    A row whose text was lost is there as a sealed one from now on.
    """
    rows, rest = filled(state.run.unsealed, given)
    live = state.texts
    known = {fact.id for fact in state.facts}
    # A fact that its user has deleted meanwhile is not written any more.
    facts = tuple(f for f in rows.facts if f.id in known or f"memory:{f.id}" not in live)
    rows = replace(rows, facts=facts)
    kept = {name: text for name, text in live.items() if name not in given}
    state = replace(
        state, run=replace(state.run, unsealed=rest), texts=kept, **_input_with(state, given)
    )
    state = _with_messages(state, rows.messages)
    for call in rows.calls:
        state = _with_call(state, call, live=f"tool_call:{call.id}" in live)
    diffs = {diff.id: _diff_with(state.diffs.get(diff.id), diff, live) for diff in rows.diffs}
    plans = [_plan_with(state.plan, plan, live) for plan in rows.plans]
    pending = {call.id: call for call in rows.pending if call.id not in state.calls}
    return (
        replace(
            state,
            calls={**pending, **state.calls},
            disclosed=state.disclosed.union(_agreed(rows)),
            diffs={**state.diffs, **diffs},
            plan=max(plans, key=lambda plan: plan.id, default=state.plan),
            facts=_with_facts(state.facts, rows.facts, live),
        ),
        rows,
    )


def _agreed(rows: Unsealed) -> Iterator[str]:
    for approval in rows.approvals:
        if approval.target_type == DISCLOSURE and approval.decision == "approved":
            yield approval.target_id


def _input_with(state: SessionState, given: Mapping[str, Envelope]) -> dict[str, Any]:
    waiting, sealed = state.run.unsealed, state.sealed_input
    if waiting.input is not None:
        content = given.get(f"run_input:{waiting.input.run_id}")
        if content is not None:
            sealed = SealedInput(head=waiting.input, content=content)
    notes = None if waiting.notes_id is None else given.get(f"run_input:{waiting.notes_id}")
    if sealed is not None and notes is not None:
        sealed = replace(sealed, notes_id=waiting.notes_id, notes=notes)
    return {"sealed_input": sealed}


def _with_messages(state: SessionState, rows: tuple[StoredMessage, ...]) -> SessionState:
    envelopes = {row.uuid: _envelope(row.content) for row in rows}
    messages = tuple(
        replace(message, sealed=envelopes[message.uuid]) if message.uuid in envelopes else message
        for message in state.messages
    )
    known = {message.uuid for message in messages}
    lost = tuple(sealed_message(row) for row in rows if row.uuid not in known)
    return replace(state, messages=(*messages, *lost))


def sealed_message(row: StoredMessage) -> Message:
    """Return the message that sealed *row* stands for, unopened."""
    return Message(
        uuid=row.uuid,
        role=Role(row.role),
        text="",
        run_id=row.run_id,
        calls=tuple(sealed_call(call_id) for call_id in row.calls),
        provider=row.provider,
        model=row.model,
        restricted=row.restricted,
        interrupted=row.interrupted,
        note=row.format == "note",
        sealed=_envelope(row.content),
        opened=False,
    )


def sealed_call(call_id: str) -> Call:
    """Return the call of which an unopened message tells the id alone."""
    return Call(call_id=call_id, provider_call_id="", name="", arguments="")


def _with_call(state: SessionState, row: ToolCallRecord, *, live: bool) -> SessionState:
    known = state.calls.get(row.id)
    call = row
    if live and known is not None:
        call = replace(
            known,
            format=row.format,
            result=_opened_as(known.result, row.result),
            error=_opened_as(known.error, row.error),
        )
    envelope = _envelope(row.error or row.result)
    answered = any(message.call_id == row.id for message in state.messages)
    state = replace(state, calls={**state.calls, row.id: call})
    if answered:
        messages = tuple(
            replace(m, sealed=envelope, opened=m.opened and live) if m.call_id == row.id else m
            for m in state.messages
        )
    else:
        messages = with_result(state.messages, sealed_answer(call, state.run.run_id))
    return replace(state, messages=messages)


def sealed_answer(call: ToolCallRecord, run_id: str) -> Message:
    """Return the unopened answer to *call*, which holds its envelope."""
    return Message(
        uuid=call.id,
        role=Role.TOOL,
        text="",
        run_id=run_id,
        call_id=call.id,
        is_error=call.error is not None,
        restricted=call.restricted,
        sealed=_envelope(call.error or call.result),
        opened=False,
    )


def _diff_with(known: DiffRecord | None, row: DiffRecord, live: Mapping[str, str]) -> DiffRecord:
    if known is None or f"diff:{row.id}" not in live:
        return row
    return replace(known, body=_opened_as(known.body, row.body) or row.body)


def _plan_with(known: PlanRecord | None, row: PlanRecord, live: Mapping[str, str]) -> PlanRecord:
    if known is None or known.id != row.id or f"plan:{row.id}" not in live:
        return row
    return replace(known, content=_opened_as(known.content, row.content) or row.content)


def _with_facts(
    facts: tuple[MemoryRecord, ...], rows: tuple[MemoryRecord, ...], live: Mapping[str, str]
) -> tuple[MemoryRecord, ...]:
    if not rows:
        return facts
    sealed = {row.id: row for row in rows}
    known = tuple(
        replace(fact, content=_opened_as(fact.content, sealed.pop(fact.id).content) or fact.content)
        if fact.id in sealed and f"memory:{fact.id}" in live
        else sealed.pop(fact.id, fact)
        for fact in facts
    )
    return (*sealed.values(), *known)


def _opened_as(known: SecretContent | None, row: SecretContent | None) -> SecretContent | None:
    """Return the text that is *known* with the envelope of *row*."""
    if isinstance(known, Plain) and isinstance(row, Sealed):
        return Opened(known.text, row.envelope)
    return row


def _envelope(content: SecretContent | None) -> Envelope:
    if isinstance(content, Sealed | Opened):
        return content.envelope
    raise TypeError("a row was completed without its envelope")


# --- texts ----------------------------------------------------------------------------------


def reference(message: Message) -> str:
    """Return the reference under which *message* is sealed."""
    return f"tool_call:{message.uuid}" if message.role is Role.TOOL else f"message:{message.uuid}"


def own_sealed(state: SessionState) -> dict[str, Envelope]:
    """Return what of the present run itself has to be opened before anything can be decided."""
    found: dict[str, Envelope] = {}
    sealed = state.sealed_input
    if state.input is None and sealed is not None:
        found[f"run_input:{sealed.head.run_id}"] = sealed.content
        if sealed.notes_id is not None and sealed.notes is not None:
            found[f"run_input:{sealed.notes_id}"] = sealed.notes
    own = (message for message in state.messages if message.run_id == state.run.run_id)
    return {**found, **unopened(own)}


def unopened(messages: Iterable[Message]) -> dict[str, Envelope]:
    """Return what of *messages* is still sealed, by reference."""
    return {
        reference(message): message.sealed
        for message in messages
        if message.sealed is not None and not message.opened
    }


def sealed_facts(state: SessionState) -> dict[str, Envelope]:
    """Return the session's facts that are still sealed: they are opened all together."""
    return {
        f"memory:{fact.id}": fact.content.envelope
        for fact in state.facts
        if isinstance(fact.content, Sealed)
    }


def sealed_by(state: SessionState, names: tuple[str, ...]) -> dict[str, Envelope]:
    """Return the envelopes of *names*, as far as they are still sealed in *state*."""
    known = {**own_sealed(state), **unopened(state.messages), **sealed_facts(state)}
    return {name: known[name] for name in names if name in known}


def opened(state: SessionState, texts: Mapping[str, str]) -> SessionState:
    """Return *state* with the *texts* its client opened; raises ValueError for nonsense.

    Texts that nobody asked for are passed over.
    """
    state = _open_messages(state, texts)
    facts = tuple(_open_fact(fact, texts) for fact in state.facts)
    return _open_input(replace(state, facts=facts), texts)


def _open_messages(state: SessionState, texts: Mapping[str, str]) -> SessionState:
    calls = dict(state.calls)
    messages: list[Message] = []
    for message in state.messages:
        text = None if message.opened else texts.get(reference(message))
        messages.append(message if text is None else _open_message(message, text, calls))
    return replace(state, messages=tuple(messages), calls=calls)


def _open_message(message: Message, text: str, calls: dict[str, ToolCallRecord]) -> Message:
    if message.role is Role.TOOL:
        return _open_answer(message, text, calls)
    if not message.calls:
        return replace(message, text=text, opened=True)
    said = _object(text)
    asked = tuple(_CALLS.validate_python(said["tool_calls"]))
    for call in asked:
        if call.call_id in calls:
            known = calls[call.call_id]
            calls[call.call_id] = replace(known, arguments=Plain(call.arguments))
    return replace(message, text=str(said["text"]), calls=asked, opened=True)


def _open_answer(message: Message, text: str, calls: dict[str, ToolCallRecord]) -> Message:
    call, paths, restricted = calls.get(message.uuid), message.paths, message.restricted
    if call is not None and call.format == "entry":
        said = _object(text)
        text, listed = str(said["content"]), said.get("paths")
        paths = None if listed is None else tuple(str(path) for path in listed)
        restricted = restricted or bool(said.get("restricted"))
    if call is not None and message.sealed is not None:
        body = Opened(text, message.sealed)
        calls[message.uuid] = replace(
            call,
            result=call.result and body,
            error=call.error and body,
            paths=paths,
            restricted=restricted,
        )
    return replace(message, text=text, paths=paths, restricted=restricted, opened=True)


def _open_fact(fact: MemoryRecord, texts: Mapping[str, str]) -> MemoryRecord:
    text = texts.get(f"memory:{fact.id}")
    if text is None or not isinstance(fact.content, Sealed):
        return fact
    said = _object(text)
    key = said.get("key")
    content = Opened(str(said["content"]), fact.content.envelope)
    return replace(fact, key=None if key is None else str(key), content=content)


def _open_input(state: SessionState, texts: Mapping[str, str]) -> SessionState:
    sealed = state.sealed_input
    if state.input is not None or sealed is None:
        return state
    text = texts.get(f"run_input:{sealed.head.run_id}")
    notes = None if sealed.notes_id is None else texts.get(f"run_input:{sealed.notes_id}")
    if text is not None:
        head = sealed.head
        given = replace(
            INPUT.validate_json(text),
            run_id=head.run_id,
            created_at=head.created_at,
            plan_active=head.plan_active,
        )
        state = replace(state, input=given)
    return state if notes is None else _with_notes(state, notes)


def _with_notes(state: SessionState, text: str) -> SessionState:
    """Return *state* with what its run had learned; what it learned since goes before it."""
    notes, run = _NOTES.validate_json(text), state.run
    run = replace(
        run,
        spent=run.spent if notes.spent is None or run.spent != Totals() else notes.spent,
        barred=run.barred or notes.barred,
        ceiling=run.ceiling or notes.ceiling,
        unpriced_agreed=run.unpriced_agreed or notes.unpriced_agreed,
    )
    if isinstance(run.phase, AwaitingApproval) and notes.detail:
        run = replace(run, phase=replace(run.phase, detail=notes.detail))
    disclosed = state.disclosed.union(notes.disclosed)
    return replace(state, run=run, disclosed=disclosed, noted=text)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("a sealed object is nested too deeply") from None
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise ValueError("a sealed object is no JSON object")


# --- what was lost --------------------------------------------------------------------------


def lost(state: SessionState) -> tuple[str, ...]:
    """Return the rows whose text is gone before their envelopes came, as a restart leaves them."""
    return tuple(name for name in references(state.run.unsealed) if name not in state.texts)


def without_lost(state: SessionState) -> SessionState:
    """Return *state* without the rows whose text is gone: nobody will seal them."""
    gone = lost(state)
    if not gone:
        return state
    rest = without(state.run.unsealed, gone)
    bare = replace(rest, pending=(), routing=(), approvals=())
    return replace(state, run=replace(state.run, unsealed=bare))


def rolled_back(state: SessionState) -> SessionState:
    """Return *state* as it was before the turn whose output was lost, to serve that turn anew."""
    now = state.run
    if now.before is None:
        return state
    run = replace(
        now.before.run,
        attempt=now.before.run.attempt + 1,
        lease=now.lease,
        active=now.active,
    )
    return _pending_again(replace(state, run=run, texts={}), run)


def _pending_again(state: SessionState, run: RunState) -> SessionState:
    """Forget the answers to the calls that *run* waits for: they are about to come again."""
    if not isinstance(run.phase, AwaitingTool):
        return state
    ids = {pending.call_id for pending in run.phase.calls}
    calls = {
        call_id: replace(
            call, status=CallStatus.PENDING, result=None, error=None, completed_at=None
        )
        if call_id in ids
        else call
        for call_id, call in state.calls.items()
    }
    messages = tuple(message for message in state.messages if message.call_id not in ids)
    return replace(state, calls=calls, messages=messages)


def can_go_on(state: SessionState, given: Mapping[str, Envelope]) -> bool:
    """Say if what the run was started with is there, or can be opened once *given* has come."""
    waiting = state.run.unsealed.input
    comes = waiting is not None and f"run_input:{waiting.run_id}" in given
    return comes or state.input is not None or state.sealed_input is not None
