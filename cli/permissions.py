"""What the client lets a tool call do. The router's word may tighten it, never loosen it. Pure."""

from cli.tools import PERMISSIONS, Change, Prepared
from smista.core.events import ToolRequest
from smista.core.intents import Mode, stricter
from smista.core.policy import ToolsConfig


def denied(request: ToolRequest, tools: ToolsConfig) -> bool:
    """Return whether the policy rules *request* out, so that nothing is even looked at for it."""
    keys = (PERMISSIONS[request.name], request.name)
    return any(tools.permissions.get(key) is Mode.DENY for key in keys)


def mode_of(request: ToolRequest, prepared: Prepared, tools: ToolsConfig) -> Mode:
    """Return the mode of *request*: the strictest of router, policy and what the call touches."""
    configured = tools.permissions
    return stricter(
        Mode(request.requires_approval),
        Mode(configured.get(PERMISSIONS[request.name], Mode.ASK)),
        Mode(configured.get(request.name, Mode.ALLOW)),
        floor_of(request, prepared),
    )


def floor_of(request: ToolRequest, prepared: Prepared) -> Mode:
    """Return the least strict mode that any policy can grant *prepared*."""
    if request.name == "shell":
        return Mode.ASK if request.restricted_in_view else Mode.ALLOW
    return Mode.ALLOW if prepared.confined else Mode.ASK


def approved_in_advance(prepared: Prepared, *, yes: bool) -> bool:
    """Return whether `--yes` or `auto_apply` answers for the user: writes inside the root only."""
    return yes and prepared.confined and isinstance(prepared.action, Change)
