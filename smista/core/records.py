"""What is remembered: one frozen type for each stored entity, used by storage and API alike.

Ids are UUIDv7 text, times are aware datetimes, money is Decimal. See *Database schema*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from smista.core.history import Message
from smista.core.intents import TaskIntent
from smista.core.phase import Idle, Phase
from smista.core.request import ExecuteRequest
from smista.core.secret import Envelope, SecretContent
from smista.core.totals import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    id: str
    api_key_hash: str
    created_at: datetime
    updated_at: datetime
    disabled_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthToken:
    id: str
    user_id: str
    token_hash: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    user_id: str
    title: str | None
    created_at: datetime
    updated_at: datetime
    scope: str | None = None
    key_id: str | None = None
    archived_at: datetime | None = None

    @property
    def encrypted(self) -> bool:
        return self.key_id is not None


class CallStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class DiffStatus(StrEnum):
    PROPOSED = "proposed"
    APPLIED = "applied"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRecord:
    """A tool call and what became of it. *paths*: the files its result came from.

    *masked*: the kinds of keys that its arguments held and storage does not hold. *format* says
    what was sealed of an encrypted session's result: `text` is the content, `entry` a JSON object
    with `content`, `is_error`, `paths` and `restricted`.
    """

    id: str
    tool_name: str
    status: CallStatus
    arguments: SecretContent
    created_at: datetime
    completed_at: datetime | None = None
    result: SecretContent | None = None
    error: SecretContent | None = None
    paths: tuple[str, ...] | None = None
    restricted: bool = False
    masked: tuple[str, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRecord:
    """A proposed or applied change; *id* is its tool call's, *body* a unified diff."""

    id: str
    path: str
    status: DiffStatus
    body: SecretContent
    created_at: datetime
    applied_at: datetime | None = None
    restricted: bool = False


