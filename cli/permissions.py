"""What the client lets a tool call do. The router's word may tighten it, never loosen it. Pure."""

from typing import cast

from cli.tools import PERMISSIONS, Change, Prepared
from smista.core.events import ToolRequest
from smista.core.git_calls import git_network
from smista.core.intents import Mode, stricter
from smista.core.policy import ToolsConfig


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
    own = PERMISSIONS[request.name]
    words: object = request.arguments.get("arguments")
    if request.name == "git" and isinstance(words, list):
        texts = [str(word) for word in cast("list[object]", words)]
        return (own, "network") if git_network(texts) else (own,)
    return (own,)


def approved_in_advance(prepared: Prepared, *, yes: bool) -> bool:
    """Return whether `--yes` or `auto_apply` answers for the user: writes inside the root only."""
    return yes and prepared.confined and isinstance(prepared.action, Change)
