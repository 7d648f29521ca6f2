"""Rows → what a session actor knows of its session. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from smista.core.errors import StorageError
from smista.core.history import Call, Message, Role
from smista.core.intents import TaskIntent
from smista.core.opening import sealed_answer, sealed_call
from smista.core.phase import phase_from_json
from smista.core.records import (
    AnsweredRecord,
    Before,
    CallStatus,
    DiffRecord,
    DiffStatus,
    InputHead,
    MemoryScope,
    PlanRecord,
    PlanStatus,
    RouteContext,
    RunInput,
    RunState,
    SealedInput,
    Session,
    SessionState,
    ToolCallRecord,
    Unsealed,
)
from smista.core.request import ExecuteRequest
from smista.core.secret import Plain, Sealed, SecretContent
from smista.core.totals import Totals, totals_from_json
from smista.core.unsealed import unsealed_from_json
from smista.storage.facts import facts_from
from smista.storage.packing import references_from
from smista.storage.rows import Row, key_text, secret_from_text
from smista.storage.values import Ref

KEPT: Final = timedelta(hours=24)
MOST_ANSWERED: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """The rows of one session as they were read; *contents* match *messages* one to one.

    *first* is the position of the first message, and that of the session's first one is 0.
    *plan* is the newest plan, *answered* all answers that are there, *disclosed* the targets.
    """

    run: Row | None
    input: Row | None
    input_content: Row | None
    first: int
    messages: Sequence[Row]
    contents: Sequence[Row]
    references: Sequence[Row]
    plan: Row | None
    plan_content: Row | None
    disclosed: Sequence[str]
    answered: Sequence[Row]
    facts: Sequence[Row] = ()
    fact_contents: Sequence[Row] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCalls:
    """The rows of the calls that a session's messages name, by call."""

    calls: Mapping[str, Row]
    contents: Mapping[str, Row]
    diffs: Mapping[str, Row]
    bodies: Mapping[str, Row]


CALL_TABLES: Final = {
    "calls": "session_tool_call",
    "contents": "session_tool_call_content",
    "diffs": "session_diff",
    "bodies": "session_diff_content",
}
"""Where the members of StoredCalls lie."""


def named_calls(messages: Iterable[Message]) -> list[str]:
    return [call.call_id for message in messages for call in message.calls]


def by_key(rows: Iterable[Row]) -> dict[str, Row]:
    return {key_text(stored["id"]): stored for stored in rows}


def messages_from(stored: StoredState) -> tuple[Message, ...]:
    """Return the user and assistant messages, cut so that they begin with a whole exchange."""
    pairs = zip(stored.messages, stored.contents, strict=True)
    messages = [_message_from(base, content) for base, content in pairs]
    # A note stands in the middle of what it comments on.
    users = (n for n, m in enumerate(messages) if m.role is Role.USER and not m.note)
    return tuple(messages if stored.first == 0 else messages[next(users, 0) :])


def _message_from(base: Row, content: Row) -> Message:
    body = secret_from_text(content["content"])
    sealed = body.envelope if isinstance(body, Sealed) else None
    if sealed is None:
        text, calls = _spoken(base["format"], _readable(body))
    else:
        text, calls = "", tuple(map(sealed_call, calls_of(base)))
    return Message(
        uuid=str(base["uuid"]),
        role=Role(base["role"]),
        text=text,
        run_id=base["run_id"],
        calls=calls,
        provider=base.get("provider"),
        model=base.get("model"),
        restricted=_restricted(base),
        interrupted=bool(base.get("interrupted")),
        note=base["format"] == "note",
        sealed=sealed,
        opened=sealed is None,
    )


def calls_of(base: Row) -> tuple[str, ...]:
    """Return the ids of the calls in a message that is sealed."""
    return tuple(json.loads(base.get("calls", "[]")))


def _restricted(stored: Row) -> bool:
    # What does not say that it is free is not.
    return stored.get("restricted") is not False


