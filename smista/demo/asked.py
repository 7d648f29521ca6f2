"""What a client asked of the demo model, in no wire format's words."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from hashlib import sha256
from typing import Any, Final

_REFUSALS: Final = ("error", "rejected", "refused", "denied", "the user rejected", "failed")


class BadBody(Exception):
    """The body is no request of its format; the text says why."""


def tells_of_failure(result: str) -> bool:
    """Tell if the text of a tool result begins as errors and refusals do."""
    return result.lstrip().lower().startswith(_REFUSALS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one tool call, as the client reported it."""

    tool: str
    text: str
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request. *texts* are all texts of the prompt, *user* is the user's newest one.

    *given* are those that neither the model nor a tool wrote. *results* are the tool results
    that came after *user*. All are oldest first. *digest* names the prompt: equal prompts get
    equal answers, ids included.
    """

    model: str
    user: str
    texts: tuple[str, ...]
    digest: str
    given: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    tools: frozenset[str] = frozenset()
    stream: bool = True
    usage_wanted: bool = True
    body: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    @property
    def size(self) -> int:
        """Return the prompt's length in characters."""
        return sum(map(len, self.texts))


class By(Enum):
    """Who wrote a text of the prompt."""

    SYSTEM = auto()
    USER = auto()
    MODEL = auto()
    TOOL = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One text of the prompt; *tool* and *failed* belong to a tool's result."""

    by: By
    text: str
    tool: str = ""
    failed: bool = False


def compose(
    model: str,
    said: Iterable[Said],
    *,
    tools: Iterable[str],
    stream: bool,
    body: Mapping[str, Any],
    prompt: Any,
) -> Asked:
    """Return the request that the texts *said* make, oldest first; *prompt* names it."""
    texts = tuple(said)
    users = [at for at, one in enumerate(texts) if one.by is By.USER]
    newest = users[-1] if users else -1
    results = (one for one in texts[newest + 1 :] if one.by is By.TOOL)
    written = json.dumps([model, prompt], sort_keys=True)
    return Asked(
        model=model,
        user=texts[newest].text if users else "",
        texts=tuple(one.text for one in texts),
        digest=sha256(written.encode("utf-8", "replace")).hexdigest()[:16],
        given=tuple(one.text for one in texts if one.by in (By.SYSTEM, By.USER)),
        results=tuple(Result(tool=r.tool, text=r.text, failed=r.failed) for r in results),
        tools=frozenset(tools),
        stream=stream,
        body=body,
    )