class PlanStatus(StrEnum):
    DRAFT = "draft"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A plan as a model wrote it; *path* is a label, no file is written by the router."""

    id: str
    path: str
    status: PlanStatus
    content: SecretContent
    content_hash: str
    created_at: datetime
    updated_at: datetime
    approved_at: datetime | None = None
    restricted: bool = False


class MemoryScope(StrEnum):
    USER = "user"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """A fact that a model wrote down, for its user or for one session.

    *key* is the topic it is filed under, one fact each; a fact without one stands for itself.
    *restricted*: written while restricted content was in view. A user's fact is always in clear.
    """

    id: str
    scope: MemoryScope
    content: SecretContent
    created_at: datetime
    updated_at: datetime
    key: str | None = None
    restricted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenFact:
    id: str
    scope: MemoryScope


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRecord:
    """What a message led to, so that the same one sent again is answered and not served twice.

    *route* is the kind of the message, *key* its Idempotency-Key or the digest of a continuation,
    *digest* that of its body. *outcome* holds references and metadata, never bodies
    (`core/outcomes.py`). Kept for 24 hours.
    """

    route: str
    key: str
    digest: str
    outcome: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """A decision of the user. *target_id*: a call's id, a plan's id, or what may be disclosed to
    whom: `<provider>` for paths of the workspace, `<provider> <thing>` for all else.
    """

    id: str
    target_type: str
    target_id: str
    decision: str
    created_at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingRecord:
    id: str
    task_type: TaskIntent
    provider: str
    model: str
    reason: str
    created_at: datetime
    matched_rule: str | None = None
    fallback_used: bool = False
    override_used: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReference:
    """What was selected or left out, never the content itself."""

    kind: str
    included: bool
    reason: str
    path: str | None = None


class EventType(StrEnum):
    MESSAGE = "message"
    CLASSIFICATION = "classification"
    ROUTING_DECISION = "routing_decision"
    CONTEXT_SELECTION = "context_selection"
    TOOL_CALL = "tool_call"
    APPROVAL = "approval"
    COST = "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """One step of a run, with the routing context it happened in.

    *payload* is the tagged object of *trace_event_content* without its `type`, or sealed; *id* is
    told of sealed ones, since it is part of what they were sealed with. A `cost` payload holds
    `provider`, `model`, token counts and, when known, `cost` (text).
    """

    event_type: EventType
    task_type: TaskIntent
    provider: str
    model: str
    created_at: datetime
    payload: Mapping[str, Any] | Envelope
    matched_rule: str | None = None
    id: str = ""


class RouteContext(NamedTuple):
    """The routing context that events are filed under."""

    task_type: TaskIntent
    provider: str
    model: str
    matched_rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A user or assistant message at position *n* of its session, with what `format` says.

    `format` is `text`, or `calls`: the content is JSON `{"text", "tool_calls"}`, or `note`: the
    router's own words to the model, in the user's place. *calls* names the calls in a content
    that is sealed.
    """

    uuid: str
    n: int
    role: str
    run_id: str
    format: str
    content: SecretContent
    created_at: datetime
    provider: str | None = None
    model: str | None = None
    restricted: bool = False
    interrupted: bool = False
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBatch:
    """Trace events of one turn, in a row: position and id of the *first*."""

    first: int
    first_id: str
    events: tuple[TraceEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputHead:
    """What may be read of an encrypted session's RunInput."""

    run_id: str
    created_at: datetime
    plan_active: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedInput:
    """A RunInput as storage holds it in an encrypted session.

    *notes* holds what the run learned that may not be read either: what it spent, what was agreed.
    """

    head: InputHead
    content: Envelope
    notes_id: str | None = None
    notes: Envelope | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsealed:
    """The rows of an encrypted session that wait for their envelopes: all of them but content.

    *input* and *notes_id* stand for what the run was started with and has learned since. *late*
    names the rows that no response has listed yet. *pending*, *routing* and *approvals* have no
    content; they wait along, so that a turn whose output is lost leaves nothing.
    """

    messages: tuple[StoredMessage, ...] = ()
    calls: tuple[ToolCallRecord, ...] = ()
    diffs: tuple[DiffRecord, ...] = ()
    plans: tuple[PlanRecord, ...] = ()
    facts: tuple[MemoryRecord, ...] = ()
    batches: tuple[EventBatch, ...] = ()
    input: InputHead | None = None
    notes_id: str | None = None
    pending: tuple[ToolCallRecord, ...] = ()
    routing: tuple[RoutingRecord, ...] = ()
    approvals: tuple[ApprovalRecord, ...] = ()
    late: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The row that says where the run is, and how much the session holds.

    *turn* counts model calls of the run, *attempt* the committed endings of the present turn.
    *messages*, *events* and *references* count what the session holds (the next position);
    *run_references* is where the present run's references begin. *active* is the lock of a turn
    being served (remote storage only: with the embedded store its file lock is the lease), the
    schema's ActiveTurn. *lease* only rises: it is the number of the last lease, and one more once
    that was given back or cleared without a commit, so that none can follow.
    *spent* is what the run's model calls used so far. *barred* is why remote models are out for
    the rest of the run, *ceiling* the cost (USD) that the user agreed to for it, and
    *unpriced_agreed* that they agreed to models without a known price. *route* is the one of the
    last turn: what a turn without a decision of its own leaves is filed under it.

    In an encrypted session *unsealed* are the rows whose envelopes are still to come, and *before*
    is the run as it was before the turn *at* whose end they were told: should their text be lost,
    the message that led to it is served anew from there.
    """

    run_id: str = ""
    turn: int = 0
    attempt: int = 0
    phase: Phase = field(default_factory=Idle)
    active: Mapping[str, Any] | None = None
    lease: int = 0
    updated_at: datetime | None = None
    messages: int = 0
    events: int = 0
    references: int = 0
    run_references: int = 0
    spent: Totals = field(default_factory=Totals)
    barred: str | None = None
    ceiling: Decimal | None = None
    unpriced_agreed: bool = False
    route: RouteContext | None = None
    unsealed: Unsealed = field(default_factory=Unsealed)
    before: "Before | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    run: RunState
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """What the run was started with, so that every turn can decide anew."""

    run_id: str
    request: ExecuteRequest
    created_at: datetime
    plan_active: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """All that a session actor knows: what storage holds of one session.

    *messages* are the newest ones, oldest first, whole exchanges; tool messages are part of it
    (joined from the tool calls). *calls* holds the calls those messages name. *references* are
    the present run's. *plan* is the newest plan of the session, *disclosed* the `target_id`s of
    its approved disclosures, *answered* the messages of the last 24 hours (the newest 1,000),
    *facts* what is remembered for this session alone, newest first.

    Of an encrypted session storage holds *sealed_input* instead of *input*; *texts* are the
    contents of the run's unsealed rows, by reference, and *noted* is the newest of its notes. Both
    are in memory alone.
    """

    session: Session
    run: RunState = field(default_factory=RunState)
    input: RunInput | None = None
    messages: tuple[Message, ...] = ()
    calls: Mapping[str, ToolCallRecord] = field(default_factory=dict[str, ToolCallRecord])
    diffs: Mapping[str, DiffRecord] = field(default_factory=dict[str, DiffRecord])
    references: tuple[ContextReference, ...] = ()
    plan: PlanRecord | None = None
    disclosed: frozenset[str] = frozenset()
    answered: tuple[AnsweredRecord, ...] = ()
    facts: tuple[MemoryRecord, ...] = ()
    sealed_input: SealedInput | None = None
    texts: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    noted: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """Everything one turn leaves behind; it becomes durable in one transaction, *run* last.

    Rows with known ids are written over themselves, so the same record may be sent again.
    *first_event* and *first_reference* are the positions of the first of each; the two `_id`s
    name the packed rows. *input*: None leaves the stored one as it is; *drop_input* deletes it,
    as a run's end does. *lease*: the number of the lease the turn was served under; if the
    session's is another by now, nothing is written. The lease ends with the turn.

    In an encrypted session *sealed_input* stands for *input*, and *batches* are the events of
    earlier turns whose envelopes have come.
    """

    session_id: str
    user_id: str
    run: RunState
    at: datetime
    lease: int | None = None
    input: RunInput | None = None
    drop_input: bool = False
    messages: tuple[StoredMessage, ...] = ()
    routing: tuple[RoutingRecord, ...] = ()
    references: tuple[ContextReference, ...] = ()
    first_reference: int = 0
    references_id: str = ""
    tool_calls: tuple[ToolCallRecord, ...] = ()
    diffs: tuple[DiffRecord, ...] = ()
    approvals: tuple[ApprovalRecord, ...] = ()
    plans: tuple[PlanRecord, ...] = ()
    answered: tuple[AnsweredRecord, ...] = ()
    facts: tuple[MemoryRecord, ...] = ()
    forgotten: tuple[ForgottenFact, ...] = ()
    events: tuple[TraceEvent, ...] = ()
    first_event: int = 0
    events_id: str = ""
    sealed_input: SealedInput | None = None
    batches: tuple[EventBatch, ...] = ()
