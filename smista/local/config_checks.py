"""The checks of the merged `config.toml` (*Configuration validation*): every finding an error."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

from smista.core.context_kinds import KINDS
from smista.core.errors import SmistaError
from smista.core.globs import MOST_PATTERNS, problem
from smista.core.intents import Mode, TaskIntent
from smista.core.model_ref import ModelRef, provider_id
from smista.core.policy import RoutingRule
from smista.core.tools import TOOLS
from smista.local.config_model import ConfigFile
from smista.local.findings import Fault, Place, choose, meant

SECRET: Final = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_.:-]*)\}\Z")
_LOOPBACK: Final = re.compile(r"localhost|127\.\d+\.\d+\.\d+|::1")
_RULES: Final = ("routing", "rules")
_PERMISSIONS: Final = ("tools", "permissions")
TOOL_NAMES: Final = tuple(sorted({n for tool in TOOLS for n in (tool.name, tool.permission)}))


def check_config(config: ConfigFile) -> list[Fault]:
    """Return everything that is wrong with the merged configuration."""
    return [fault for check in _CHECKS for fault in check(config)]


def check_project(project: Mapping[str, Any]) -> list[Fault]:
    """Return what a project file may not say, because it is written by others."""
    router = project.get("router", {})
    if not isinstance(router, dict):
        return []
    said = cast("dict[str, Any]", router)
    faults: list[Fault] = []
    if isinstance(said.get("url"), str) and not is_loopback(said["url"]):
        message = "a project may not send you to a router on another machine"
        faults.append(Fault(("router", "url"), message, "set it in the global config.toml"))
    for key in ("auth_helper", "auth_source"):
        if key in said:
            message = "a project may not say where your keys come from"
            faults.append(Fault(("router", key), message, "set it in the global config.toml"))
    return faults


def is_loopback(url: str) -> bool:
    """Return whether *url* names this machine."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return False
    return host is not None and _LOOPBACK.fullmatch(host) is not None


def _connection(config: ConfigFile) -> Iterator[Fault]:
    url = config.router.url
    if url is None:
        return
    if not re.match(r"https?://[^\s/?#@]+/?\Z", url):
        yield Fault(
            ("router", "url"), "not the base URL of a router", "write http://127.0.0.1:7331"
        )
    elif url.startswith("http://") and not is_loopback(url):
        yield Fault(("router", "url"), "http:// would send keys in clear", "use https://")


def _providers(config: ConfigFile) -> Iterator[Fault]:
    for name, entry in config.providers.items():
        place: Place = ("providers", name)
        wrong = _provider_problem(name)
        if wrong:
            yield Fault(place, *wrong)
        if entry.type is not None:
            wrong = _provider_problem(entry.type)
            if wrong:
                yield Fault((*place, "type"), *wrong)
            elif entry.type.lower() != name.lower():
                message = f"it says otherwise than the name of its table, {name}"
                yield Fault((*place, "type"), message, "leave type out")
        if entry.api_key is not None and not SECRET.match(entry.api_key):
            yield Fault(
                (*place, "api_key"),
                "a key stands in the file",
                f"take it out, run: smista credentials set {name}; "
                "or name a variable: ${secret:NAME}",
            )


def _provider_problem(name: str) -> tuple[str, str] | None:
    try:
        provider_id(name)
    except SmistaError as error:
        close = meant(name, ("anthropic", "gemini", "ollama", "openai"))
        message = error.message.replace(repr(name), "it")
        return message, f"did you mean {close!r}?" if close else "correct the name"
    return None


def _references(config: ConfigFile) -> Iterator[Fault]:
    enabled = [name.lower() for name in config.providers]
    known = frozenset(enabled)
    for place, ref in _named_models(config):
        if ref.provider not in known:
            close = meant(ref.provider, enabled)
            instead = f"or did you mean {close}?" if close else "or name another model"
            table = f'[providers."{ref.provider}"]' if ":" in ref.provider else None
            remedy = f"add {table or f'[providers.{ref.provider}]'}, {instead}"
            yield Fault(place, f"the provider {ref.provider} is not enabled", remedy)


def _named_models(config: ConfigFile) -> Iterator[tuple[Place, ModelRef]]:
    for place, model, fallbacks in _chains(config):
        yield (*place, "model"), model
        for number, ref in enumerate(fallbacks):
            yield (*place, "fallbacks", number), ref


def _chains(config: ConfigFile) -> Iterator[tuple[Place, ModelRef, tuple[ModelRef, ...]]]:
    for index, rule in enumerate(config.routing.rules):
        yield (*_RULES, index), rule.model, rule.fallbacks
    default = config.routing.default
    if default is not None:
        yield ("routing", "default"), default.model, default.fallbacks


def _fallbacks(config: ConfigFile) -> Iterator[Fault]:
    if config.routing.default is None:
        remedy = 'add [routing.default] with model = "provider/model"'
        yield Fault(("routing", "default"), "there is no default route", remedy)
    for place, model, fallbacks in _chains(config):
        seen = {model}
        for number, ref in enumerate(fallbacks):
            if ref in seen:
                what = "its own model" if ref == model else "a model that stands before it"
                message = f"the chain comes back to {what}, {ref}"
                yield Fault((*place, "fallbacks", number), message, "drop the entry")
            seen.add(ref)


