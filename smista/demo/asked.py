"""What a client asked of the demo model, in no wire format's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
