"""The checks of the merged `config.toml` (*Configuration validation*): every finding an error."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from smista.core.errors import SmistaError
from smista.core.intents import Mode
from smista.core.model_ref import ModelRef, provider_id
from smista.core.policy import RoutingRule
from smista.local.findings import Finding

if TYPE_CHECKING:
    from smista.local.config_files import ConfigFile

SECRET: Final = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_.-]*)\}\Z")
_LOOPBACK: Final = re.compile(r"localhost|127\.\d+\.\d+\.\d+|::1")

Said = tuple[str, str, str]
"""Place, message, remedy."""


def check_config(config: "ConfigFile", *, file: str) -> list[Finding]:
    """Return every finding about the merged configuration."""
    return [
        Finding(file=file, place=place, message=message, remedy=remedy)
        for check in _CHECKS
        for place, message, remedy in check(config)
    ]


def check_project(project: Mapping[str, Any], *, file: str) -> list[Finding]:
    """Return what a project file may not say, because it is written by others."""
    router = project.get("router", {})
    if not isinstance(router, dict):
        return []
    table = cast("dict[str, Any]", router)
    findings: list[Finding] = []
    if isinstance(table.get("url"), str) and not is_loopback(table["url"]):
        message = "a project may not send you to a router on another machine"
        remedy = "set it in the global config.toml"
        findings.append(Finding(file=file, place="router.url", message=message, remedy=remedy))
    for key in ("auth_helper", "auth_source"):
        if key in table:
            message = "a project may not say where your keys come from"
            remedy = "set it in the global config.toml"
            place = f"router.{key}"
            findings.append(Finding(file=file, place=place, message=message, remedy=remedy))
    return findings


def is_loopback(url: str) -> bool:
    """Return whether *url* names this machine."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return False
    return host is not None and _LOOPBACK.fullmatch(host) is not None


def _connection(config: "ConfigFile") -> Iterator[Said]:
    url = config.router.url
    if url is None:
        return
    if not re.match(r"https?://[^\s/?#@]+/?\Z", url):
        yield "router.url", "not the base URL of a router", "write http://127.0.0.1:7331"
    elif url.startswith("http://") and not is_loopback(url):
        yield "router.url", "http:// would send keys in clear", "use https://"


def _providers(config: "ConfigFile") -> Iterator[Said]:
    for name, entry in config.providers.items():
        place = f'providers."{name}"'
        for spelt in {name.lower(), (entry.type or name).lower()}:
            try:
                provider_id(spelt)
            except SmistaError as error:
                yield place, error.message, "correct the name"
        if entry.api_key is not None and not SECRET.match(entry.api_key):
            yield (
                f"{place}.api_key",
                "a key stands in the file",
                "write ${secret:NAME} and store the key elsewhere",
            )


def _references(config: "ConfigFile") -> Iterator[Said]:
    enabled = {name.lower() for name in config.providers}
    for place, ref in _named_models(config):
        if ref.provider not in enabled:
            message = f"{ref.provider} is not enabled"
            yield place, message, f'add [providers."{ref.provider}"], or name another model'


def _named_models(config: "ConfigFile") -> Iterator[tuple[str, ModelRef]]:
    for index, rule in enumerate(config.routing.rules):
        place = f"routing.rules[{index}]"
        yield f"{place}.model", rule.model
        for number, ref in enumerate(rule.fallbacks):
            yield f"{place}.fallbacks[{number}]", ref
    default = config.routing.default
    if default is not None:
        yield "routing.default.model", default.model
        for number, ref in enumerate(default.fallbacks):
            yield f"routing.default.fallbacks[{number}]", ref


def _fallbacks(config: "ConfigFile") -> Iterator[Said]:
    chains = [
        (f"routing.rules[{index}]", rule.model, rule.fallbacks)
        for index, rule in enumerate(config.routing.rules)
    ]
    default = config.routing.default
    if default is None:
        yield "routing.default", "there is no default route", "add it, with model"
    else:
        chains.append(("routing.default", default.model, default.fallbacks))
    for place, model, fallbacks in chains:
        if model in fallbacks or len(set(fallbacks)) < len(fallbacks):
            yield f"{place}.fallbacks", "a model is named twice", "drop the entry"


def _rules(config: "ConfigFile") -> Iterator[Said]:
    names = [rule.name for rule in config.routing.rules]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"routing.rules[{index}].name", f"{name!r} is taken", "rename one"
    for (_, one), (index, other) in combinations(enumerate(config.routing.rules), 2):
        if _ambiguous(one, other):
            message = f"as strong as the rule {one.name!r} where both match"
            yield f"routing.rules[{index}].priority", message, "give them different priorities"


def _ambiguous(one: RoutingRule, other: RoutingRule) -> bool:
    apart = one.intent is not None and other.intent is not None and one.intent != other.intent
    return not apart and (one.priority, _weight(one)) == (other.priority, _weight(other))


def _weight(rule: RoutingRule) -> int:
    return (rule.intent is not None) + bool(rule.paths) + rule.local_only


def _permissions(config: "ConfigFile") -> Iterator[Said]:
    configured = config.tools.permissions
    for index, rule in enumerate(config.routing.rules):
        wanted = rule.required_permissions.permissions if rule.required_permissions else {}
        for tool, mode in wanted.items():
            floor = configured.get(tool)
            if floor is not None and Mode(mode).strictness < Mode(floor).strictness:
                place = f"routing.rules[{index}].required_permissions.permissions.{tool}"
                yield place, f"looser than the configured {floor}", "tighten only"


def _privacy(config: "ConfigFile") -> Iterator[Said]:
    lists = {
        "privacy.restricted_paths": config.privacy.restricted_paths,
        "privacy.remote.blocked_paths": config.privacy.remote.blocked_paths,
    }
    for place, patterns in lists.items():
        for index, pattern in enumerate(patterns):
            if pattern.startswith("!") or not pattern:
                yield f"{place}[{index}]", "not a usable pattern", "write what is restricted"


_CHECKS: Final[tuple[Callable[["ConfigFile"], Iterator[Said]], ...]] = (
    _connection,
    _providers,
    _references,
    _fallbacks,
    _rules,
    _permissions,
    _privacy,
)
