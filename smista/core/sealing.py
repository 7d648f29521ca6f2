"""What storage may hold of an encrypted session's turn, and what its client has to seal of it.

The router holds no key. So the record a turn becomes is split: rows in it are free of content, or
hold the client's envelopes; what is still readable waits, as metadata in the run's checkpoint and
as text in memory, until its envelope comes.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

from pydantic import TypeAdapter

from smista.core.gates import DISCLOSURE
from smista.core.paths import is_absolute
from smista.core.phase import AwaitingApproval, AwaitingEncrypt, Idle, Phase
from smista.core.records import (
    AnsweredRecord,
    ApprovalRecord,
    Before,
    ContextReference,
    DiffRecord,
    EventBatch,
    InputHead,
    MemoryRecord,
    MemoryScope,
    PlanRecord,
    RunInput,
    RunState,
    SessionState,
    StoredMessage,
    ToolCallRecord,
    TurnRecord,
    Unsealed,
)
from smista.core.secret import Envelope, Opened, Plain, Sealed, SecretContent
from smista.core.tools import BY_NAME
from smista.core.totals import Totals, totals_to_json
from smista.core.unsealed import BLANK, groups, joined, references, trace_references, without

INPUT: Final = TypeAdapter(RunInput)
EVENTS_AT_MOST: Final = 4_000
"""Trace events that may wait to be sealed; a request with many more would be refused.

Only run after run that fails, and lists nothing, comes to so many. Then the oldest are given up.
"""
LISTED_AT_MOST: Final = 4 * 1024 * 1024
"""Bytes of text that one response lists: sealed, they have to fit into a request on its way back.

