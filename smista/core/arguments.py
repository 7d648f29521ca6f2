"""Reads the arguments a model wrote for a tool. They are not trusted: nothing is guessed."""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn, cast

from smista.core.tools import BY_NAME

_NOTHING: Final = frozenset({"", "null"})


def parse_arguments(name: str, text: str) -> dict[str, Any] | str:
    """Return the arguments of a call of tool *name*, or an error text for the model.

    An empty text and `null` count as no arguments.
    """
    tool = BY_NAME.get(name)
    if tool is None:
        return unknown_tool(name)
    value = _load(text)
    if isinstance(value, str):
        return f"{name}: {value}"
    if tool.strict:
        # Held to a schema in which every member is required, a model says null for "not given".
        value = {
            k: v for k, v in value.items() if v is not None or k in tool.parameters["required"]
        }
    problem = _problem(value, tool.parameters)
    return value if problem is None else f"{name}: {problem}"


def unknown_tool(name: str) -> str:
    """Return what a model is told that asks for a tool nobody has."""
    return f"there is no tool {name!r}; the tools are {', '.join(BY_NAME)}"


def _load(text: str) -> dict[str, Any] | str:
    if text.strip() in _NOTHING:
        return {}
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        return "the arguments are nested too deeply"
    except ValueError:
        return "the arguments are not valid JSON; send one JSON object"
    if not isinstance(value, dict):
        return "the arguments must be one JSON object"
    return cast("dict[str, Any]", value)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _problem(given: Mapping[str, Any], shape: Mapping[str, Any]) -> str | None:
    properties: Mapping[str, Mapping[str, Any]] = shape["properties"]
    missing = [name for name in shape["required"] if name not in given]
    if missing:
        return f"missing {', '.join(map(repr, missing))}"
    unknown = [name for name in given if name not in properties]
    if unknown:
        known = ", ".join(properties)
        return f"unknown {', '.join(map(repr, unknown))}; the arguments are {known}"
    for name, value in given.items():
        wrong = _wrong(value, properties[name])
        if wrong is not None:
            return f"{name!r} must be {wrong}"
    return None


def _wrong(value: object, shape: Mapping[str, Any]) -> str | None:
    """Return what *value* should have been, None if it is that."""
    match shape["type"]:
        case "string":
            choices = shape.get("enum")
            if choices is not None and value not in choices:
                return f"one of {', '.join(choices)}"
            return None if isinstance(value, str) else "a string"
        case "boolean":
            return None if isinstance(value, bool) else "true or false"
        case "integer":
            # A bool is an int to Python, but no count to anybody else.
            counts = isinstance(value, int) and not isinstance(value, bool)
            least = shape.get("minimum", 0)
            sound = counts and cast("int", value) >= least
            return None if sound else f"an integer of at least {least}"
        case "array":
            return None if _is_texts(value) else "a list of strings"
        case kind:
            raise AssertionError(f"no check for arguments of type {kind!r}")


def _is_texts(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(item, str) for item in cast("list[object]", value))
