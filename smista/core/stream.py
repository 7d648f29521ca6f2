"""What a model says: one vocabulary for all providers, in the order it was said."""

from dataclasses import dataclass
from enum import StrEnum


class Finish(StrEnum):
    """Why a model stopped. INFERRED: the stream ended properly but gave no reason."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSAL = "refusal"
    INFERRED = "inferred_stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """The name of call number *index* (0, 1, … in order of appearance) is known."""

    index: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallEnded:
    """Call *index* is complete. *id* is the provider's own, "" if it gave none.

    *arguments* is the JSON text as the model wrote it ("" counts as `{}`); it is not trusted.
    """

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call as the provider bills them; None: the provider did not say.

    It may be told several times: each is the whole count so far, and the last one holds.

    *input_tokens* includes *cached_tokens* and *cache_write_tokens*; *output_tokens* includes
    *reasoning_tokens*. Dialects bring their provider's counting into this form.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd:
    """The answer is whole. *model* is the model that served, if the provider names it."""

    finish: Finish
    model: str | None = None


StreamEvent = TextDelta | ReasoningDelta | ToolStarted | ToolCallEnded | Usage | StreamEnd
