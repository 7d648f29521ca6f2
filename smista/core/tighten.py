"""What a policy of strangers may change before the user has trusted it: only tighten.

A folder from elsewhere brings its own configuration. Until its user has looked at it, it may
restrict more paths, ask or deny more, cut a chain of fallbacks short and lower a cost limit. What
could bring in a model, let more bytes out or allow more is not taken over.
"""

from decimal import Decimal

from smista.core.intents import Mode, stricter
from smista.core.model_ref import ModelRef
from smista.core.policy import (
    DefaultRoute,
    Policy,
    PrivacyPolicy,
    RoutingPolicy,
    RoutingRule,
    RulePermissions,
    ToolsConfig,
)
from smista.core.request import LocalPreferences

Modes = dict[str, Mode]


def tighten(own: Policy, said: Policy) -> Policy:
    """Return *own* with those parts of *said* that make it stricter."""
    permissions = _permissions(own.tools.permissions, said.tools.permissions)
    configured = own.tools.permissions
    raised = {name: mode for name, mode in permissions.items() if mode != configured.get(name)}
    routing = _routing(own.routing, said.routing, raised)
    return own.model_copy(
        update={
            "tools": ToolsConfig(permissions=permissions),
            "routing": routing,
            "privacy": _privacy(own.privacy, said.privacy),
        }
    )


def tighten_preferences(own: LocalPreferences, said: LocalPreferences) -> LocalPreferences:
    """Return *own* with the switches on that *said* turns on; writing unasked stays the user's."""
    return own.model_copy(
        update={
            "local_only": own.local_only or said.local_only,
            "no_network": own.no_network or said.no_network,
            "auto_apply": own.auto_apply
            and (said.auto_apply or "auto_apply" not in said.model_fields_set),
        }
    )


def _privacy(own: PrivacyPolicy, said: PrivacyPolicy) -> PrivacyPolicy:
    remote, local = own.remote.mode, own.local.mode
    if "mode" in said.remote.model_fields_set:
        remote = stricter(remote, said.remote.mode)
    if "mode" in said.local.model_fields_set:
        # Not `deny`: without its local models the user's own chain would go on to a remote one.
        local = stricter(local, Mode.ASK if said.local.mode is Mode.DENY else said.local.mode)
    blocked = _united(own.remote.blocked_paths, said.remote.blocked_paths)
    return own.model_copy(
        update={
            "restricted_paths": _united(own.restricted_paths, said.restricted_paths),
            "remote": own.remote.model_copy(update={"mode": remote, "blocked_paths": blocked}),
            "local": own.local.model_copy(update={"mode": local}),
        }
    )


def _united(own: tuple[str, ...], said: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*own, *said)))


def _permissions(own: Modes, said: Modes) -> Modes:
    """Return *own* raised to what *said* asks; `allow` for what is not set is never taken over."""
    modes = dict(own)
    for name, mode in said.items():
        if name in own:
            modes[name] = stricter(own[name], mode)
        elif mode is not Mode.ALLOW:
            modes[name] = mode
    return modes


def _routing(own: RoutingPolicy, said: RoutingPolicy, raised: Modes) -> RoutingPolicy:
    stated = {rule.name: rule for rule in said.rules}
    rules = tuple(_rule(rule, stated.get(rule.name), raised) for rule in own.rules)
    default = own.default
    if default is not None and said.default is not None:
        default = _default(default, said.default)
    return own.model_copy(update={"rules": rules, "default": default})


def _default(own: DefaultRoute, said: DefaultRoute) -> DefaultRoute:
    return own.model_copy(update={"fallbacks": _cut(own, said)})


def _rule(own: RoutingRule, said: RoutingRule | None, raised: Modes) -> RoutingRule:
    wanted = dict(own.required_permissions.permissions) if own.required_permissions else {}
    changes: dict[str, object] = {}
    if said is not None:
        changes = {"fallbacks": _cut(own, said), "cost_limit": _lower(own, said)}
        if said.required_permissions is not None:
            wanted = _permissions(wanted, said.required_permissions.permissions)
    # A rule may not be looser than what is configured, and that has just become stricter.
    wanted = {name: stricter(mode, raised.get(name, mode)) for name, mode in wanted.items()}
    if wanted:
        changes["required_permissions"] = RulePermissions(permissions=wanted)
    return own.model_copy(update=changes)


def _cut(own: RoutingRule | DefaultRoute, said: RoutingRule | DefaultRoute) -> tuple[ModelRef, ...]:
    """Return the fallbacks up to the first one that *said* leaves out.

    Taking one out of the middle would bring in a later one where the user chose the earlier.
    """
    named = {said.model, *said.fallbacks}
    if own.model not in named:
        return own.fallbacks
    kept: list[ModelRef] = []
    for ref in own.fallbacks:
        if ref not in named:
            break
        kept.append(ref)
    return tuple(kept)


def _lower(own: RoutingRule, said: RoutingRule) -> Decimal | None:
    limits = [limit for limit in (own.cost_limit, said.cost_limit) if limit is not None]
    return min(limits, default=None)
