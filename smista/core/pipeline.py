"""The whole decision, as its steps in order: nothing is decided here that a step does not decide.

Pure: the same snapshot always gives the same decision, whoever asks and whenever. So preview,
execute and explain cannot disagree.
"""

from typing import Final

from smista.core.assembly import assemble
from smista.core.candidates import Origin, candidates, split_git_diff, task_paths
from smista.core.classify import classify
from smista.core.context_kinds import available_kinds
from smista.core.decision import Classification, Decision, Refusal, Routing
from smista.core.errors import NoRoute
from smista.core.finalize import Selection, finalize, unserved, with_skill_bodies
from smista.core.intents import Mode
from smista.core.locality import Locality, inherits_restriction, locality
from smista.core.marks import marker
from smista.core.model_ref import ModelDescriptor
from smista.core.permissions import mode_of, offered, permission_expansion, turn_permissions
from smista.core.prices import estimate
from smista.core.privacy import guard
from smista.core.prompt import Tool
from smista.core.rank import Ranked, merge, rank
from smista.core.requirements import requirements
from smista.core.route import Choice, exhausted, gate, walk
from smista.core.rules import Route, find_route
from smista.core.snapshot import Snapshot
from smista.core.tools import BY_NAME

HEAVY: Final = 20_000


def is_heavy(snapshot: Snapshot) -> bool:
    """Say if `decide` may take more than a few milliseconds, so that it belongs into a thread."""
    request = snapshot.request
    keywords = sum(len(rule.keywords) for rule in request.policy.classification.rules)
    # Counting the words would itself take long; few are shorter than this with their space.
    pairs = keywords * (len(snapshot.text) // 4 + 1)
    material = len(snapshot.history) + len(request.attachments.files)
    return max(pairs, 40 * material, len(request.workspace.git_diff or "") // 10) > HEAVY


def decide(snapshot: Snapshot) -> Decision | Refusal:
    """Return how this turn is served (model, prompt, permissions, cost), or why it cannot be."""
    classification, route, ranked = _weighed(snapshot)
    if route is None:
        return _no_route(classification, ranked)
    return _serve(snapshot, classification, route, ranked)


def required_locality(snapshot: Snapshot) -> str | None:
    """Return why this turn may use local models only, before any model is known; None if not.

    What it says decides whether remote hosts may be asked for their models at all.
    """
    _, route, ranked = _weighed(snapshot)
    bar = locality(snapshot, route, ranked)
    return None if bar is None else bar.reason


def _weighed(snapshot: Snapshot) -> tuple[Classification, Route | None, list[Ranked]]:
    """Return the intent, the route, and everything a prompt could hold, marked and ranked."""
    request = snapshot.request
    kinds = available_kinds(snapshot)
    classification = classify(request.policy.classification, snapshot.text, kinds, snapshot.command)
    diff = split_git_diff(request.workspace)
    route = find_route(
        request.policy.routing,
        classification.intent,
        task_paths(snapshot, diff),
        request.workspace.root,
        request.input.explicit_model,
    )
    found = candidates(snapshot, diff)
    lists = guard(request.policy, request.workspace.root)
    judge = marker(lists, route, request.workspace)
    ranked = merge(rank(found, [judge.mark(each) for each in found]), request.workspace.root)
    return classification, route, ranked


def _serve(
    snapshot: Snapshot, classification: Classification, route: Route, ranked: list[Ranked]
) -> Decision | Refusal:
    expansion = permission_expansion(snapshot.request.policy, route.rule)
    if expansion is not None:
        return Refusal(
            classification=classification,
            error=expansion,
            primary=route.primary,
            matched_rule=route.matched_rule,
            items=unserved(ranked),
        )
    bar = locality(snapshot, route, ranked)
    needs = requirements(snapshot, route, classification.intent, ranked)
    choice = walk(route, gate(snapshot, needs, bar, override=route.override))
    if isinstance(choice, Choice):
        return _decision(snapshot, classification, route, ranked, choice, bar)
    return Refusal(
        classification=classification,
        error=exhausted(route, choice, bar),
        primary=route.primary,
        matched_rule=route.matched_rule,
        items=unserved(ranked),
        attempts=choice,
        override_used=route.override,
    )


def _decision(
    snapshot: Snapshot,
    classification: Classification,
    route: Route,
    ranked: list[Ranked],
    choice: Choice,
    bar: Locality | None,
) -> Decision:
    policy, model = snapshot.request.policy, choice.model
    modes = turn_permissions(policy, route.rule, snapshot.request.local_preferences)
    tools = offered(modes, plan_mode=snapshot.plan_mode, known=snapshot.offered_tools)
    tools = tuple(tool for tool in tools if _can_use(model, tool, snapshot))
    denied = mode_of(BY_NAME["use_skill"], modes) is Mode.DENY
    kept = [each for each in ranked if not (denied and _on_offer(each))]
    selection = _select(snapshot, kept, model, tools)
    return Decision(
        classification=classification,
        routing=_routing(classification, route, choice),
        descriptor=model,
        prompt=assemble(snapshot, model, selection.held, tools, route.effort),
        items=selection.items,
        permissions=modes,
        cost=estimate(sum(item.tokens for item in selection.held), model),
        cost_limit=None if route.rule is None else route.rule.cost_limit,
        attempts=choice.attempts,
        restricted_in_view=inherits_restriction(snapshot, route, selection.items),
        locality=None if bar is None else bar.reason,
    )


def _can_use(model: ModelDescriptor, tool: Tool, snapshot: Snapshot) -> bool:
    """Say if *tool* is of use to *model*: it can drive it, and there is something to use it on."""
    match tool.name:
        case "memory":
            return model.capabilities.tools and model.capabilities.memory
        case "use_skill":
            return model.capabilities.tools and bool(snapshot.request.attachments.available_skills)
        case _:
            return model.capabilities.tools


def _on_offer(entry: Ranked) -> bool:
    return entry.candidate.origin is Origin.OFFERED_SKILL


def _select(
    snapshot: Snapshot, ranked: list[Ranked], model: ModelDescriptor, tools: tuple[Tool, ...]
) -> Selection:
    can_ask = any(tool.name == "use_skill" for tool in tools)
    fitted = ranked if can_ask else with_skill_bodies(ranked)
    return finalize(fitted, model, snapshot.max_context_bytes, closed=snapshot.closed)


def _routing(classification: Classification, route: Route, choice: Choice) -> Routing:
    reason = route.reason
    for attempt in choice.attempts:
        reason += f"; {attempt.model} was passed over: {attempt.reason}"
    if choice.model.provider == "ollama" and not choice.model.local:
        reason += "; it is served by Ollama Cloud, not by this machine"
    return Routing(
        task_type=classification.intent,
        provider=choice.model.provider,
        model=choice.model.model,
        reason=reason,
        matched_rule=route.matched_rule,
        fallback_used=choice.place > 0,
        override_used=route.override,
        effort=route.effort,
    )


def _no_route(classification: Classification, ranked: list[Ranked]) -> Refusal:
    intent = classification.intent.value
    error = NoRoute(
        f"no routing rule matches the {intent} intent and there is no default route;"
        " add [routing.default] with a model",
        attempts=[],
    )
    return Refusal(classification=classification, error=error, items=unserved(ranked))
