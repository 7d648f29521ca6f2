"""From the prompt and what is at hand to the kind of work, with the reason. Never by a model."""

from collections.abc import Set as AbstractSet

from smista.core.decision import Classification
from smista.core.intents import Confidence, IntentSource, TaskIntent
from smista.core.keywords import Hit, Wording
from smista.core.policy import ClassificationConfig, ClassificationRule


def classify(
    config: ClassificationConfig,
    text: str,
    kinds: AbstractSet[str],
    command: TaskIntent | None = None,
) -> Classification:
    """Return the intent of *text*: the command, else the first rule that fits, else the default.

    *kinds* are the context kinds at hand (*Task intent classification*).
    """
    if command is not None:
        reason = f"explicit command {command.value!r}"
        return Classification(intent=command, source=IntentSource.EXPLICIT, reason=reason)
    wording = Wording(text)
    order = sorted(enumerate(config.rules), key=lambda entry: (entry[1].priority, entry[0]))
    for index, rule in order:
        found = _try(rule, index, wording, kinds)
        if found is not None:
            return found
    intent = config.default_intent
    return Classification(
        intent=intent,
        source=IntentSource.INFERRED,
        reason=f"no classification rule matched; the default intent is {intent.value!r}",
        confidence=Confidence.LOW,
    )


def _try(
    rule: ClassificationRule, index: int, wording: Wording, kinds: AbstractSet[str]
) -> Classification | None:
    kind = next((kind for kind in rule.requires_any_context if kind in kinds), None)
    if rule.requires_any_context and kind is None:
        return None
    hit = wording.find(rule.keywords)
    if rule.keywords and hit is None:
        return None
    return Classification(
        intent=rule.intent,
        source=IntentSource.INFERRED,
        reason=_reason(index, hit, kind),
        matched_rule=index,
        confidence=_confidence(hit, kind),
    )


def _confidence(hit: Hit | None, kind: str | None) -> Confidence:
    if hit is None and kind is None:
        return Confidence.LOW
    if hit is not None and kind is not None and hit.typo is None:
        return Confidence.HIGH
    return Confidence.MEDIUM


def _reason(index: int, hit: Hit | None, kind: str | None) -> str:
    found: list[str] = []
    if hit is not None:
        written = "" if hit.typo is None else f" (written {hit.typo!r})"
        found.append(f"keyword {hit.keyword!r}{written}")
    if kind is not None:
        found.append(f"context kind {kind!r}")
    if not found:
        return f"rule {index} has no conditions and matches everything"
    return f"{' and '.join(found)} matched rule {index}"
