"""The user's policy: built-in defaults, the global file, the project file → one ClientConfig.

Layers are merged as plain tables and read once, into the types that travel in a request.
"""

import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from smista.core.policy import (
    ClassificationConfig,
    Frozen,
    Policy,
    PrivacyPolicy,
    RoutingPolicy,
    ToolsConfig,
)
from smista.core.request import LocalPreferences
from smista.local.config_checks import check_config, check_project
from smista.local.findings import Finding, InvalidConfig, shape_findings, unknown_keys
from smista.local.paths import Places

POLICY_VERSION: Final = 1
BUILT_IN: Final[dict[str, Any]] = {
    "providers": {"ollama": {"type": "ollama"}},
    "routing": {"default": {"model": "ollama/qwen2.5-coder:7b"}},
    "privacy": {
        "restricted_paths": [
            ".env",
            ".env.local",
            ".env.*.local",
            "*.pem",
            "*.key",
            "id_rsa*",
            "id_ed25519*",
            ".netrc",
            ".npmrc",
            ".pypirc",
            ".aws/**",
            ".ssh/**",
            ".smista/secrets*",
        ]
    },
}
"""What holds without any file."""


class ProviderEntry(Frozen):
    """An enabled provider. *api_key* is a `${secret:NAME}` reference, never a key."""

    type: str | None = None
    api_key: str | None = None


class RouterConnection(Frozen):
    """How the command line reaches the router. *url* None: the router of this machine."""

    url: str | None = None
    auto_start: bool = False
    connect_timeout_ms: int = Field(default=5_000, gt=0)
    request_timeout_ms: int = Field(default=120_000, gt=0)
    auth_source: Literal["keychain", "env", "file", "helper"] = "keychain"
    auth_helper: str | None = None


class Preferences(Frozen):
    auto_apply: bool = False
    local_only: bool = False
    no_network: bool = False
    encrypt_sessions: bool = True

    def travelling(self) -> LocalPreferences:
        """Return the part a request carries."""
        return LocalPreferences(
            auto_apply=self.auto_apply, local_only=self.local_only, no_network=self.no_network
        )


class ConfigFile(BaseModel):
    """All tables of a `config.toml`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, hide_input_in_errors=True)

    providers: dict[str, ProviderEntry] = {}
    classification: ClassificationConfig = ClassificationConfig()
    routing: RoutingPolicy = RoutingPolicy()
    tools: ToolsConfig = ToolsConfig()
    privacy: PrivacyPolicy = PrivacyPolicy()
    router: RouterConnection = RouterConnection()
    local_preferences: Preferences = Preferences()

    def policy(self) -> Policy:
        """Return the block a request carries, word for word what was merged."""
        return Policy(
            version=POLICY_VERSION,
            source="merged",
            classification=self.classification,
            routing=self.routing,
            tools=self.tools,
            privacy=self.privacy,
        )


class ClientConfig(NamedTuple):
    """The merged configuration, and what its reader should be told before it is used."""

    merged: ConfigFile
    notices: tuple[str, ...] = ()


def load_client_config(root: Path, places: Places) -> ClientConfig:
    """Merge built-in, global and project configuration. Raises InvalidConfig with all findings."""
    project_file = root / ".smista" / "config.toml"
    findings: list[Finding] = []
    own = _layer(places.policy_file, findings)
    project = _layer(project_file, findings)
    data = combine(own, project)
    findings += check_project(project, file=str(project_file))
    merged = _read(data, str(project_file if project else places.policy_file), findings)
    if findings:
        raise InvalidConfig(tuple(findings))
    return ClientConfig(merged, tuple(_notices(own, project, project_file)))


def combine(*layers: dict[str, Any]) -> dict[str, Any]:
    """Return the built-in defaults overlaid by *layers*, lowest first."""
    data = deepcopy(BUILT_IN)
    for layer in layers:
        data = merge(data, layer)
    routed = any("providers" in layer and "default" in _table(layer, "routing") for layer in layers)
    if routed and not any("ollama" in _table(layer, "providers") for layer in layers):
        # The built-in provider only serves the built-in route.
        del data["providers"]["ollama"]
    return data


def merge(lower: dict[str, Any], higher: dict[str, Any]) -> dict[str, Any]:
    """Return *lower* overlaid by *higher* (*Configuration precedence*).

    Tables go entry by entry, rules by name, the classification's rules and the default route
    whole; privacy lists are united; every other value is the higher one's.
    """
    merged = _overlay(lower, higher)
    routing = _table(higher, "routing")
    if "default" in routing:
        merged["routing"]["default"] = routing["default"]
    if "rules" in routing:
        rules = _table(lower, "routing").get("rules", [])
        merged["routing"]["rules"] = _by_name(rules, routing["rules"])
    _unite(merged, lower, higher, ("privacy", "restricted_paths"))
    _unite(merged, lower, higher, ("privacy", "remote", "blocked_paths"))
    return merged


def _overlay(lower: dict[str, Any], higher: dict[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in higher.items():
        below = merged.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _overlay(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            merged[key] = value
    return merged


def _by_name(lower: Any, higher: Any) -> Any:
    if not _all_tables(lower) or not _all_tables(higher):
        return higher  # what is wrong with it is said when it is read
    named = {rule.get("name"): rule for rule in higher}
    kept = [rule for rule in lower if rule.get("name") not in named]
    return [*kept, *higher]


def _all_tables(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) for item in cast("list[object]", value)
    )


def _unite(
    merged: dict[str, Any], lower: dict[str, Any], higher: dict[str, Any], path: tuple[str, ...]
) -> None:
    *tables, key = path
    lists = [_table(layer, *tables).get(key, []) for layer in (lower, higher)]
    if not all(isinstance(entry, list) for entry in lists) or not any(lists):
        return
    _table(merged, *tables)[key] = list(dict.fromkeys([*lists[0], *lists[1]]))


def _table(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        below = data.get(key)
        data = cast("dict[str, Any]", below) if isinstance(below, dict) else {}
    return data


def _layer(file: Path, findings: list[Finding]) -> dict[str, Any]:
    """Return the tables of *file* ({} without one); its shape is checked where it stands."""
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        findings.append(Finding(file=str(file), place="", message=str(error)))
        return {}
    wrong = list(unknown_keys(ConfigFile, data, file=str(file), place=""))
    try:
        ConfigFile.model_validate(data)
    except ValidationError as error:
        wrong += shape_findings(error, file=str(file), place="")
    findings += wrong
    return {} if wrong else data


def _read(data: dict[str, Any], file: str, findings: list[Finding]) -> ConfigFile:
    merged = ConfigFile.model_validate(data)
    findings += check_config(merged, file=file)
    return merged


def _notices(own: dict[str, Any], project: dict[str, Any], file: Path) -> list[str]:
    # A project is written by others: what it redirects is never silent.
    notices: list[str] = []
    url = _table(project, "router").get("url")
    if url is not None and url != _table(own, "router").get("url"):
        notices.append(f"{file} sets the router to {url}")
    for name, entry in _table(project, "providers").items():
        reference = entry.get("api_key")
        if reference and reference != _table(own, "providers", name).get("api_key"):
            notices.append(f"{file} takes the key of {name} from {reference}")
    return notices
