"""What a decision reads of a session's state: pure views for the snapshot."""

import json
from typing import Any, cast

from smista.core.mediation import touched_paths

from smista.core.history import Message, Role
from smista.core.records import DiffStatus, SessionState


def newest_text(state: SessionState) -> str:
    """Return what the user wrote last in the present run."""
    run_id = state.run.run_id
    users = (m.text for m in reversed(state.messages) if m.role is Role.USER and m.run_id == run_id)
    return next(users, "")


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
    return frozenset(kinds)


def touched(state: SessionState) -> tuple[str, ...]:
    """Return the paths that this run's file tools named, in order, each once."""
    own = (m for m in state.messages if m.run_id == state.run.run_id)
    calls = (call for message in own for call in message.calls)
    paths = (path for call in calls for path in touched_paths(call.name, _object(call.arguments)))
    return tuple(dict.fromkeys(paths))


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