What is beyond that waits for the next response. A row that has more alone is given up, for it
would be asked for, and its envelope refused as too large, for ever; so is a run's input. Such a
run goes on as any other, but does not outlive its router.
"""
_CLEAR_DETAIL: Final = ("provider", "model", "local", "plan")
_ELSEWHERE: Final = "(sealed)"
_FAILED: Final = "the run failed; what it said is sealed with the session's trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """*record* is what may be stored; *state* what the session's actor then knows."""

    record: TurnRecord
    state: SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How a turn ends. *listing*: its outcome lists all that waits. *before*: see RunState."""

    listing: bool
    before: Before | None = None


def split(
    record: TurnRecord,
    base: SessionState,
    state: SessionState,
    *,
    arrived: Unsealed,
    told: Told,
    new_id: Callable[[], str],
) -> Split:
    """Split *record*, which a turn of an encrypted session leaves: *state* on top of *base*.

    *arrived* are the rows whose envelopes came with the turn's message. A checkpoint that only
    waits for envelopes is idle if there is nothing to seal.
    """
    sorter = _Sorter()
    rows = sorter.rows(record)
    older = _without(state.run.unsealed, record)
    waiting, texts = joined(older, sorter.waiting(record)), {**state.texts, **sorter.texts}
    over = isinstance(record.run.phase, Idle | AwaitingEncrypt)
    state = replace(state, run=record.run)
    noted = state.noted
    if over:
        waiting, noted = replace(waiting, input=None, notes_id=None), ""
    elif told.listing:  # else what was listed before is still to be answered as it was
        state, waiting, noted = _with_input(state, waiting, texts, new_id)
    if over or told.listing:
        waiting = _bounded(_sealable(waiting, texts))
    names = references(waiting)
    fresh = frozenset(names).difference(references(older))
    late = _beyond(waiting, texts) if told.listing else waiting.late | fresh
    waiting = replace(waiting, late=late.intersection(names))
    phase = _phase(record.run.phase, names)
    before = None if isinstance(phase, Idle) else told.before
    dropped = over and before is None
    run = replace(record.run, phase=phase, unsealed=waiting, before=before)
    state = replace(
        state,
        run=run,
        texts={name: texts[name] for name in names if name in texts},
        noted=noted,
        sealed_input=None if dropped else state.sealed_input,
    )
    stored = replace(
        _stored(record, rows, arrived),
        run=clear_run(run),
        sealed_input=state.sealed_input if state.sealed_input != base.sealed_input else None,
        drop_input=dropped and not isinstance(base.run.phase, Idle),
    )
    return Split(record=stored, state=state)


def _stored(record: TurnRecord, rows: "_Rows", arrived: Unsealed) -> TurnRecord:
    return replace(
        record,
        input=None,
        messages=(*arrived.messages, *rows.messages),
        tool_calls=(*arrived.calls, *rows.calls),
        diffs=(*(_clear_diff(diff) for diff in arrived.diffs), *rows.diffs),
        plans=(*(_clear_plan(plan) for plan in arrived.plans), *rows.plans),
        facts=(*(_clear_fact(fact) for fact in arrived.facts), *rows.facts),
        batches=arrived.batches,
        events=(),
        routing=arrived.routing,
        references=tuple(map(_clear_reference, record.references)),
        approvals=arrived.approvals,
        answered=tuple(map(_clear_answer, record.answered)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    messages: tuple[StoredMessage, ...]
    calls: tuple[ToolCallRecord, ...]
    diffs: tuple[DiffRecord, ...]
    plans: tuple[PlanRecord, ...]
    facts: tuple[MemoryRecord, ...]


class _Sorter:
    """Tells what of a record may be stored from what waits; *texts* is what the latter says."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._calls: list[ToolCallRecord] = []
        self._pending: list[ToolCallRecord] = []
        self._messages: list[StoredMessage] = []
        self._diffs: list[DiffRecord] = []
        self._plans: list[PlanRecord] = []
        self._facts: list[MemoryRecord] = []

    def rows(self, record: TurnRecord) -> _Rows:
        """Return the rows that may be stored now."""
        return _Rows(
            messages=tuple(m for each in record.messages if (m := self._message(each))),
            calls=tuple(c for each in record.tool_calls if (c := self._call(each))),
            diffs=tuple(d for each in record.diffs if (d := self._diff(each))),
            plans=tuple(p for each in record.plans if (p := self._plan(each))),
            facts=tuple(f for each in record.facts if (f := self._fact(each))),
        )

    def waiting(self, record: TurnRecord) -> Unsealed:
        """Return the rows that wait, the record's events among them."""
        return Unsealed(
            messages=tuple(self._messages),
            calls=tuple(self._calls),
            diffs=tuple(self._diffs),
            plans=tuple(self._plans),
            facts=tuple(self._facts),
            batches=self._batches(record),
            pending=tuple(self._pending),
            routing=tuple(replace(each, reason="") for each in record.routing),
            approvals=tuple(map(_clear_approval, record.approvals)),
        )

    def _message(self, message: StoredMessage) -> StoredMessage | None:
        text = _readable(message.content)
        if text is None:
            return replace(message, content=_kept(message.content))
        self.texts[f"message:{message.uuid}"] = text
        self._messages.append(replace(message, content=BLANK))
        return None

    def _call(self, call: ToolCallRecord) -> ToolCallRecord | None:
        content = call.error or call.result
        bare = replace(call, tool_name=_tool(call.tool_name), arguments=BLANK, paths=None)
        if content is None:
            self._pending.append(bare)
            return None
        text = _readable(content)
        if text is None:
            return replace(
                bare,
                result=None if call.result is None else _kept(call.result),
                error=None if call.error is None else _kept(call.error),
            )
        self.texts[f"tool_call:{call.id}"] = _entry(call, text)
        blank = replace(bare, result=call.result and BLANK, error=call.error and BLANK)
        self._calls.append(replace(blank, format="entry"))
        return None

    def _diff(self, diff: DiffRecord) -> DiffRecord | None:
        text = _readable(diff.body)
        if text is None:
            return _clear_diff(diff)
        self.texts[f"diff:{diff.id}"] = _json({"path": diff.path, "body": text})
        self._diffs.append(_clear_diff(replace(diff, body=BLANK)))
        return None

    def _plan(self, plan: PlanRecord) -> PlanRecord | None:
        text = _readable(plan.content)
        if text is None:
            return _clear_plan(plan)
        said = {"path": plan.path, "content": text, "content_hash": plan.content_hash}
        self.texts[f"plan:{plan.id}"] = _json(said)
        self._plans.append(_clear_plan(replace(plan, content=BLANK)))
        return None

    def _fact(self, fact: MemoryRecord) -> MemoryRecord | None:
        # A user's facts are no session's, so no session's key seals them.
        if fact.scope is MemoryScope.USER:
            return fact
        text = _readable(fact.content)
        if text is None:
            return _clear_fact(fact)
        self.texts[f"memory:{fact.id}"] = _json({"key": fact.key, "content": text})
        self._facts.append(_clear_fact(replace(fact, content=BLANK)))
        return None

    def _batches(self, record: TurnRecord) -> tuple[EventBatch, ...]:
        if not record.events:
            return ()
        bare = tuple(replace(event, payload={}) for event in record.events)
        batch = EventBatch(first=record.first_event, first_id=record.events_id, events=bare)
        for event, name in zip(record.events, trace_references(batch), strict=True):
            self.texts[name] = _json({"type": event.event_type.value, **_payload(event.payload)})
        return (batch,)


