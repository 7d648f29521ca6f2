"""Why a turn may use local models only, if it must; and what its writings inherit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from smista.core.decision import Item
from smista.core.intents import Mode
from smista.core.rank import Ranked
from smista.core.rules import Route
from smista.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Locality:
    """*reason* bars remote models; *content* says that required restricted content is the cause."""

    reason: str
    content: bool = False


def locality(snapshot: Snapshot, route: Route | None, ranked: Iterable[Ranked]) -> Locality | None:
    """Return why only local models are eligible for this turn, None if any model is."""
    held = [entry for entry in ranked if entry.mark.required and entry.mark.restricted]
    if held:
        named = "; ".join(
            f"{entry.candidate.label} is required and restricted: {entry.mark.restricted}"
            for entry in held
        )
        return Locality(named, content=True)
    reason = _preference(snapshot) or _policy(snapshot, route) or snapshot.barred
    return None if reason is None else Locality(reason)


def inherits_restriction(snapshot: Snapshot, route: Route, items: Sequence[Item]) -> bool:
    """Say if what this turn writes may reach no remote model later (*Restriction is inherited*)."""
    held = any(item.included and item.restricted for item in items)
    rule = route.rule
    by_rule = rule is not None and rule.local_only and bool(rule.paths)
    chosen = _preference(snapshot) is not None or snapshot.barred is not None
    denied = snapshot.request.policy.privacy.remote.mode is Mode.DENY
    return held or by_rule or chosen or denied


def _preference(snapshot: Snapshot) -> str | None:
    preferences = snapshot.request.local_preferences
    if preferences.local_only:
        return "the local preference local_only is set"
    if preferences.no_network:
        return "the local preference no_network is set"
    return None


def _policy(snapshot: Snapshot, route: Route | None) -> str | None:
    if snapshot.request.policy.privacy.remote.mode is Mode.DENY:
        return "privacy.remote.mode is deny"
    if route is not None and route.rule is not None and route.rule.local_only:
        return f"rule {route.rule.name!r} is local_only"
    return None
