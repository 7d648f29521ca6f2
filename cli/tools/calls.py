"""A tool call as it will be done, and what came of it: the values between saying and doing."""

from dataclasses import dataclass
from pathlib import Path

from cli.files import Seen
from cli.finding import Scope
from cli.git_tool import GitCall


class Outside(Exception):
    """A call leads out of the project, and nobody agreed yet to look there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    real: Path
    first: int
    count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The whole file as it was *seen*, and after."""

    seen: Seen
    after: bytes

    @property
    def real(self) -> Path:
        return self.seen.real

    @property
    def before(self) -> bytes | None:
        """The content that will be replaced; None: there is no file yet."""
        return self.seen.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    line: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """*pattern* None asks for names alone."""

    scope: Scope
    pattern: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    url: str


Action = Reading | Change | Command | Looking | GitCall | Fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A call as it will be done. *shown* is the whole diff or command.

    *paths*: the path as given and the real one. *confined*: nothing outside the root is
    touched and nothing that steers other programs is written. *warning*: why nobody can have
    agreed to it in advance.
    """

    title: str
    shown: str
    action: Action
    paths: tuple[str, ...] | None = None
    confined: bool = True
    warning: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """*paths* are known only afterwards where a call does not name its files."""

    content: str
    is_error: bool = False
    paths: tuple[str, ...] | None = None
    restricted: bool | None = None