def _payload(payload: Mapping[str, Any] | Envelope) -> Mapping[str, Any]:
    if isinstance(payload, Envelope):
        raise TypeError("a turn writes no sealed event")
    return payload


def _readable(content: SecretContent | None) -> str | None:
    """Return what still has to be sealed of *content*."""
    if isinstance(content, Plain) and not isinstance(content, Opened):
        return content.text
    return None


def _kept(content: SecretContent) -> SecretContent:
    """Return what storage may hold of *content*; raises TypeError if it is readable."""
    match content:
        case Opened(envelope=envelope):
            return Sealed(envelope)
        case Sealed():
            return content
        case Plain(text=""):
            return content
        case Plain():
            raise TypeError("a readable content was about to be stored in an encrypted session")


def _entry(call: ToolCallRecord, text: str) -> str:
    return _json(
        {
            "content": text,
            "is_error": call.error is not None,
            "paths": call.paths,
            "restricted": call.restricted,
        }
    )


# --- what stays of rows that quote ----------------------------------------------------------


def clear_run(run: RunState) -> RunState:
    """Return *run* without what it quotes and without figures."""
    return replace(
        run,
        phase=_clear_phase(run.phase),
        spent=Totals(),
        barred=None,
        ceiling=None,
        unpriced_agreed=False,
    )


def _clear_phase(phase: Phase) -> Phase:
    if not isinstance(phase, AwaitingApproval):
        return phase
    detail = {name: phase.detail[name] for name in _CLEAR_DETAIL if name in phase.detail}
    if "paths" in phase.detail:
        detail["paths"] = [path for path in phase.detail["paths"] if _is_fixed(path)]
    return replace(phase, detail=detail)


def _is_fixed(thing: str) -> bool:
    """Say if *thing*, which may be disclosed, is a word of ours and no path."""
    word, _, name = thing.partition(":")
    return thing in ("memory", "history") or (word == "tool" and name in BY_NAME)


def _tool(name: str) -> str:
    """Return *name* if it is one of our tools; a model may have written anything there."""
    return name if name in BY_NAME else "unknown"


def _clear_diff(diff: DiffRecord) -> DiffRecord:
    return replace(diff, path="", body=_kept(diff.body))


def _clear_plan(plan: PlanRecord) -> PlanRecord:
    return replace(plan, path="", content_hash="", content=_kept(plan.content))


def _clear_fact(fact: MemoryRecord) -> MemoryRecord:
    return replace(fact, key=None, content=_kept(fact.content))


def _clear_reference(reference: ContextReference) -> ContextReference:
    return replace(reference, reason="", path=None)


def _clear_approval(approval: ApprovalRecord) -> ApprovalRecord:
    approval = replace(approval, reason=None)
    provider, _, thing = approval.target_id.partition(" ")
    if approval.target_type != DISCLOSURE or not thing or _is_fixed(thing):
        return approval
    return replace(approval, target_id=f"{provider} {_ELSEWHERE}")


def _clear_answer(answered: AnsweredRecord) -> AnsweredRecord:
    told = answered.outcome["data"]
    data = {name: told[name] for name in ("trace_id", "to_decrypt") if name in told}
    if "message" in told:
        data["message"] = told["message"]
    if "error" in told:
        data["error"] = {"code": told["error"]["code"], "message": _FAILED}
    return replace(answered, outcome={**answered.outcome, "data": data})


# --- input and notes ------------------------------------------------------------------------


