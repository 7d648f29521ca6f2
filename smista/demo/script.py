"""The demo model's script: rules that choose an answer, and the steps of the answer.

Nothing here knows a wire format; the formats turn steps into bytes.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeGuard

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from smista.core.errors import InvalidRequest

VARIABLES: Final = frozenset({"user", "model", "call", "tool", "result", "wrong", "right"})
VARIABLE: Final = re.compile(r"\{(\w+)\}")


class ScriptError(InvalidRequest):
    """The script cannot be used; the message names file, place and remedy."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Reasoning(_Strict):
    reasoning: str
    words: int = Field(default=3, ge=1)
    deltas: int | None = Field(default=None, ge=1)

    @property
    def said(self) -> str:
        return self.reasoning


class Text(_Strict):
    """A text, sent *words* words at a time or in *deltas* pieces."""

    text: str
    words: int = Field(default=3, ge=1)
    deltas: int | None = Field(default=None, ge=1)

    @property
    def said(self) -> str:
        return self.text


class Tool(_Strict):
    """A tool call. *id* "" lets the wire format name it."""

    tool: str
    arguments: dict[str, Any] = {}
    id: str = ""


class Tokens(_Strict):
    input: int = Field(ge=0)
    output: int = Field(ge=0)
    cached: int = Field(default=0, ge=0)
    reasoning: int = Field(default=0, ge=0)


class UsageStep(_Strict):
    usage: Tokens


class Pause(_Strict):
    pause_ms: float = Field(ge=0)


class Hold(_Strict):
    """Say nothing more until the client leaves."""

    hold: Literal[True]


class Failure(_Strict):
    """*body* None: the wire format writes its usual error with *message*."""

    status: int = Field(default=500, ge=400, le=599)
    message: str = "the script says so"
    body: str | None = None
    retry_after: str | None = None


class ErrorStep(_Strict):
    """As the first step an HTTP error, later an error inside the stream."""

    error: Failure


class Cut(_Strict):
    """Close the connection in the middle of the answer."""

    cut: Literal[True]


Step = Reasoning | Text | Tool | UsageStep | Pause | Hold | ErrorStep | Cut
_KINDS: Final = ("reasoning", "text", "tool", "usage", "pause_ms", "hold", "error", "cut")


def _kind(value: Any) -> str | None:
    """Return the member that tells which step *value* is."""
    return next((kind for kind in _KINDS if _has(value, kind)), None)


def _has(value: Any, kind: str) -> bool:
    return kind in value if _is_table(value) else hasattr(value, kind)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list | tuple)


def _is_table(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


_AnyStep = Annotated[
    Annotated[Reasoning, Tag("reasoning")]
    | Annotated[Text, Tag("text")]
    | Annotated[Tool, Tag("tool")]
    | Annotated[UsageStep, Tag("usage")]
    | Annotated[Pause, Tag("pause_ms")]
    | Annotated[Hold, Tag("hold")]
    | Annotated[ErrorStep, Tag("error")]
    | Annotated[Cut, Tag("cut")],
    Discriminator(
        _kind,
        custom_error_type="step",
        custom_error_message=f"a step has one of {', '.join(_KINDS)}",
    ),
]


def _pattern(value: str | None) -> re.Pattern[str] | None:
    return None if value is None else re.compile(value, re.IGNORECASE | re.DOTALL)


class When(_Strict):
    """Conditions; all that are given must hold.

    *user* and *prompt* are regular expressions (case ignored, `.` matches newlines) searched in
    the newest user text and in the whole prompt; their named groups become variables. *results*:
    tool results came after the user's text; *after* names the tool of the last one, *failed*
    tells if it failed. *correction*: a word of `[corrections]` stands in the prompt. *tools*
    must be on offer. *model* is the exact model name, *call* the number of the request.
    """

    user: str | None = None
    prompt: str | None = None
    results: bool | None = None
    after: tuple[str, ...] = ()
    failed: bool | None = None
    correction: bool | None = None
    tools: tuple[str, ...] = ()
    model: str | None = None
    call: int | None = Field(default=None, ge=1)

    @property
    def patterns(self) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
        return _pattern(self.user), _pattern(self.prompt)

    def variables(self) -> frozenset[str]:
        groups = (p.groupindex for p in self.patterns if p is not None)
        return frozenset(name for index in groups for name in index)


class Rule(_Strict):
    name: str
    when: When = When()
    say: tuple[_AnyStep, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _variables_exist(self) -> "Rule":
        try:
            known = VARIABLES | self.when.variables()
        except re.error as error:
            raise ValueError(f"a pattern of rule {self.name!r} is no pattern: {error}") from None
        for name in _named(self.model_dump()["say"]):
            if name not in known:
                raise ValueError(f"rule {self.name!r} uses {{{name}}}, which nothing defines")
        return self


class Script(_Strict):
    """The first rule whose conditions hold answers. *api_key* None: no key is asked for."""

    models: tuple[str, ...] = ("demo",)
    api_key: str | None = Field(default=None, repr=False)
    corrections: dict[str, str] = {}
    rules: tuple[Rule, ...] = Field(min_length=1)


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from VARIABLE.findall(value)
    elif _is_table(value):
        yield from (name for item in value.values() for name in _named(item))
    elif _is_list(value):
        yield from (name for item in value for name in _named(item))


def parse_script(text: str, *, source: str = "script") -> Script:
    """Return the script written in *text* (TOML). Raises ScriptError naming the place."""
    try:
        return Script.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ScriptError(f"{source} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ScriptError(f"{source}: {place}: {first['msg']}") from None


def load_script(path: Path | None = None) -> Script:
    """Return the script at *path*, or the built-in one. Raises ScriptError."""
    if path is None:
        return parse_script(files("smista.demo").joinpath("default.toml").read_text("utf-8"))
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path} cannot be read as a script: {error}") from None
    return parse_script(text, source=str(path))


def split(step: Reasoning | Text) -> list[str]:
    """Return the deltas of *step*; joined they are its text again."""
    words = re.findall(r"\S+\s*|\s+", step.said)
    size = step.words if step.deltas is None else max(1, -(-len(words) // step.deltas))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]


def filled(step: Step, variables: Mapping[str, str]) -> Step:
    """Return *step* with `{name}` replaced by what *variables* says."""
    return type(step).model_validate(_filled(step.model_dump(exclude_none=True), variables))


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return VARIABLE.sub(lambda found: variables.get(found[1], found[0]), value)
    if _is_table(value):
        return {key: _filled(item, variables) for key, item in value.items()}
    if _is_list(value):
        return [_filled(item, variables) for item in value]
    return value
