"""Errors as Ollama words them: a text, or the JSON text of an error of the runner behind it."""

from typing import Any, Final

from smista.providers.json_values import BadJson, is_object, member, parse_json, text

_DEPTH: Final = 16


def error_in(value: Any) -> Any:
    """Return the error in *value*; what the runner said is unwrapped."""
    said = text(member(value, "error"))
    if not said.lstrip().startswith("{"):
        return value
    try:
        inner = parse_json(said, depth=_DEPTH)
    except BadJson:
        return value
    return inner if is_object(inner) else value