def _with_input(
    state: SessionState, waiting: Unsealed, texts: dict[str, str], new_id: Callable[[], str]
) -> tuple[SessionState, Unsealed, str]:
    """Have what the run was started with sealed once, and its notes whenever they change."""
    given = state.input
    if given is None:  # not opened since the router started: storage holds what there is
        return state, waiting, state.noted
    head = InputHead(
        run_id=given.run_id, created_at=given.created_at, plan_active=given.plan_active
    )
    sealed = state.sealed_input
    if sealed is not None and sealed.head.run_id == given.run_id:
        if sealed.head != head:
            state = replace(state, sealed_input=replace(sealed, head=head))
    elif _size(given) > LISTED_AT_MOST:
        return replace(state, sealed_input=None), replace(waiting, input=None), state.noted
    else:
        state = replace(state, sealed_input=None)
        name = f"run_input:{given.run_id}"
        texts[name] = texts.get(name) or INPUT.dump_json(given).decode()
        waiting = replace(waiting, input=head)
    notes = notes_of(state)
    if notes == state.noted:
        return state, waiting, notes
    notes_id = new_id()
    texts[f"run_input:{notes_id}"] = notes or "{}"
    return state, replace(waiting, notes_id=notes_id), notes


def _size(given: RunInput) -> int:
    request, held = given.request, given.request.attachments
    skills = (*held.invoked_skills, *held.available_skills)
    texts = [request.input.text, request.workspace.git_diff or ""]
    texts += [file.content for file in held.files]
    texts += [item.content for item in held.instructions]
    texts += [skill.content for skill in skills]
    return sum(map(_bytes, texts))


def notes_of(state: SessionState) -> str:
    """Return what a run has learned that may not be read in storage; empty if it is nothing."""
    run = state.run
    notes: dict[str, Any] = {
        "spent": None if run.spent == Totals() else totals_to_json(run.spent),
        "barred": run.barred,
        "ceiling": None if run.ceiling is None else str(run.ceiling),
        "unpriced_agreed": run.unpriced_agreed or None,
        "detail": dict(run.phase.detail) if isinstance(run.phase, AwaitingApproval) else None,
        "disclosed": sorted(_outside(state.disclosed)) or None,
    }
    present = {name: value for name, value in notes.items() if value is not None}
    return _json(present) if present else ""


def _outside(disclosed: Iterable[str]) -> list[str]:
    parted = ((target, target.partition(" ")[2]) for target in disclosed)
    return [target for target, thing in parted if is_absolute(thing) or thing.startswith("../")]


# --- small things ---------------------------------------------------------------------------


def _without(waiting: Unsealed, record: TurnRecord) -> Unsealed:
    """Return *waiting* without the calls that *record* answers, and the facts it forgets."""
    forgotten = {f.id for f in record.forgotten if f.scope is MemoryScope.SESSION}
    written = {call.id for call in record.tool_calls}
    return replace(
        waiting,
        facts=tuple(fact for fact in waiting.facts if fact.id not in forgotten),
        pending=tuple(call for call in waiting.pending if call.id not in written),
    )


def _sealable(waiting: Unsealed, texts: Mapping[str, str]) -> Unsealed:
    """Return *waiting* without what nobody can seal: what is too large, or gone with a router."""
    hopeless = [
        name
        for group in groups(waiting)
        if any(name not in texts for name in group) or _weight(group, texts) > LISTED_AT_MOST
        for name in group
    ]
    return without(waiting, hopeless) if hopeless else waiting


def _beyond(waiting: Unsealed, texts: Mapping[str, str]) -> frozenset[str]:
    """Return the names of what a response has no room for; the rows that waited longest go first.

    A group is listed as a whole, and none before one that waits.
    """
    totals = accumulate(_weight(group, texts) for group in groups(waiting))
    so_far = zip(groups(waiting), totals, strict=True)
    return frozenset(name for group, total in so_far if total > LISTED_AT_MOST for name in group)


def _weight(group: Iterable[str], texts: Mapping[str, str]) -> int:
    return sum(_bytes(texts[name]) for name in group)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _bounded(waiting: Unsealed) -> Unsealed:
    kept, count = list(waiting.batches), sum(len(batch.events) for batch in waiting.batches)
    while len(kept) > 1 and count > EVENTS_AT_MOST:
        count -= len(kept.pop(0).events)
    return replace(waiting, batches=tuple(kept))


def _phase(phase: Phase, names: tuple[str, ...]) -> Phase:
    if not isinstance(phase, AwaitingEncrypt):
        return phase
    return AwaitingEncrypt(names) if names else Idle()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
