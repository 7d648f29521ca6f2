"""What was decided, and why: one object explains preview, trace and the line in the terminal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from smista.core.errors import PermissionExpansion, RoutingError
from smista.core.intents import Confidence, Effort, IntentSource, Mode, TaskIntent
from smista.core.model_ref import ModelDescriptor, ModelRef
from smista.core.prompt import Prompt
from smista.core.snapshot import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """*matched_rule* is the index into the policy's classification rules."""

    intent: TaskIntent
    source: IntentSource
    reason: str
    matched_rule: int | None = None
    confidence: Confidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One context candidate and what became of it. *label* is for people, *tokens* an estimate."""

    kind: str
    label: str
    tokens: int
    required: bool
    restricted: bool
    included: bool
    reason: str
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """The route (*The routing outcome*). *matched_rule* is `<rule name> -> <provider/model>`."""

    task_type: TaskIntent
    provider: str
    model: str
    reason: str
    matched_rule: str | None = None
    fallback_used: bool = False
    override_used: bool = False
    effort: Effort = Effort.MEDIUM


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRange:
    """USD. *known* is False for a remote model without prices: then both ends are 0."""

    min: Decimal = Decimal(0)
    max: Decimal = Decimal(0)
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A turn that can be served: by which model, with which prompt, under which permissions.

    *permissions* maps permission keys and tool names to the mode after narrowing.
    *restricted_in_view*: what is written in this turn inherits the restriction.
    *locality* is the reason why only local models were eligible, None if any was.
    """

    classification: Classification
    routing: Routing
    descriptor: ModelDescriptor
    prompt: Prompt
    items: tuple[Item, ...]
    permissions: Mapping[str, Mode]
    cost: CostRange
    cost_limit: Decimal | None = None
    attempts: tuple[Attempt, ...] = ()
    restricted_in_view: bool = False
    locality: str | None = None

    @property
    def included(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.included)

    @property
    def excluded(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if not item.included)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A turn that no model may or can serve; *error* says why, *primary* what was asked first."""

    classification: Classification
    error: RoutingError | PermissionExpansion
    primary: ModelRef | None = None
    matched_rule: str | None = None
    items: tuple[Item, ...] = ()
    attempts: tuple[Attempt, ...] = field(default=())
    override_used: bool = False
