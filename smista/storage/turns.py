"""What a turn leaves behind → one unit of rows. Pure."""

from typing import Any

from smista.core.phase import phase_to_json
from smista.core.records import (
    ApprovalRecord,
    DiffRecord,
    RoutingRecord,
    RunInput,
    StoredMessage,
    ToolCallRecord,
    TurnRecord,
)
from smista.core.request import ExecuteRequest
from smista.core.secret import Plain
from smista.ports.journal import IdempotencyRecord
from smista.storage.packing import event_rows, reference_rows
from smista.storage.rows import (
    Row,
    Unit,
    answer_row,
    by_table,
    json_text,
    key,
    place,
    ref,
    row,
    secret_text,
)
from smista.storage.values import Ref

_SECRET_HALF = {"git_diff"}


def turn_unit(record: TurnRecord, answered: IdempotencyRecord | None) -> Unit:
    """Return the rows of *record*, the run state last.

    Messages, events and the like are new rows; calls, diffs and the input may be there already.
    """
    new = [each for message in record.messages for each in _message_rows(record, message)]
    new += [_routing_row(record, routing) for routing in record.routing]
    new += reference_rows(record)
    new += [_approval_row(record, approval) for approval in record.approvals]
    new += event_rows(record)
    over = [each for call in record.tool_calls for each in _call_rows(record, call)]
    over += [each for diff in record.diffs for each in _diff_rows(record, diff)]
    over += _input_rows(record, record.input) if record.input else []
    over += [answer_row(answered)] if answered else []
    return Unit(
        inserts=by_table(new),
        puts=(*over, _run_row(record)),
        session=ref("session", record.session_id),
        touched=record.at,
    )


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
        interrupted=message.interrupted,
        created_at=message.created_at,
    )
    content = secret_text(message.content)
    return [base, row(Ref("session_message_content", n), content=content)]


def _routing_row(record: TurnRecord, routing: RoutingRecord) -> Row:
    return row(
        ref("session_routing_decision", routing.id),
        **_owner(record),
        task_type=routing.task_type,
        provider=routing.provider,
        model=routing.model,
        matched_rule=routing.matched_rule,
        fallback_used=routing.fallback_used,
        override_used=routing.override_used,
        reason=routing.reason,
        created_at=routing.created_at,
    )


def _approval_row(record: TurnRecord, approval: ApprovalRecord) -> Row:
    return row(
        ref("session_approval", approval.id),
        **_owner(record),
        target_type=approval.target_type,
        target_id=approval.target_id,
        decision=approval.decision,
        reason=approval.reason,
        created_at=approval.created_at,
    )


def _call_rows(record: TurnRecord, call: ToolCallRecord) -> list[Row]:
    base = row(
        ref("session_tool_call", call.id),
        **_owner(record),
        tool_name=call.tool_name,
        status=call.status,
        restricted=call.restricted,
        created_at=call.created_at,
        completed_at=call.completed_at,
    )
    content = row(
        ref("session_tool_call_content", call.id),
        arguments=secret_text(call.arguments),
        result=secret_text(call.result),
        error=secret_text(call.error),
        paths=None if call.paths is None else json_text(call.paths),
    )
    return [base, content]


def _diff_rows(record: TurnRecord, diff: DiffRecord) -> list[Row]:
    base = row(
        ref("session_diff", diff.id),
        **_owner(record),
        path=diff.path,
        status=diff.status,
        restricted=diff.restricted,
        created_at=diff.created_at,
        applied_at=diff.applied_at,
    )
    return [base, row(ref("session_diff_content", diff.id), content=secret_text(diff.body))]


def _input_rows(record: TurnRecord, given: RunInput) -> list[Row]:
    request = given.request
    base = row(
        ref("session_run_input", record.session_id),
        **_owner(record),
        run_id=given.run_id,
        policy=request.policy.model_dump_json(),
        local_preferences=request.local_preferences.model_dump_json(),
        workspace=request.workspace.model_dump_json(exclude=_SECRET_HALF),
        plan_active=given.plan_active,
        created_at=given.created_at,
    )
    content = secret_text(Plain(_secret_half(request)))
    return [base, row(ref("session_run_input_content", record.session_id), content=content)]


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
        run_id=run.run_id,
        turn=run.turn,
        attempt=run.attempt,
        phase=json_text(phase_to_json(run.phase)),
        active=None if run.active is None else json_text(run.active),
        updated_at=run.updated_at or record.at,
        messages=run.messages,
        events=run.events,
        references=run.references,
        run_references=run.run_references,
    )
