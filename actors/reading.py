"""What a decision reads of a session's state: pure views for the snapshot."""

from collections.abc import Iterator
from dataclasses import replace

from smista.core.calls import arguments_of, named_paths, touched_paths
from smista.core.history import Message, Role
from smista.core.ids import run_ms
from smista.core.privacy import Guard, guard
from smista.core.records import DiffStatus, PlanStatus, SessionState, ToolCallRecord
from smista.core.secret import Plain
from smista.core.session_copy import SessionCopy


def newest_text(state: SessionState) -> str:
    """Return what the user wrote last in the present run."""
    run_id = state.run.run_id
    own = (m for m in reversed(state.messages) if m.role is Role.USER and m.run_id == run_id)
    return next((m.text for m in own if not m.note), "")


def for_prompt(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the history without a cut answer at its very end: its turn is asked for again."""
    end = len(messages)
    while end and messages[end - 1].role is Role.ASSISTANT and messages[end - 1].interrupted:
        end -= 1
    return messages[:end]


def grown_kinds(state: SessionState) -> frozenset[str]:
    """Return the context kinds that this run brought about."""
    own = [m for m in state.messages if m.run_id == state.run.run_id]
    results = [m for m in own if m.role is Role.TOOL]
    kinds: set[str] = set()
    if results:
        kinds.add("tool_results")
        if results[-1].is_error:
            kinds.add("tool_error")
    calls = {call.call_id for message in own for call in message.calls}
    if any(d.status is DiffStatus.APPLIED and d.id in calls for d in state.diffs.values()):
        kinds.add("file_changes")
    plan = state.plan
    # A plan's id bears the time of its run, and no two runs of a session share one.
    if plan and plan.status is PlanStatus.APPROVED and run_ms(plan.id) == run_ms(state.run.run_id):
        kinds.add("approved_plan")
    return frozenset(kinds)


def touched(state: SessionState) -> tuple[str, ...]:
    """Return the paths that this run's file tools named, in order, each once."""
    own = (m for m in state.messages if m.run_id == state.run.run_id)
    calls = (call for message in own for call in message.calls)
    paths = (path for call in calls for path in touched_paths(call.name, arguments_of(call)))
    return tuple(dict.fromkeys(paths))


def without_restricted(copy: SessionCopy, state: SessionState) -> SessionCopy:
    """Return *copy* without the bodies of the live run's restricted items; there they end."""
    if state.input is None:
        return copy
    request = state.input.request
    lists = guard(request.policy, request.workspace.root)
    found = restricted_results(state, lists)
    gone = {call.id: Plain(f"[restricted: {path}]") for call, path in found}
    return replace(
        copy,
        tool_calls=tuple(_without_body(call, gone.get(call.id)) for call in copy.tool_calls),
        diffs=tuple(
            replace(diff, body=gone[diff.id]) if diff.id in gone else diff for diff in copy.diffs
        ),
    )


def _without_body(call: ToolCallRecord, body: Plain | None) -> ToolCallRecord:
    if body is None:
        return call
    return replace(call, result=call.result and body, error=call.error and body)


def restricted_results(state: SessionState, lists: Guard) -> Iterator[tuple[ToolCallRecord, str]]:
    """Yield this run's calls that were for a restricted path, each with the path."""
    if not lists.active:
        return
    run_id = state.run.run_id
    for message in (m for m in state.messages if m.run_id == run_id):
        for call in message.calls:
            record = state.calls.get(call.call_id)
            if record is not None:
                named = record.paths or named_paths(call.name, arguments_of(call))
                path = next((p for p in named if lists.restricts(p) is not None), None)
                if path is not None:
                    yield record, path
