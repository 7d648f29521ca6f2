"""What a turn needs a model to be able to do, and how much it must be able to hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from smista.core.candidates import image_of
from smista.core.exchanges import has_calls
from smista.core.intents import Capability, Effort, TaskIntent
from smista.core.rank import Ranked
from smista.core.rules import Route
from smista.core.snapshot import Snapshot

_DEEP: Final = frozenset({Effort.HIGH, Effort.XHIGH})
_WITH_TOOLS: Final = frozenset({TaskIntent.EDIT, TaskIntent.SKILL})


@dataclass(frozen=True, slots=True)
class Requirements:
    """*capabilities* maps each needed one to why; *tokens* and *size* are the required context."""

    capabilities: dict[Capability, str]
    tokens: int
    size: int


def requirements(
    snapshot: Snapshot, route: Route, intent: TaskIntent, ranked: Sequence[Ranked]
) -> Requirements:
    """Return what any candidate of *route* has to offer this turn."""
    needed: dict[Capability, str] = {}
    rule = route.rule
    if rule is not None and rule.effort in _DEEP:
        needed[Capability.REASONING] = f"rule {rule.name!r} asks for effort {rule.effort.value}"
    if intent in _WITH_TOOLS:
        needed[Capability.TOOLS] = f"the {intent.value} intent works with tools"
    elif has_calls(m for m in snapshot.history if m.run_id == snapshot.run_id):
        needed[Capability.TOOLS] = "this run has used tools"
    if any(image_of(file) for file in snapshot.request.attachments.files):
        needed[Capability.IMAGES] = "an image is attached"
    if rule is not None and rule.requires_capabilities is not None:
        for capability in rule.requires_capabilities.supported():
            needed.setdefault(capability, f"rule {rule.name!r} requires it")
    held = [entry.candidate for entry in ranked if entry.mark.required]
    ordered = {capability: needed[capability] for capability in Capability if capability in needed}
    return Requirements(ordered, sum(c.tokens for c in held), sum(c.size for c in held))
