"""Decisions that belong to the user before a model is called: disclosure and cost (*Approvals*).

A gate is asked until it is answered; what was agreed to once is not asked again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from smista.core.decision import Decision
from smista.core.history import Message, Role
from smista.core.intents import Mode
from smista.core.model_ref import plain
from smista.core.paths import is_absolute
from smista.core.records import RunState
from smista.core.request import ExecuteRequest

DISCLOSURE: Final = "remote_disclosure"
COST: Final = "cost_limit"
PLAN: Final = "plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A question to the user: its kind, and what they are shown."""

    kind: str
    detail: Mapping[str, Any]


def next_gate(
    decision: Decision, request: ExecuteRequest, run: RunState, disclosed: frozenset[str]
) -> Gate | None:
    """Return what has to be asked before the decided call is made, None if it may be made.

    *disclosed* holds what the session's user already agreed to (`disclosure_targets`).
    """
    return _disclosure(decision, request, run, disclosed) or _cost(decision, run)


def disclosure_targets(provider: str, things: list[str]) -> tuple[str, ...]:
    """Return what an approval of *things* covers: the workspace's paths, and each other thing."""
    return (provider, *(f"{provider} {thing}" for thing in things if not _in_workspace(thing)))


def _disclosure(
    decision: Decision, request: ExecuteRequest, run: RunState, disclosed: frozenset[str]
) -> Gate | None:
    privacy, local = request.policy.privacy, decision.descriptor.local
    if (privacy.local.mode if local else privacy.remote.mode) is not Mode.ASK:
        return None
    provider = decision.routing.provider
    things = [
        thing
        for thing in dict.fromkeys(_things(decision, run.run_id))
        if not disclosed.issuperset(disclosure_targets(provider, [thing]))
    ]
    if not things:
        return None
    detail = {"provider": provider, "model": decision.routing.model, "paths": things}
    return Gate(kind=DISCLOSURE, detail={**detail, "local": True} if local else detail)


def _things(decision: Decision, run_id: str) -> Iterator[str]:
    """Name what the prompt carries beside the user's words and instructions."""
    for item in decision.included:
        if item.kind in ("file", "diff"):
            yield item.path or item.label
        elif item.kind == "memory":
            yield "memory"
    messages = decision.prompt.messages
    if any(m.uuid and m.run_id != run_id for m in messages):
        yield "history"
    yield from _tools(messages)


def _tools(messages: tuple[Message, ...]) -> Iterator[str]:
    names = {call.call_id: call.name for m in messages for call in m.calls}
    for message in messages:
        if message.role is Role.TOOL and message.call_id is not None:
            yield f"tool:{names.get(message.call_id, 'unknown')}"


def _in_workspace(thing: str) -> bool:
    named = thing in ("memory", "history") or thing.startswith("tool:")
    return not (named or is_absolute(thing) or thing.startswith("../"))


def _cost(decision: Decision, run: RunState) -> Gate | None:
    limit = decision.cost_limit
    if limit is None:
        return None
    highest = run.spent.cost + decision.cost.max
    known = decision.cost.known
    if known and highest <= max(limit, run.ceiling or Decimal(0)):
        return None
    if not known and run.unpriced_agreed:
        return None
    detail = {
        "provider": decision.routing.provider,
        "model": decision.routing.model,
        "estimated_cost": plain(decision.cost.max) if known else None,
        "spent": plain(run.spent.cost),
        "cost_limit": plain(limit),
    }
    return Gate(kind=COST, detail=detail)
