"""How layers of `config.toml` go over each other, as plain tables (*Configuration precedence*)."""

from copy import deepcopy
from typing import Any, Final, cast

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


def combine(*layers: dict[str, Any]) -> dict[str, Any]:
    """Return the built-in defaults overlaid by *layers*, lowest first."""
    data = deepcopy(BUILT_IN)
    for layer in layers:
        data = merge(data, layer)
    routed = any("providers" in layer and "default" in table(layer, "routing") for layer in layers)
    if routed and not any("ollama" in table(layer, "providers") for layer in layers):
        # The built-in provider only serves the built-in route.
        del data["providers"]["ollama"]
    return data


def merge(lower: dict[str, Any], higher: dict[str, Any]) -> dict[str, Any]:
    """Return *lower* overlaid by *higher* (*Configuration precedence*).

    Tables go entry by entry, rules by name, the classification's rules and the default route
    whole; privacy lists are united; every other value is the higher one's.
    """
    merged = _overlay(lower, higher)
    routing = table(higher, "routing")
    if "default" in routing:
        merged["routing"]["default"] = routing["default"]
    if "rules" in routing:
        rules = table(lower, "routing").get("rules", [])
        merged["routing"]["rules"] = _by_name(rules, routing["rules"])
    _unite(merged, lower, higher, ("privacy", "restricted_paths"))
    _unite(merged, lower, higher, ("privacy", "remote", "blocked_paths"))
    return merged


def _overlay(lower: dict[str, Any], higher: dict[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in higher.items():
        below = merged.get(key)
        if isinstance(value, dict):
            # Also over nothing: a layer's own tables are never part of the result.
            under = cast("dict[str, Any]", below) if isinstance(below, dict) else {}
            merged[key] = _overlay(under, cast("dict[str, Any]", value))
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
    lists = [table(layer, *tables).get(key, []) for layer in (lower, higher)]
    if not all(isinstance(entry, list) for entry in lists) or not any(lists):
        return
    table(merged, *tables)[key] = list(dict.fromkeys([*lists[0], *lists[1]]))


def table(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return the table of *data* that *keys* lead to, an empty one if there is none."""
    for key in keys:
        below = data.get(key)
        data = cast("dict[str, Any]", below) if isinstance(below, dict) else {}
    return data
