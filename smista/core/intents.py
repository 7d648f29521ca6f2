"""The fixed vocabularies of the policy: intents, effort, permission modes, capabilities."""

from enum import StrEnum


class TaskIntent(StrEnum):
    """The kind of work one step performs (*Task intent classification*)."""

    CHAT = "chat"
    PLAN = "plan"
    EDIT = "edit"
    REVIEW = "review"
    SUMMARIZE = "summarize"
    PROMPT = "prompt"
    SKILL = "skill"


class Effort(StrEnum):
    """How much reasoning a model is asked to spend, from least to most."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"


class Mode(StrEnum):
    """What happens to a tool call; strictness grows from allow to deny."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        return _STRICTNESS[self]


_STRICTNESS = {Mode.ALLOW: 0, Mode.ASK: 1, Mode.DENY: 2}


def stricter(*modes: Mode) -> Mode:
    """Return the strictest of *modes*."""
    return max(modes, key=lambda mode: mode.strictness)


class Capability(StrEnum):
    """What a model can do, as its provider reports it."""

    STREAMING = "streaming"
    TOOLS = "tools"
    JSON_OUTPUT = "json_output"
    SYSTEM_PROMPT = "system_prompt"
    IMAGES = "images"
    REASONING = "reasoning"
    MEMORY = "memory"


class Confidence(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class IntentSource(StrEnum):
    EXPLICIT = "explicit"
    INFERRED = "inferred"
