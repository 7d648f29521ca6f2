"""The user's policy as it stands in `config.toml` and travels in a request, word for word.

One frozen type for file and wire. It says what is wanted; it decides nothing.
"""

from typing import Annotated, Any, ClassVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from smista.core.intents import Effort, Mode, TaskIntent
from smista.core.model_ref import Capabilities, ModelReference, Money

DEFAULT_PRIORITY = 1000


def _known(kind: type[TaskIntent] | type[Effort] | type[Mode], code: str, noun: str) -> Any:
    def check(value: object) -> object:
        if isinstance(value, str) and value in kind._value2member_map_:
            return kind(value)
        names = ", ".join(kind)
        raise PydanticCustomError(
            "domain", "{message}", {"code": code, "message": f"unknown {noun}; use one of {names}"}
        )

    return BeforeValidator(check)


Intent = Annotated[TaskIntent, _known(TaskIntent, "unknown_intent", "intent")]
EffortName = Annotated[Effort, _known(Effort, "unknown_effort", "effort")]
ModeName = Annotated[Mode, _known(Mode, "invalid_request", "permission mode")]


class Frozen(BaseModel):
    """Wire and decision values: immutable, tolerant of unknown members, silent about inputs."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        members = cast("dict[str, Any]", data)
        return {key: value for key, value in members.items() if value is not None}


class ClassificationRule(Frozen):
    intent: Intent
    priority: int = Field(DEFAULT_PRIORITY, ge=0)
    keywords: tuple[str, ...] = ()
    requires_any_context: tuple[str, ...] = ()


class ClassificationConfig(Frozen):
    default_intent: Intent = TaskIntent.CHAT
    rules: tuple[ClassificationRule, ...] = ()


class RulePermissions(Frozen):
    """What a matched rule tightens (*Tool permissions*)."""

    permissions: dict[str, ModeName] = {}


class RoutingRule(Frozen):
    """One `[[routing.rules]]` entry; all match conditions are optional (*Rule fields*)."""

    name: str
    priority: int = Field(DEFAULT_PRIORITY, ge=0)
    effort: EffortName = Effort.MEDIUM
    intent: Intent | None = None
    paths: tuple[str, ...] = ()
    local_only: bool = False
    requires_capabilities: Capabilities | None = None
    model: ModelReference
    fallbacks: tuple[ModelReference, ...] = ()
    required_permissions: RulePermissions | None = None
    cost_limit: Money | None = None


class DefaultRoute(Frozen):
    model: ModelReference
    fallbacks: tuple[ModelReference, ...] = ()


class RoutingPolicy(Frozen):
    default: DefaultRoute | None = None
    rules: tuple[RoutingRule, ...] = ()


class ToolsConfig(Frozen):
    permissions: dict[str, ModeName] = {}


class RemotePrivacy(Frozen):
    mode: ModeName = Mode.ASK
    blocked_paths: tuple[str, ...] = ()


class LocalPrivacy(Frozen):
    mode: ModeName = Mode.ALLOW


class PrivacyPolicy(Frozen):
    restricted_paths: tuple[str, ...] = ()
    remote: RemotePrivacy = RemotePrivacy()
    local: LocalPrivacy = LocalPrivacy()


class Policy(Frozen):
    """The `policy` block of a request (*Policy*)."""

    version: int
    source: str
    classification: ClassificationConfig
    routing: RoutingPolicy
    tools: ToolsConfig
    privacy: PrivacyPolicy
