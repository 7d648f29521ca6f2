"""What the trace tells of a decision, laid down in the draft of its turn."""

from actors.draft import Draft
from smista.core.decision import Decision, Refusal
from smista.core.records import EventType
from smista.core.views import classification_payload, refusal_payload, routing_payload


def note_decision(draft: Draft, decision: Decision, *, again: bool) -> None:
    """Note which model was chosen and what it gets. *again*: for a fallback of the same turn."""
    draft.add_routing(decision)
    if not again:
        draft.note(EventType.CLASSIFICATION, classification_payload(decision.classification))
    routed = routing_payload(decision.routing, decision.prompt, decision.attempts)
    draft.note(EventType.ROUTING_DECISION, routed)
    draft.add_selection(decision.items)


def note_refusal(draft: Draft, refusal: Refusal) -> None:
    """Place the events of a failed route at the route's primary; without one, drop them."""
    primary = refusal.primary
    intent = refusal.classification.intent
    if primary is None:
        draft.context(intent, "", "", None)
    else:
        draft.context(intent, primary.provider, primary.model, refusal.matched_rule)
    draft.note(EventType.CLASSIFICATION, classification_payload(refusal.classification))
    draft.note(EventType.ROUTING_DECISION, refusal_payload(refusal))
    draft.add_selection(refusal.items)


def place(draft: Draft, decision: Decision) -> None:
    """File what was said so far under *decision*, which is made again once rows are open."""
    routing = decision.routing
    draft.context(routing.task_type, routing.provider, routing.model, routing.matched_rule)
