"""A tool's schema as OpenAI holds a model to it: every member required, an optional one nullable.

Pure. Only for tools whose schema is plain; the rest go unheld.
"""

from collections.abc import Mapping
from typing import Any, Final

_PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties"})


def strict_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return *parameters* in the strict form. Raises ValueError for a schema that has none."""
    if not _PLAIN.issuperset(parameters) or parameters.get("additionalProperties") is not False:
        raise ValueError("a strict schema is one object of named members")
    members: Mapping[str, Mapping[str, Any]] = parameters["properties"]
    required = frozenset(parameters["required"])
    return {
        "type": "object",
        "properties": {
            name: dict(shape) if name in required else _nullable(shape)
            for name, shape in members.items()
        },
        "required": list(members),
        "additionalProperties": False,
    }


def _nullable(shape: Mapping[str, Any]) -> dict[str, Any]:
    made = {**shape, "type": [shape["type"], "null"]}
    return {**made, "enum": [*shape["enum"], None]} if "enum" in shape else made
