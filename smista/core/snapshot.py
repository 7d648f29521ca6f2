"""Everything a decision may read, frozen. What is not in here cannot influence a route."""

from dataclasses import dataclass
from decimal import Decimal

from smista.core.history import Message
from smista.core.intents import TaskIntent
from smista.core.model_ref import ModelDescriptor, ModelRef, Unavailable
from smista.core.request import ExecuteRequest
from smista.core.secret import Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A candidate that was passed over: the stable code and the reason for people."""

    model: ModelRef
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A remembered fact; *scope* is `user` or `session`, *short* the id that a model is told.

    *sealed* is what storage holds of it in an encrypted session; *text* is empty until it is open.
    """

    id: str
    scope: str
    text: str
    key: str | None = None
    restricted: bool = False
    short: str = ""
    sealed: Envelope | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state one turn decides on.

    *text* is the newest text the user wrote and *command* the intent that came with it.
    *history* is oldest first and includes the present run's messages (those with *run_id*),
    *text* among them as the run's newest user message. *credentials* names the providers whose
    key came with the request. *touched_paths* are those this run's file tools named,
    *grown_kinds* the context kinds that only a run brings about (`tool_results`, `tool_error`,
    `file_changes`, `approved_plan`). *failed*: candidates that failed live in this turn.
    *barred* gives the reason why remote models are out for this turn, beyond the policy's own.
    *offered_tools* names the tools that can be carried out; None: all that run at the client.
    *closed*: what is sealed and was not opened stays out, for the fit is not redone.
    """

    request: ExecuteRequest
    text: str
    run_id: str
    command: TaskIntent | None = None
    history: tuple[Message, ...] = ()
    models: tuple[ModelDescriptor, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    credentials: frozenset[str] = frozenset()
    memory: tuple[Fact, ...] = ()
    touched_paths: tuple[str, ...] = ()
    grown_kinds: frozenset[str] = frozenset()
    plan_mode: bool = False
    failed: tuple[Attempt, ...] = ()
    barred: str | None = None
    spent: Decimal = Decimal(0)
    max_context_bytes: int = 5_242_880
    offered_tools: frozenset[str] | None = None
    closed: bool = False
