"""What a turn leaves behind → one unit of rows. Pure."""

import json
from hashlib import sha256
from typing import Any, Final

from smista.core.phase import phase_to_json
from smista.core.records import (
    AnsweredRecord,
    ApprovalRecord,
    Before,
    DiffRecord,
    PlanRecord,
    RoutingRecord,
    RunInput,
    RunState,
    SealedInput,
    Session,
    StoredMessage,
    ToolCallRecord,
    TurnRecord,
    Unsealed,
)
from smista.core.request import ExecuteRequest
from smista.core.secret import Plain, Sealed
from smista.core.totals import Totals, totals_to_json
from smista.core.unsealed import unsealed_to_json
from smista.storage.facts import fact_drops, fact_rows
from smista.storage.packing import event_rows, reference_rows
from smista.storage.rows import (
    INPUT,
    Row,
    Unit,
    by_table,
    json_text,
    key,
    place,
    ref,
    row,
    secret_text,
    within,
)
from smista.storage.values import Ref

_SECRET_HALF = {"git_diff"}
_NOTHING: Final = Unsealed()


def turn_unit(record: TurnRecord) -> Unit:
    """Return the rows of *record*, the run state last.

    Messages, events and the like are new rows; calls, diffs, plans, facts and the input may be
    there already.
    """
    new = [each for message in record.messages for each in _message_rows(record, message)]
    new += [_routing_row(record, routing) for routing in record.routing]
    new += reference_rows(record)
    new += [_approval_row(record, approval) for approval in record.approvals]
    new += event_rows(record)
    new += [_answer_row(record, answered) for answered in record.answered]
    over = [each for call in record.tool_calls for each in _call_rows(record, call)]
    over += [each for diff in record.diffs for each in _diff_rows(record, diff)]
    over += [each for plan in record.plans for each in _plan_rows(record, plan)]
    over += _input_rows(record, record.input) if record.input else []
    over += _sealed_input_rows(record, record.sealed_input) if record.sealed_input else []
    over += fact_rows(record)
    drops = [ref(table, record.session_id) for table in INPUT] if record.drop_input else []
    return Unit(
        inserts=by_table(new),
        puts=(*over, _run_row(record)),
        drops=(*drops, *fact_drops(record)),
        session=ref("session", record.session_id),
        touched=record.at,
        lease=record.lease,
    )


def unserved_run_row(session: Session) -> Row:
    """Return the run state of a session that was never served, so that a lease has a place."""
    record = TurnRecord(
        session_id=session.id, user_id=session.user_id, run=RunState(), at=session.updated_at
    )
    return _run_row(record)


def _owner(record: TurnRecord) -> dict[str, Any]:
    return {"session": ref("session", record.session_id), "user": ref("user", record.user_id)}


def _message_rows(record: TurnRecord, message: StoredMessage) -> list[Row]:
    n = place(key(record.session_id), message.n)
    base = row(
        Ref("session_message", n),
        **_owner(record),
        uuid=key(message.uuid),
        role=message.role,
        provider=message.provider,
        model=message.model,
        run_id=message.run_id,
        format=message.format,
        restricted=message.restricted,
        interrupted=message.interrupted or None,
        created_at=message.created_at,
    )
    if not isinstance(message.content, Plain) and message.calls:
        base["calls"] = json_text(message.calls)
    content = secret_text(message.content)
    return [base, row(Ref("session_message_content", n), content=content)]


def _routing_row(record: TurnRecord, routing: RoutingRecord) -> Row:
    return row(
        within("session_routing_decision", record.session_id, routing.id),
        **_owner(record),
        task_type=routing.task_type,
        provider=routing.provider,
        model=routing.model,
        matched_rule=routing.matched_rule,
        fallback_used=routing.fallback_used or None,
        override_used=routing.override_used or None,
        reason=routing.reason,
        created_at=routing.created_at,
    )


def _approval_row(record: TurnRecord, approval: ApprovalRecord) -> Row:
    return row(
        within("session_approval", record.session_id, approval.target_type, approval.id),
        **_owner(record),
        target_type=approval.target_type,
        target_id=approval.target_id,
        decision=approval.decision,
        reason=approval.reason,
        created_at=approval.created_at,
    )


def _call_rows(record: TurnRecord, call: ToolCallRecord) -> list[Row]:
    base = row(
        within("session_tool_call", record.session_id, call.id),
        **_owner(record),
        tool_name=call.tool_name,
        status=call.status,
        format=call.format,
        restricted=call.restricted,
        masked=json_text(call.masked) if call.masked else None,
        created_at=call.created_at,
        completed_at=call.completed_at,
    )
    content = row(
        within("session_tool_call_content", record.session_id, call.id),
        arguments=secret_text(call.arguments),
        result=secret_text(call.result),
        error=secret_text(call.error),
        paths=None if call.paths is None else json_text(call.paths),
    )
    return [base, content]