def _readable(content: SecretContent | None) -> str:
    if not isinstance(content, Plain):
        raise StorageError("this session holds sealed content, which only its client can open")
    return content.text


def _spoken(form: str, text: str) -> tuple[str, tuple[Call, ...]]:
    if form != "calls":
        return text, ()
    said: dict[str, Any] = json.loads(text)
    return said["text"], tuple(Call(**call) for call in said["tool_calls"])


def state_from(
    session: Session,
    stored: StoredState,
    messages: Sequence[Message],
    called: StoredCalls,
    since: datetime | None,
) -> SessionState:
    """Return the state; each tool's answer stands right after the message that asked for it.

    Answered messages are those *since* then.
    """
    calls = {k: call_from(base, called.contents[k]) for k, base in called.calls.items()}
    return SessionState(
        session=session,
        run=RunState() if stored.run is None else _run_from(stored.run),
        input=_input_from(stored.input, stored.input_content),
        sealed_input=_sealed_input_from(stored.input, stored.input_content),
        messages=tuple(_with_answers(messages, calls)),
        calls=calls,
        diffs={k: diff_from(base, called.bodies[k]) for k, base in called.diffs.items()},
        references=references_from(stored.references),
        plan=plan_from(stored.plan, stored.plan_content),
        disclosed=frozenset(stored.disclosed),
        answered=_answered_from(stored.answered, since),
        facts=facts_from(MemoryScope.SESSION, stored.facts, stored.fact_contents),
    )


def kept_since(stored: StoredState, at: datetime | None) -> datetime | None:
    """Return since when answers count: KEPT before *at*, or before the last turn."""
    if at is None and stored.run is not None:
        at = stored.run["updated_at"]
    return None if at is None else at - KEPT


def stale_answers(stored: StoredState, since: datetime | None) -> list[Ref]:
    """Return where answers lie that count no more."""
    if since is None:
        return []
    return [answer["id"] for answer in stored.answered if answer["created_at"] < since]


def _answered_from(stored: Sequence[Row], since: datetime | None) -> tuple[AnsweredRecord, ...]:
    found = [answer for answer in stored if since is None or answer["created_at"] >= since]
    found.sort(key=lambda answer: (answer["created_at"], answer["id"].key))
    return tuple(_answer_from(answer) for answer in found[-MOST_ANSWERED:])


def _answer_from(stored: Row) -> AnsweredRecord:
    return AnsweredRecord(
        route=stored["route"],
        key=stored["key"],
        digest=stored["digest"],
        outcome=json.loads(stored["outcome"]),
        created_at=stored["created_at"],
    )


def plan_from(base: Row | None, content: Row | None) -> PlanRecord | None:
    if base is None:
        return None
    body = None if content is None else secret_from_text(content["content"])
    if body is None:
        raise StorageError("a plan has lost its content; restore a backup")
    return PlanRecord(
        id=key_text(base["id"]),
        path=base["path"],
        status=PlanStatus(base["status"]),
        content=body,
        content_hash=base["content_hash"],
        created_at=base["created_at"],
        updated_at=base["updated_at"],
        approved_at=base.get("approved_at"),
        restricted=_restricted(base),
    )


def _with_answers(
    messages: Iterable[Message], calls: Mapping[str, ToolCallRecord]
) -> Iterable[Message]:
    for message in messages:
        yield message
        for call in message.calls:
            answer = _answer(message, calls.get(call.call_id))
            if answer:
                yield answer


def _answer(asked: Message, call: ToolCallRecord | None) -> Message | None:
    content = None if call is None else call.error or call.result
    if call is None or content is None:
        return None
    if isinstance(content, Sealed):
        return sealed_answer(call, asked.run_id)
    return Message(
        uuid=call.id,
        role=Role.TOOL,
        text=_readable(content),
        run_id=asked.run_id,
        call_id=call.id,
        is_error=call.error is not None,
        paths=call.paths,
        restricted=call.restricted,
    )


