"""A decision with all that it passed over: every rule, every model of the chain, and why."""

from dataclasses import dataclass

from smista.core.candidates import split_git_diff, task_paths
from smista.core.decision import Classification, Decision, Item, Refusal
from smista.core.intents import Mode
from smista.core.model_ref import ModelRef
from smista.core.permissions import mode_of, turn_permissions
from smista.core.pipeline import decide
from smista.core.rules import Route, find_route, precedence, weigh_rules
from smista.core.snapshot import Snapshot
from smista.core.tools import TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedRule:
    """One routing rule in the order in which rules are tried; *number* is its place in the file.

    *chosen*: it decides. A rule that matched and was not chosen stands behind a stronger one.
    """

    number: int
    name: str
    model: ModelRef
    matched: bool
    chosen: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One model of the chain; *code* is that of the objection, None if there is none."""

    model: ModelRef
    serves: bool
    reason: str
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The outcome, and what led to it. *tools* maps each tool to the mode that governs it."""

    outcome: Decision | Refusal
    rules: tuple[WeighedRule, ...]
    chain: tuple[Judged, ...]
    tools: dict[str, Mode]

    @property
    def classification(self) -> Classification:
        return self.outcome.classification

    @property
    def items(self) -> tuple[Item, ...]:
        return self.outcome.items


def explain(snapshot: Snapshot) -> Explanation:
    """Decide on *snapshot* as a turn would, and keep what was not taken beside what was."""
    outcome = decide(snapshot)
    request = snapshot.request
    paths = task_paths(snapshot, split_git_diff(request.workspace))
    intent, root = outcome.classification.intent, request.workspace.root
    route = find_route(
        request.policy.routing, intent, paths, root, override=request.input.explicit_model
    )
    rule = None if route is None else route.rule
    modes = turn_permissions(request.policy, rule, request.local_preferences)
    return Explanation(
        outcome=outcome,
        rules=_rules(snapshot, outcome, paths, route),
        chain=() if route is None else _chain(route, outcome),
        tools={tool.name: mode_of(tool, modes) for tool in TOOLS},
    )


def _rules(
    snapshot: Snapshot,
    outcome: Decision | Refusal,
    paths: tuple[str, ...],
    route: Route | None,
) -> tuple[WeighedRule, ...]:
    routing, root = snapshot.request.policy.routing, snapshot.request.workspace.root
    checks = weigh_rules(routing, outcome.classification.intent, paths, root)
    weighed: list[WeighedRule] = []
    winner: str | None = None
    for number, check in zip(precedence(routing.rules), checks, strict=True):
        chosen = route is not None and check.rule is route.rule
        reason = check.reason
        if check.matched and winner is not None:
            reason += f", but {winner!r} is stronger"
        elif check.matched and not chosen:
            reason += ", but a model was asked for"
        if chosen:
            winner = check.rule.name
        weighed.append(
            WeighedRule(
                number=number,
                name=check.rule.name,
                model=check.rule.model,
                matched=check.matched,
                chosen=chosen,
                reason=reason,
            )
        )
    return tuple(weighed)


def _chain(route: Route, outcome: Decision | Refusal) -> tuple[Judged, ...]:
    passed = {attempt.model: attempt for attempt in outcome.attempts}
    served = False
    judged: list[Judged] = []
    for ref in route.chain:
        attempt = passed.get(ref)
        if attempt is not None:
            judged.append(Judged(model=ref, serves=False, reason=attempt.reason, code=attempt.code))
        elif isinstance(outcome, Decision) and not served:
            served = True
            judged.append(Judged(model=ref, serves=True, reason=_serving(outcome, ref)))
        else:
            judged.append(Judged(model=ref, serves=False, reason="not reached"))
    return tuple(judged)


def _serving(decision: Decision, ref: ModelRef) -> str:
    real = decision.descriptor.ref
    return "serves" if real == ref else f"serves, as {real}"
