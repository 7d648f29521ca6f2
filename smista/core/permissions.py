"""What a turn's tools may do: the project's modes, tightened by the matched rule and the user."""

from collections.abc import Mapping
from typing import Final

from smista.core.errors import PermissionExpansion
from smista.core.intents import Mode, stricter
from smista.core.policy import Policy, RoutingRule
from smista.core.prompt import Tool
from smista.core.request import LocalPreferences
from smista.core.tools import CLIENT_TOOLS, TOOLS

_OPEN_UNLESS_SET: Final = frozenset({"memory", "skill"})


def narrowed(policy: Policy, rule: RoutingRule | None) -> dict[str, Mode]:
    """Return the configured modes with the rule's own on top, none of them loosened."""
    modes = dict(policy.tools.permissions)
    if rule is not None and rule.required_permissions is not None:
        for name, mode in rule.required_permissions.permissions.items():
            modes[name] = stricter(modes.get(name, mode), mode)
    return {name: modes[name] for name in sorted(modes)}


def turn_permissions(
    policy: Policy, rule: RoutingRule | None, preferences: LocalPreferences
) -> dict[str, Mode]:
    """Return the modes that govern this turn; `no_network` denies the network tools."""
    modes = narrowed(policy, rule)
    if preferences.no_network:
        modes["network"] = Mode.DENY
    return {name: modes[name] for name in sorted(modes)}


def permission_expansion(policy: Policy, rule: RoutingRule | None) -> PermissionExpansion | None:
    """Return the error for a rule that sets a tool looser than the project does, if it does."""
    if rule is None or rule.required_permissions is None:
        return None
    configured = policy.tools.permissions
    for name, mode in sorted(rule.required_permissions.permissions.items()):
        if name in configured and mode.strictness < configured[name].strictness:
            return PermissionExpansion(
                f"rule {rule.name!r} sets {name!r} to {mode.value}, looser than the configured"
                f" {configured[name].value}; a rule may only tighten",
                tool=name,
                rule=rule.name,
            )
    return None


def check_permissions(policy: Policy) -> None:
    """Raise PermissionExpansion for the first rule that loosens a tool."""
    for rule in policy.routing.rules:
        error = permission_expansion(policy, rule)
        if error is not None:
            raise error


def mode_of(tool: Tool, modes: Mapping[str, Mode]) -> Mode:
    """Return the mode of *tool*: the stricter of its own name's and its permission key's."""
    set_modes = [modes[name] for name in (tool.name, tool.permission) if name in modes]
    if set_modes:
        return stricter(*set_modes)
    return Mode.ALLOW if tool.permission in _OPEN_UNLESS_SET else Mode.ASK


def offered(
    modes: Mapping[str, Mode], *, plan_mode: bool, known: frozenset[str] | None
) -> tuple[Tool, ...]:
    """Return the tools a model is offered: not denied, not writing while planning.

    *known* names the tools that can be carried out; None: all that run at the client.
    """
    names = CLIENT_TOOLS if known is None else known
    return tuple(
        tool
        for tool in TOOLS
        if tool.name in names
        and mode_of(tool, modes) is not Mode.DENY
        and not (plan_mode and tool.writes)
    )