def call_from(base: Row, content: Row) -> ToolCallRecord:
    arguments = secret_from_text(content["arguments"])
    if arguments is None:
        raise StorageError("a tool call has lost its arguments; restore a backup")
    paths = content.get("paths")
    return ToolCallRecord(
        id=key_text(base["id"]),
        tool_name=base["tool_name"],
        status=CallStatus(base["status"]),
        arguments=arguments,
        created_at=base["created_at"],
        completed_at=base.get("completed_at"),
        result=secret_from_text(content.get("result")),
        error=secret_from_text(content.get("error")),
        paths=None if paths is None else tuple(json.loads(paths)),
        restricted=_restricted(base),
        masked=tuple(json.loads(base.get("masked", "[]"))),
        format=base.get("format"),
    )


def diff_from(base: Row, content: Row) -> DiffRecord:
    body = secret_from_text(content["content"])
    if body is None:
        raise StorageError("a diff has lost its body; restore a backup")
    return DiffRecord(
        id=key_text(base["id"]),
        path=base["path"],
        status=DiffStatus(base["status"]),
        body=body,
        created_at=base["created_at"],
        applied_at=base.get("applied_at"),
        restricted=_restricted(base),
    )


def _run_from(stored: Row) -> RunState:
    before = stored.get("before")
    return replace(
        _columns_from(stored),
        active=stored.get("active"),
        lease=stored.get("lease", 0),
        updated_at=stored["updated_at"],
        before=None if before is None else _before_from(json.loads(before)),
    )


def _columns_from(stored: Row) -> RunState:
    spent = stored.get("spent")
    return RunState(
        run_id=stored["run_id"],
        turn=stored["turn"],
        attempt=stored["attempt"],
        phase=phase_from_json(json.loads(stored["phase"])),
        messages=stored["messages"],
        events=stored["events"],
        references=stored["references"],
        run_references=stored["run_references"],
        spent=Totals() if spent is None else totals_from_json(json.loads(spent)),
        barred=stored.get("barred"),
        ceiling=stored.get("ceiling"),
        unpriced_agreed=bool(stored.get("unpriced_agreed")),
        route=_route_from(stored.get("route")),
        unsealed=_unsealed_from(stored.get("unsealed")),
    )


def _before_from(stored: Mapping[str, Any]) -> Before:
    return Before(run=_columns_from(stored["run"]), at=datetime.fromisoformat(stored["at"]))


def _unsealed_from(stored: str | None) -> Unsealed:
    return Unsealed() if stored is None else unsealed_from_json(json.loads(stored))


def _route_from(stored: str | None) -> RouteContext | None:
    if stored is None:
        return None
    task_type, provider, model, matched_rule = json.loads(stored)
    return RouteContext(TaskIntent(task_type), provider, model, matched_rule)


def _input_from(base: Row | None, content: Row | None) -> RunInput | None:
    body = None if content is None else secret_from_text(content["content"])
    if base is None or body is None or isinstance(body, Sealed):
        return None
    half = json.loads(_readable(body))
    workspace = {**json.loads(base["workspace"]), "git_diff": half["git_diff"]}
    request = ExecuteRequest.model_validate(
        {
            "input": half["input"],
            "attachments": half["attachments"],
            "workspace": workspace,
            "policy": json.loads(base["policy"]),
            "local_preferences": json.loads(base["local_preferences"]),
        }
    )
    return RunInput(
        run_id=base["run_id"],
        request=request,
        created_at=base["created_at"],
        plan_active=bool(base.get("plan_active")),
    )


def _sealed_input_from(base: Row | None, content: Row | None) -> SealedInput | None:
    body = None if content is None else secret_from_text(content["content"])
    if base is None or content is None or not isinstance(body, Sealed):
        return None
    notes = secret_from_text(content.get("notes"))
    return SealedInput(
        head=InputHead(
            run_id=base["run_id"],
            created_at=base["created_at"],
            plan_active=bool(base.get("plan_active")),
        ),
        content=body.envelope,
        notes_id=content.get("notes_id"),
        notes=notes.envelope if isinstance(notes, Sealed) else None,
    )
