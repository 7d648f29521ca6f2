"""JSON Schema → the subset that Gemini takes; what it has no word for goes into a description."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from smista.providers.json_values import is_list, is_object, items, member, text

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_FORMATS: Final = frozenset({"date-time", "enum", "float", "double", "int32", "int64"})
_KEPT: Final = (
    *("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"),
    *("minimum", "maximum", "pattern"),
)
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_DEEPEST: Final = 24
_ANYTHING: Final[dict[str, Any]] = {"type": "string"}


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return *schema* as Gemini's, None if it describes an object without members."""
    whole = dict(schema)
    made = _Cleaner(whole).clean({"type": "object", **whole}, within=())
    return made if made.get("properties") else None


class _Cleaner:
    """Cleans one schema; *root* is where its references point."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def clean(self, schema: Any, *, within: tuple[str, ...]) -> dict[str, Any]:
        """Return *schema* in Gemini's words, its references written out.

        *within* are the references it was reached by; one that leads back into itself ends there.
        """
        resolved, path = self._resolved(schema, within)
        known = _typed(self._merged(resolved, path))
        notes = _notes(known)
        made: dict[str, Any] = {"type": str(known["type"]).upper()}
        if len(path) < _DEEPEST:
            made = self._shape(known, lambda inner: self.clean(inner, within=(*path, "")))
        if said := " ".join([*filter(None, (text(known.get("description")).strip(),)), *notes]):
            made["description"] = said
        if known.get("nullable"):
            made["nullable"] = True
        return made

    def _shape(
        self, known: dict[str, Any], clean: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        if branches := [clean(branch) for branch in _branches(known)]:
            return branches[0] if len(branches) == 1 else {"anyOf": branches}
        made = {"type": known["type"].upper(), **_limits(known)}
        if known["type"] == "array":
            made["items"] = clean(known.get("items", _ANYTHING))
        if known["type"] == "object" and is_object(members := known.get("properties")):
            made["properties"] = {name: clean(inner) for name, inner in members.items()}
            wanted = items(known.get("required"))
            named = [name for name in members if name in wanted]
            made |= {"required": named} if named else {}
        return made

    def _resolved(
        self, schema: Any, within: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return *schema* with its reference replaced by what it points to, and the way there."""
        while is_object(schema) and (pointer := text(schema.get("$ref"))):
            if pointer in within:
                return {"type": "object"}, within
            within = (*within, pointer)
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            target = self._target(pointer)
            schema = {**target, **rest} if is_object(target) else rest
        return dict(schema) if is_object(schema) else dict(_ANYTHING), within

    def _target(self, pointer: str) -> Any:
        value = self._root
        for step in pointer.removeprefix("#").strip("/").split("/"):
            value = member(value, step.replace("~1", "/").replace("~0", "~")) if step else value
        return value

    def _merged(self, schema: dict[str, Any], within: tuple[str, ...]) -> dict[str, Any]:
        """Return *schema* with the parts of its `allOf` in it."""
        whole = {name: value for name, value in schema.items() if name != "allOf"}
        for part in items(schema.get("allOf")):
            more, _ = self._resolved(part, within)
            properties = {**_object(more.get("properties")), **_object(whole.get("properties"))}
            required = [*items(whole.get("required")), *items(more.get("required"))]
            whole = {**more, **whole}
            whole |= {"properties": properties} if properties else {}
            whole |= {"required": required} if required else {}
        return whole


def _object(value: Any) -> dict[str, Any]:
    return value if is_object(value) else {}


def _typed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return *schema* with one plain type; several become alternatives, `null` becomes a flag."""
    named = schema.get("type")
    names = [n for n in (named if is_list(named) else [named]) if isinstance(n, str)]
    plain = [n for n in names if n in _TYPES]
    known = {**schema, "type": plain[0] if plain else _guess(schema)}
    if "null" in names or any(_is_null(branch) for branch in _alternatives(schema)):
        known["nullable"] = True
    if len(plain) > 1:
        rest = {n: v for n, v in schema.items() if n not in ("type", "description")}
        known["anyOf"] = [{**rest, "type": name} for name in plain]
    return known


def _guess(schema: dict[str, Any]) -> str:
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    sample = schema.get("const", next(iter(items(schema.get("enum"))), None))
    if isinstance(sample, bool):
        return "boolean"
    return "number" if isinstance(sample, int | float) else "string"


def _alternatives(schema: dict[str, Any]) -> list[Any]:
    return [branch for name in _ALTERNATIVES for branch in items(schema.get(name))]


def _branches(schema: dict[str, Any]) -> list[Any]:
    return [branch for branch in _alternatives(schema) if not _is_null(branch)]


def _is_null(branch: Any) -> bool:
    return bool(member(branch, "type") == "null")


def _limits(known: dict[str, Any]) -> dict[str, Any]:
    limits: dict[str, Any] = {name: known[name] for name in _KEPT if name in known}
    values = _values(known)
    if known["type"] == "string" and values and all(isinstance(v, str) for v in values):
        limits["enum"] = values
    if text(known.get("format")) in _FORMATS:
        limits["format"] = known["format"]
    if known["type"] == "integer":
        limits |= _inclusive(known)
    return limits


def _inclusive(known: dict[str, Any]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    # A boolean is an integer to Python, and an older draft writes these limits as booleans.
    if type(below := known.get("exclusiveMinimum")) is int:
        limits["minimum"] = below + 1
    if type(above := known.get("exclusiveMaximum")) is int:
        limits["maximum"] = above - 1
    return limits


def _values(known: dict[str, Any]) -> list[Any]:
    return [known["const"]] if "const" in known else items(known.get("enum"))


def _notes(known: dict[str, Any]) -> list[str]:
    """Return in words what the subset cannot say."""
    values = [json.dumps(value, ensure_ascii=False) for value in _values(known)]
    notes: list[str] = []
    if values and known["type"] != "string":
        notes.append(f"One of: {', '.join(values)}.")
    if text(known.get("format")) and known["format"] not in _FORMATS:
        notes.append(f"Format: {known['format']}.")
    if known["type"] != "integer":
        for name, word in (("exclusiveMinimum", "Greater than"), ("exclusiveMaximum", "Less than")):
            notes += [f"{word} {known[name]}."] if name in known else []
    if "default" in known:
        notes.append(f"Default: {json.dumps(known['default'], ensure_ascii=False)}.")
    return notes
