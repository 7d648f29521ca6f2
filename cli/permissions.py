"""What the client lets a tool call do. The router's word may tighten it, never loosen it. Pure."""

import shlex
from dataclasses import dataclass
from typing import cast

from cli.simple_commands import beginning, begins_with
from cli.tools import Change, Prepared
from smista.core.events import ToolRequest
from smista.core.git_calls import git_network
from smista.core.intents import Mode, stricter
from smista.core.policy import ToolsConfig
from smista.core.tools import BY_NAME


def denied(request: ToolRequest, tools: ToolsConfig) -> bool:
    """Return whether the policy rules *request* out, so that nothing is even looked at for it."""
    return any(tools.permissions.get(key) is Mode.DENY for key in (*_keys(request), request.name))


def mode_of(request: ToolRequest, prepared: Prepared, tools: ToolsConfig) -> Mode:
    """Return the mode of *request*: the strictest of router, policy and what the call touches."""
    configured = tools.permissions
    return stricter(
        Mode(request.requires_approval),
        *(Mode(configured.get(key, Mode.ASK)) for key in _keys(request)),
        Mode(configured.get(request.name, Mode.ALLOW)),
        floor_of(request, prepared),
    )


def floor_of(request: ToolRequest, prepared: Prepared) -> Mode:
    """Return the least strict mode that any policy can grant *prepared*."""
    if request.restricted_in_view and (request.name == "shell" or "network" in _keys(request)):
        return Mode.ASK
    return Mode.ALLOW if prepared.confined or request.name == "shell" else Mode.ASK


def named_in_advance(request: ToolRequest, prepared: Prepared, named: frozenset[str]) -> bool:
    """Return whether `--yes=…` *named* all that *request* needs; it is no word on files."""
    if isinstance(prepared.action, Change) or request.restricted_in_view:
        return False
    return named.issuperset(_keys(request))


def _keys(request: ToolRequest) -> tuple[str, ...]:
    """Return the permissions that *request* needs; git that talks to others needs two."""
    own = BY_NAME[request.name].permission
    words: object = request.arguments.get("arguments")
    if request.name == "git" and isinstance(words, list):
        texts = [str(word) for word in cast("list[object]", words)]
        return (own, "network") if git_network(texts) else (own,)
    return (own,)


def approved_in_advance(prepared: Prepared, *, yes: bool) -> bool:
    """Return whether `--yes` or `auto_apply` answers for the user: writes inside the root only."""
    return yes and prepared.confined and isinstance(prepared.action, Change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What "always in this session" allows: how a command begins, or, without *words*, writes."""

    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.words:
            return "every change of a file inside the project"
        return f"every simple command that begins with: {shlex.join(self.words)}"


class Grants:
    """What the person allowed for the rest of one session. Kept by the client, and nowhere else.

    Nothing is covered while restricted content is in view.
    """

    def __init__(self) -> None:
        self._given: set[Grant] = set()

    def add(self, grant: Grant) -> None:
        self._given.add(grant)

    def cover(self, request: ToolRequest, prepared: Prepared) -> bool:
        if request.restricted_in_view or prepared.warning is not None:
            return False
        if approved_in_advance(prepared, yes=True):
            return Grant() in self._given
        line = _shell_line(request)
        return line is not None and any(
            begins_with(line, grant.words) for grant in self._given if grant.words
        )


def offered(request: ToolRequest, prepared: Prepared) -> Grant | None:
    """Return what "always" would allow for calls like *request*; None: it is not offered."""
    if request.restricted_in_view or prepared.warning is not None:
        return None
    if approved_in_advance(prepared, yes=True):
        return Grant()
    words = beginning(_shell_line(request) or "")
    return None if words is None else Grant(words=words)


def _shell_line(request: ToolRequest) -> str | None:
    line: object = request.arguments.get("command")
    return line if request.name == "shell" and isinstance(line, str) else None
