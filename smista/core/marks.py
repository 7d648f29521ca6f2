"""Two marks for each candidate: must it be in the prompt, and may a remote model see it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from smista.core.calls import arguments_of, call_restriction
from smista.core.candidates import Candidate, Origin
from smista.core.diffs import FileDiff
from smista.core.exchanges import Exchange
from smista.core.history import Call, Message
from smista.core.paths import spellings
from smista.core.privacy import Guard
from smista.core.request import ContextFile, Workspace
from smista.core.rules import Route, fits
from smista.core.snapshot import Fact
from smista.core.tools import FILE_TOOLS, LISTING_TOOLS

_SAY_THEIR_PATHS = FILE_TOOLS | LISTING_TOOLS
INHERITED = "written while restricted content was in view"
FLAGGED = "the client marked it as restricted"


class Mark(NamedTuple):
    """*required* and *restricted* hold the reason, None where the mark is absent.

    *affine*: its path is one the user or the route pointed at.
    """

    required: str | None = None
    restricted: str | None = None
    affine: bool = False


_FREE = Mark()
_ALWAYS = {
    Origin.INSTRUCTION: "an instruction document",
    Origin.INVOKED_SKILL: "a skill the user invoked",
}


@dataclass(frozen=True, slots=True)
class Marker:
    """What marking looks at, prepared once a turn."""

    guard: Guard
    route: Route | None
    root: str
    pointed_at: dict[str, str]
    diff_restricted: bool

    def mark(self, candidate: Candidate) -> Mark:
        """Return the marks of *candidate*."""
        if candidate.origin is Origin.RUN:
            # What no model may be shown cannot be required of one.
            broken = isinstance(candidate.source, Exchange) and candidate.source.broken
            return Mark(None if broken else "part of this run", self._restricted(candidate))
        required = _ALWAYS.get(candidate.origin)
        if not candidate.paths:
            restricted = self._restricted(candidate)
            return Mark(required, restricted) if required or restricted else _FREE
        pointed = self._pointed(candidate)
        if required is None and candidate.origin is Origin.FILE:
            required = _attached(candidate) or pointed
        return Mark(required, self._restricted(candidate), pointed is not None)

    def _pointed(self, candidate: Candidate) -> str | None:
        rule = None if self.route is None else self.route.rule
        for path in candidate.paths:
            for form in spellings(path, self.root):
                if form in self.pointed_at:
                    return self.pointed_at[form]
            pattern = None if rule is None else fits(rule.paths, path, self.root)
            if pattern is not None and rule is not None:
                return f"fits {pattern!r} of rule {rule.name!r}"
        return None

    def _restricted(self, candidate: Candidate) -> str | None:
        match candidate.source:
            case Exchange() as unit:
                return self._exchange(unit)
            case Fact(restricted=True):
                return INHERITED
            case ContextFile(restricted=True):
                return FLAGGED
            case FileDiff(readable=False):
                return "a header of the diff cannot be read"
            case FileDiff() if self.diff_restricted:
                return FLAGGED
            case _:
                return self._first(candidate.paths)

    def _exchange(self, unit: Exchange) -> str | None:
        if not unit.messages[0].calls:
            return INHERITED if unit.messages[0].restricted else None
        calls = {call.call_id: call for message in unit.messages for call in message.calls}
        for message in unit.messages:
            reason = INHERITED if message.restricted else None
            call = calls.get(message.call_id or "")
            if reason is None and call is not None and self.guard.active:
                reason = self._result(message, call)
            if reason is not None:
                return reason
        return None

    def _result(self, message: Message, call: Call) -> str | None:
        if message.is_error and message.paths == ():
            # Refused before it ran: the text is ours, and the model is to hear of it.
            return None
        if message.paths is None and call.name in LISTING_TOOLS:
            return f"{call.name} did not say which files it read"
        found = self._first(message.paths or ())
        if found is not None or (message.paths is not None and call.name in _SAY_THEIR_PATHS):
            return found
        return call_restriction(self.guard, call.name, arguments_of(call))

    def _first(self, paths: Iterable[str]) -> str | None:
        for path in paths:
            reason = self.guard.restricts(path)
            if reason is not None:
                return reason
        return None


def marker(guard: Guard, route: Route | None, workspace: Workspace) -> Marker:
    """Return the marker of one turn; *route* is None if there is none."""
    root = workspace.root
    active = spellings(workspace.active_file, root) if workspace.active_file else ()
    pointed_at = dict.fromkeys(active, "the active file")
    for path in workspace.referenced_paths:
        pointed_at |= dict.fromkeys(spellings(path, root), "referenced by the user")
    return Marker(
        guard=guard,
        route=route,
        root=root,
        pointed_at=pointed_at,
        diff_restricted=workspace.git_diff_restricted,
    )


def _attached(candidate: Candidate) -> str | None:
    match candidate.source:
        case ContextFile(required=True):
            return "attached as required"
        case _:
            return None
