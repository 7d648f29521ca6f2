"""Records to write, with plain values where a test does not care."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from smista.core.ids import new_uuid7, row_id
from smista.core.intents import TaskIntent
from smista.core.records import (
    AnsweredRecord,
    ApprovalRecord,
    CallStatus,
    ContextReference,
    DiffRecord,
    DiffStatus,
    EventType,
    PlanRecord,
    PlanStatus,
    RoutingRecord,
    RunInput,
    RunState,
    Session,
    StoredMessage,
    ToolCallRecord,
    TraceEvent,
    TurnRecord,
)
from smista.core.request import ExecuteRequest
from smista.core.secret import Envelope, Plain, SecretContent
from smista.ports.journal import Journal

AT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
MS = int(AT.timestamp() * 1000)
ENVELOPE = Envelope(
    version=2,
    algorithm="xchacha20poly1305",
    key_id="kf_1",
    nonce="bm9uY2U" + "A" * 25,
    ciphertext="eA" + "A" * 20,
)


def id_of(number: int) -> str:
    return new_uuid7(MS, number)


POLICY = {
    "version": 1,
    "source": "user",
    "classification": {"rules": [{"intent": "edit", "keywords": ["fix"]}]},
    "routing": {
        "default": {"model": "ollama/m"},
        "rules": [
            {
                "name": "r",
                "effort": "low",
                "model": "openai/gpt",
                "requires_capabilities": {"tools": True},
                "required_permissions": {"permissions": {"bash": "deny"}},
                "cost_limit": "0.50",
            }
        ],
    },
    "tools": {"permissions": {"bash": "ask"}},
    "privacy": {"restricted_paths": ["secret/**"]},
}

USER, OTHER = id_of(1), id_of(2)


async def new_session(journal: Journal, number: int = 10, **changes: Any) -> Session:
    given: dict[str, Any] = {
        "id": id_of(number),
        "user_id": USER,
        "title": f"Work {number}",
        "created_at": AT,
        "updated_at": AT,
    }
    session = Session(**{**given, **changes})
    await journal.create_session(session)
    return session


def said(n: int, role: str, content: str | SecretContent, **more: Any) -> StoredMessage:
    body = Plain(content) if isinstance(content, str) else content
    given = {"run_id": id_of(100), "format": "text", "created_at": AT, **more}
    return StoredMessage(uuid=id_of(1000 + n), n=n, role=role, content=body, **given)


def calling(n: int, text: str, *call_ids: str) -> StoredMessage:
    calls = [
        {"call_id": c, "provider_call_id": f"p{i}", "name": "read_file", "arguments": "{}"}
        for i, c in enumerate(call_ids)
    ]
    return said(n, "assistant", json.dumps({"text": text, "tool_calls": calls}), format="calls")


def event(number: int, kind: EventType = EventType.MESSAGE, **changes: Any) -> TraceEvent:
    given: dict[str, Any] = {
        "event_type": kind,
        "task_type": TaskIntent.CHAT,
        "provider": "ollama",
        "model": "m",
        "created_at": AT + timedelta(milliseconds=number),
        "payload": {"role": "user", "number": number},
    }
    return TraceEvent(**{**given, **changes})


def cost(number: int, **payload: Any) -> TraceEvent:
    return event(number, EventType.COST, payload={"provider": "ollama", "model": "m", **payload})


def request_of(text: str) -> ExecuteRequest:
    return ExecuteRequest.model_validate(
        {
            "input": {"text": text, "command": "edit", "explicit_model": "ollama/a/b"},
            "workspace": {
                "root": "/w",
                "git_branch": "main",
                "git_diff": "+x",
                "git_diff_restricted": True,
                "referenced_paths": ["a.py"],
            },
            "policy": POLICY,
            "local_preferences": {"auto_apply": False, "local_only": True, "no_network": False},
            "attachments": {
                "files": [
                    {
                        "path": "a.py",
                        "content": "pass",
                        "content_hash": "h",
                        "required": True,
                        "paths": ["a.py"],
                    }
                ],
                "instructions": [{"source": "s", "content": "c"}],
            },
        }
    )


def turn(session: Session, run: RunState | None = None, **parts: Any) -> TurnRecord:
    """Return a record whose run state counts what *parts* bring, unless *run* is given."""
    messages = parts.get("messages", ())
    first_event, first_ref = parts.get("first_event", 0), parts.get("first_reference", 0)
    counted = RunState(
        run_id=id_of(100),
        turn=1,
        attempt=1,
        updated_at=AT,
        messages=max((m.n + 1 for m in messages), default=0),
        events=first_event + len(parts.get("events", ())),
        references=first_ref + len(parts.get("references", ())),
        run_references=first_ref,
    )
    given: dict[str, Any] = {
        "at": AT + timedelta(seconds=5),
        "events_id": row_id(id_of(100), 1, first_event % 256, 0, "trace_event"),
        "references_id": row_id(id_of(100), 1, 0, 0, "session_context_reference"),
    }
    owner = {"session_id": session.id, "user_id": session.user_id}
    return TurnRecord(run=run or counted, **{**given, **parts}, **owner)


def full_turn(session: Session) -> TurnRecord:
    """Return a record with something in every part."""
    call = id_of(300 + int(session.id[-4:], 16))
    return turn(
        session,
        input=RunInput(run_id=id_of(100), request=request_of("do it"), created_at=AT),
        messages=(said(0, "user", "do it"), calling(1, "reading", call)),
        routing=(
            RoutingRecord(
                id=row_id(session.id, 1, 0, 0, "session_routing_decision"),
                task_type=TaskIntent.EDIT,
                provider="ollama",
                model="m",
                reason="default",
                created_at=AT,
            ),
        ),
        references=(
            ContextReference(kind="file", included=True, reason="named", path="a.py"),
            ContextReference(kind="memory", included=False, reason="too big"),
        ),
        tool_calls=(
            ToolCallRecord(
                id=call,
                tool_name="read_file",
                status=CallStatus.COMPLETED,
                arguments=Plain("{}"),
                created_at=AT,
                completed_at=AT,
                result=Plain("pass"),
                paths=("a.py", "/w/a.py"),
                restricted=True,
            ),
        ),
        diffs=(
            DiffRecord(
                id=call,
                path="a.py",
                status=DiffStatus.APPLIED,
                body=Plain("+x"),
                created_at=AT,
                applied_at=AT,
            ),
        ),
        approvals=(
            ApprovalRecord(
                id=row_id(session.id, 1, 0, 0, "session_approval"),
                target_type="tool_call",
                target_id=call,
                decision="approved",
                created_at=AT,
            ),
        ),
        plans=(plan(400 + int(session.id[-4:], 16)),),
        answered=(answer("again"),),
        events=(event(0), cost(1, input_tokens=3, output_tokens=4, cost="0.1")),
    )


def answer(word: str, **changes: Any) -> AnsweredRecord:
    given = {"route": "execute", "digest": "d", "outcome": {"said": "r", "n": [1, None]}}
    return AnsweredRecord(**{**given, "key": word, "created_at": AT, **changes})


def plan(number: int, **changes: Any) -> PlanRecord:
    given: dict[str, Any] = {
        "id": id_of(number),
        "path": "plan.md",
        "status": PlanStatus.DRAFT,
        "content": Plain("1. look"),
        "content_hash": "h",
        "created_at": AT,
        "updated_at": AT,
    }
    return PlanRecord(**{**given, **changes})


def approval(number: int, target_type: str, target_id: str, **changes: Any) -> ApprovalRecord:
    given = {"id": id_of(number), "decision": "approved", "created_at": AT}
    return ApprovalRecord(target_type=target_type, target_id=target_id, **{**given, **changes})
