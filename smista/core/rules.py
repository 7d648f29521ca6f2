"""Which routing rule a turn falls under: override, priority, specificity, order in the file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smista.core.globs import MOST_PATTERNS, Globs, compile_globs
from smista.core.intents import Effort, TaskIntent
from smista.core.model_ref import ModelRef
from smista.core.paths import spellings
from smista.core.policy import DefaultRoute, RoutingPolicy, RoutingRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What routing asks for: a chain of models, the first one wanted most, and why."""

    chain: tuple[ModelRef, ...]
    reason: str
    rule: RoutingRule | None = None
    override: bool = False

    @property
    def primary(self) -> ModelRef:
        return self.chain[0]

    @property
    def matched_rule(self) -> str | None:
        """Name the rule and the model it asks for, whichever model serves in the end."""
        return None if self.rule is None else f"{self.rule.name} -> {self.rule.model}"

    @property
    def effort(self) -> Effort:
        return Effort.MEDIUM if self.rule is None else self.rule.effort

    @property
    def globs(self) -> tuple[str, ...]:
        """The patterns that drove the route."""
        return () if self.rule is None else self.rule.paths


@dataclass(frozen=True, slots=True)
class PathHit:
    """The first task path that fits a rule, and the pattern it fits."""

    path: str
    pattern: str


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule weighed: did it match, and why or why not."""

    rule: RoutingRule
    matched: bool
    reason: str


def find_route(
    policy: RoutingPolicy,
    intent: TaskIntent,
    paths: Sequence[str],
    root: str,
    override: ModelRef | None = None,
) -> Route | None:
    """Return the one route of a turn; None if no rule matches and there is no default."""
    if override is not None:
        reason = f"explicit model {override} requested"
        return Route(chain=(override,), reason=reason, override=True)
    hits = path_hits(policy.rules, paths, root)
    for index in precedence(policy.rules):
        rule = policy.rules[index]
        check = _check(rule, intent, hits.get(index))
        if check.matched:
            return Route(chain=(rule.model, *rule.fallbacks), reason=check.reason, rule=rule)
    return None if policy.default is None else _default(policy.default)


def weigh_rules(
    policy: RoutingPolicy, intent: TaskIntent, paths: Sequence[str], root: str
) -> tuple[RuleCheck, ...]:
    """Return every rule in the order of precedence, with why it matched or did not."""
    hits = path_hits(policy.rules, paths, root)
    order = precedence(policy.rules)
    return tuple(_check(policy.rules[index], intent, hits.get(index)) for index in order)


def precedence(rules: Sequence[RoutingRule]) -> list[int]:
    """Return the rules' places in the order they are tried."""
    keys = [(rule.priority, -specificity(rule), index) for index, rule in enumerate(rules)]
    return [key[2] for key in sorted(keys)]


def specificity(rule: RoutingRule) -> int:
    """Rank *rule*: path and intent 3, path 2, intent 1, no condition 0."""
    return 2 * bool(rule.paths) + (rule.intent is not None)


def path_hits(rules: Sequence[RoutingRule], paths: Sequence[str], root: str) -> dict[int, PathHit]:
    """Return for each rule, by its place, the first of *paths* that fits one of its patterns."""
    owners = [index for index, rule in enumerate(rules) for _ in rule.paths]
    patterns = tuple(pattern for rule in rules for pattern in rule.paths)
    found: dict[int, PathHit] = {}
    if not patterns:
        return found
    # One rule's limit on patterns is not all rules' limit: the blocks keep them apart.
    for start, globs in _blocks(patterns):
        for path in paths:
            for form in spellings(path, root):
                for number in globs.hits(form):
                    hit = PathHit(path, patterns[start + number])
                    found.setdefault(owners[start + number], hit)
    return found


def fits(globs: tuple[str, ...], path: str, root: str) -> str | None:
    """Return the pattern of *globs* that *path* fits, None if it fits none."""
    if not globs:
        return None
    compiled = compile_globs(globs)
    for form in spellings(path, root):
        hits = compiled.hits(form)
        if hits:
            return globs[min(hits)]
    return None


def _blocks(patterns: tuple[str, ...]) -> Iterator[tuple[int, Globs]]:
    for start in range(0, len(patterns), MOST_PATTERNS):
        yield start, compile_globs(patterns[start : start + MOST_PATTERNS])


def _check(rule: RoutingRule, intent: TaskIntent, hit: PathHit | None) -> RuleCheck:
    if rule.intent is not None and rule.intent is not intent:
        reason = f"rule {rule.name!r} wants intent {rule.intent.value}, not {intent.value}"
        return RuleCheck(rule, False, reason)
    if rule.paths and hit is None:
        return RuleCheck(rule, False, f"rule {rule.name!r}: no task path fits its paths")
    grounds: list[str] = []
    if rule.intent is not None:
        grounds.append(f"the {intent.value} intent")
    if hit is not None:
        grounds.append(f"{hit.path} ({hit.pattern})")
    return RuleCheck(
        rule, True, f"rule {rule.name!r} matched {' and '.join(grounds) or 'any task'}"
    )


def _default(default: DefaultRoute) -> Route:
    reason = "no routing rule matched; the default route is used"
    return Route(chain=(default.model, *default.fallbacks), reason=reason)