def _names(config: ConfigFile) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for index, rule in enumerate(config.routing.rules):
        if not rule.name.strip():
            yield Fault((*_RULES, index, "name"), "a rule without a name", "give it one")
        if first.setdefault(rule.name, index) != index:
            message = f"the name {rule.name!r} is taken by another rule"
            yield Fault((*_RULES, index, "name"), message, "rename one of them")


def _ambiguity(config: ConfigFile) -> Iterator[Fault]:
    """Yield each rule that is as strong as an earlier one where both match; linear in rules."""
    earlier: dict[tuple[int, int], dict[TaskIntent | None, RoutingRule]] = {}
    for index, rule in enumerate(config.routing.rules):
        peers = earlier.setdefault((rule.priority, _weight(rule)), {})
        rival = _rival(rule, peers)
        if rival is not None:
            message = f"as strong as the rule {rival.name!r} where both match"
            remedy = "give one a lower priority number, or each its own intent"
            yield Fault((*_RULES, index, "priority"), message, remedy)
        peers.setdefault(rule.intent, rule)


def _rival(rule: RoutingRule, peers: Mapping[TaskIntent | None, RoutingRule]) -> RoutingRule | None:
    if rule.intent is None:
        return next(iter(peers.values()), None)
    return peers.get(rule.intent) or peers.get(None)


def _weight(rule: RoutingRule) -> int:
    return (rule.intent is not None) + bool(rule.paths) + rule.local_only


def _permissions(config: ConfigFile) -> Iterator[Fault]:
    configured = config.tools.permissions
    yield from _tool_names(_PERMISSIONS, configured)
    for index, rule in enumerate(config.routing.rules):
        wanted = rule.required_permissions.permissions if rule.required_permissions else {}
        place = (*_RULES, index, "required_permissions", "permissions")
        yield from _tool_names(place, wanted)
        for tool, mode in wanted.items():
            floor = configured.get(tool)
            if floor is not None and mode.strictness < floor.strictness:
                message = f"{tool} is looser here than the configured {floor}"
                yield Fault((*place, tool), message, f"write {_at_least(floor)}")


def _tool_names(place: Place, modes: Iterable[str]) -> Iterator[Fault]:
    # The map is open, but a name one letter off a tool's would quietly leave that tool as it is.
    for name in modes:
        close = None if name in TOOL_NAMES else meant(name, TOOL_NAMES)
        if close is not None:
            yield Fault((*place, name), "there is no such tool", f"did you mean {close!r}?")


def _at_least(floor: Mode) -> str:
    return " or ".join(repr(str(mode)) for mode in Mode if mode.strictness >= floor.strictness)


def _patterns(config: ConfigFile) -> Iterator[Fault]:
    privacy = config.privacy
    yield from _globs(("privacy", "restricted_paths"), privacy.restricted_paths)
    yield from _globs(("privacy", "remote", "blocked_paths"), privacy.remote.blocked_paths)
    for index, rule in enumerate(config.routing.rules):
        yield from _globs((*_RULES, index, "paths"), rule.paths)
    guarded = len(privacy.restricted_paths) + len(privacy.remote.blocked_paths)
    guarded += sum(len(rule.paths) for rule in config.routing.rules if rule.local_only)
    if guarded > MOST_PATTERNS:
        message = f"{guarded} privacy patterns in all, {MOST_PATTERNS} can be kept"
        yield Fault(("privacy",), message, "name folders instead of files: secrets/**")


def _globs(place: Place, patterns: tuple[str, ...]) -> Iterator[Fault]:
    for index, pattern in enumerate(patterns):
        wrong = problem(pattern)
        if wrong is not None:
            remedy = r"write a pattern such as src/**, *.pem or {a,b}/**"
            yield Fault((*place, index), f"not a usable pattern: {wrong}", remedy, subject=pattern)
    if len(patterns) > MOST_PATTERNS:
        message = f"{len(patterns)} patterns, {MOST_PATTERNS} can be kept"
        yield Fault(place, message, "name folders instead of files: src/**")


def _classification(config: ConfigFile) -> Iterator[Fault]:
    kinds = tuple(sorted(KINDS))
    for index, rule in enumerate(config.classification.rules):
        place: Place = ("classification", "rules", index)
        for number, kind in enumerate(rule.requires_any_context):
            if kind not in KINDS:
                where = (*place, "requires_any_context", number)
                yield Fault(where, "there is no such kind of context", choose(kind, kinds))
        for number, keyword in enumerate(rule.keywords):
            if not any(char.isalnum() for char in keyword):
                message = "a keyword without a letter or digit never matches"
                yield Fault((*place, "keywords", number), message, "write a word, or drop it")


def _costs(config: ConfigFile) -> Iterator[Fault]:
    for index, rule in enumerate(config.routing.rules):
        if rule.cost_limit is not None and rule.cost_limit < 0:
            yield Fault((*_RULES, index, "cost_limit"), "below zero", 'write e.g. "0.50"')


_CHECKS: Final[tuple[Callable[[ConfigFile], Iterator[Fault]], ...]] = (
    _connection,
    _providers,
    _references,
    _fallbacks,
    _names,
    _ambiguity,
    _permissions,
    _patterns,
    _classification,
    _costs,
)