def _diff_rows(record: TurnRecord, diff: DiffRecord) -> list[Row]:
    base = row(
        within("session_diff", record.session_id, diff.id),
        **_owner(record),
        path=diff.path,
        status=diff.status,
        restricted=diff.restricted,
        created_at=diff.created_at,
        applied_at=diff.applied_at,
    )
    content = within("session_diff_content", record.session_id, diff.id)
    return [base, row(content, content=secret_text(diff.body))]


def _plan_rows(record: TurnRecord, plan: PlanRecord) -> list[Row]:
    base = row(
        within("session_plan", record.session_id, plan.id),
        **_owner(record),
        uuid=key(plan.id),
        path=plan.path,
        status=plan.status,
        content_hash=plan.content_hash,
        restricted=plan.restricted,
        created_at=plan.created_at,
        updated_at=plan.updated_at,
        approved_at=plan.approved_at,
    )
    content = within("session_plan_content", record.session_id, plan.id)
    return [base, row(content, content=secret_text(plan.content))]


def _answer_row(record: TurnRecord, answered: AnsweredRecord) -> Row:
    # The key comes from outside, so a digest stands for it: of one length, and short.
    name = json.dumps([str(key(record.user_id)), answered.route, answered.key])
    address = key(record.session_id), sha256(name.encode()).hexdigest()
    return row(
        Ref("idempotency_record", address),
        **_owner(record),
        route=answered.route,
        key=answered.key,
        digest=answered.digest,
        outcome=json_text(answered.outcome),
        created_at=answered.created_at,
    )


def _input_rows(record: TurnRecord, given: RunInput) -> list[Row]:
    request = given.request
    base = row(
        ref("session_run_input", record.session_id),
        **_owner(record),
        run_id=given.run_id,
        policy=request.policy.model_dump_json(),
        local_preferences=request.local_preferences.model_dump_json(),
        workspace=request.workspace.model_dump_json(exclude=_SECRET_HALF),
        plan_active=given.plan_active or None,
        created_at=given.created_at,
    )
    content = secret_text(Plain(_secret_half(request)))
    return [base, row(ref("session_run_input_content", record.session_id), content=content)]


def _sealed_input_rows(record: TurnRecord, given: SealedInput) -> list[Row]:
    head = given.head
    base = row(
        ref("session_run_input", record.session_id),
        **_owner(record),
        run_id=head.run_id,
        plan_active=head.plan_active or None,
        created_at=head.created_at,
    )
    content = row(
        ref("session_run_input_content", record.session_id),
        content=secret_text(Sealed(given.content)),
        notes_id=given.notes_id,
        notes=None if given.notes is None else secret_text(Sealed(given.notes)),
    )
    return [base, content]


def _secret_half(request: ExecuteRequest) -> str:
    """Return what the user wrote and attached, and the git diff, as JSON."""
    return json_text(
        {
            "input": request.input.model_dump(mode="json"),
            "attachments": request.attachments.model_dump(mode="json"),
            "git_diff": request.workspace.git_diff,
        }
    )


def _run_row(record: TurnRecord) -> Row:
    run = record.run
    return row(
        ref("session_run_state", record.session_id),
        **_owner(record),
        **run_columns(run),
        active=run.active,
        lease=run.lease or None,
        updated_at=run.updated_at or record.at,
        before=None if run.before is None else json_text(_before_to_json(run.before)),
    )


def run_columns(run: RunState) -> dict[str, Any]:
    """Return what a run's row holds of it, but for its lease and times."""
    waiting = run.unsealed
    return {
        "run_id": run.run_id,
        "turn": run.turn,
        "attempt": run.attempt,
        "phase": json_text(phase_to_json(run.phase)),
        "messages": run.messages,
        "events": run.events,
        "references": run.references,
        "run_references": run.run_references,
        "spent": None if run.spent == Totals() else json_text(totals_to_json(run.spent)),
        "barred": run.barred,
        "ceiling": run.ceiling,
        "unpriced_agreed": run.unpriced_agreed or None,
        "route": None if run.route is None else json_text(list(run.route)),
        "unsealed": None if waiting == _NOTHING else json_text(unsealed_to_json(waiting)),
    }


def _before_to_json(before: Before) -> dict[str, Any]:
    columns = {name: value for name, value in run_columns(before.run).items() if value is not None}
    return {"run": columns, "at": before.at.isoformat()}
