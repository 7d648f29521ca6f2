"""Rows → what a session actor knows of its session. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smista.core.errors import StorageError
from smista.core.history import Call, Message, Role
from smista.core.phase import phase_from_json
from smista.core.records import (
    CallStatus,
    DiffRecord,
    DiffStatus,
    RunInput,
    RunState,
    Session,
    SessionState,
    ToolCallRecord,
)
from smista.core.request import ExecuteRequest
from smista.core.secret import Plain, SecretContent
from smista.storage.packing import references_from
from smista.storage.rows import Row, key_text, secret_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """The rows of one session as they were read; *contents* match *messages* one to one."""

    run: Row | None
    input: Row | None
    input_content: Row | None
    messages: Sequence[Row]
    contents: Sequence[Row]
    references: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCalls:
    """The rows of the calls that a session's messages name, by call."""

    calls: Mapping[str, Row]
    contents: Mapping[str, Row]
    diffs: Mapping[str, Row]
    bodies: Mapping[str, Row]


def by_key(rows: Iterable[Row]) -> dict[str, Row]:
    return {key_text(stored["id"]): stored for stored in rows}


def messages_from(stored: StoredState) -> tuple[Message, ...]:
    """Return the user and assistant messages, cut so that they begin with a whole exchange."""
    pairs = zip(stored.messages, stored.contents, strict=True)
    messages = [_message_from(base, content) for base, content in pairs]
    whole = not stored.messages or stored.messages[0]["id"].key[1] == 0
    users = (n for n, message in enumerate(messages) if message.role is Role.USER)
    return tuple(messages if whole else messages[next(users, 0) :])


def _message_from(base: Row, content: Row) -> Message:
    text, calls = _spoken(base["format"], _readable(secret_from_text(content["content"])))
    return Message(
        uuid=str(base["uuid"]),
        role=Role(base["role"]),
        text=text,
        run_id=base["run_id"],
        calls=calls,
        provider=base.get("provider"),
        model=base.get("model"),
        restricted=base.get("restricted", False),
        interrupted=base.get("interrupted", False),
    )


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
    session: Session, stored: StoredState, messages: Sequence[Message], called: StoredCalls
) -> SessionState:
    """Return the state; each tool's answer stands right after the message that asked for it."""
    calls = {k: _call_from(base, called.contents[k]) for k, base in called.calls.items()}
    return SessionState(
        session=session,
        run=RunState() if stored.run is None else _run_from(stored.run),
        input=_input_from(stored.input, stored.input_content),
        messages=tuple(_with_answers(messages, calls)),
        calls=calls,
        diffs={k: _diff_from(base, called.bodies[k]) for k, base in called.diffs.items()},
        references=references_from(stored.references),
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


def _call_from(base: Row, content: Row) -> ToolCallRecord:
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
        restricted=base.get("restricted", False),
    )


def _diff_from(base: Row, content: Row) -> DiffRecord:
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
        restricted=base.get("restricted", False),
    )


def _run_from(stored: Row) -> RunState:
    active = stored.get("active")
    return RunState(
        run_id=stored["run_id"],
        turn=stored["turn"],
        attempt=stored["attempt"],
        phase=phase_from_json(json.loads(stored["phase"])),
        active=None if active is None else json.loads(active),
        updated_at=stored["updated_at"],
        messages=stored["messages"],
        events=stored["events"],
        references=stored["references"],
        run_references=stored["run_references"],
    )


def _input_from(base: Row | None, content: Row | None) -> RunInput | None:
    if base is None or content is None:
        return None
    half = json.loads(_readable(secret_from_text(content["content"])))
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
        plan_active=base.get("plan_active", False),
    )
