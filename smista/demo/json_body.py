"""JSON as the demo model reads and writes it; nothing here knows a format."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

from smista.demo.asked import BadBody

_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; what is no list has none."""
    return list(filter(is_object, value)) if is_list(value) else []


def read_object(body: bytes) -> dict[str, Any]:
    """Return the object that *body* is. Raises BadBody."""
    try:
        data: Any = json.loads(body)
    except ValueError as error:
        raise BadBody(f"the body is not JSON: {error}") from None
    if not is_object(data):
        raise BadBody("the body is not a JSON object")
    return data


def content_text(content: Any) -> str:
    """Return the text of a content: one text, or a list of parts."""
    if is_list(content):
        return "".join(str(part.get("text", "")) for part in objects(content))
    return content if isinstance(content, str) else ""


def tool_names(tools: Any) -> Iterator[str]:
    """Yield the names of the *tools* that are offered, which some formats wrap as functions."""
    for tool in objects(tools):
        match tool:
            case {"function": {"name": str(name)}} | {"name": str(name)}:
                yield name
            case _:
                continue


def in_two(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return *arguments* as JSON in two pieces, as streams cut them."""
    text = json.dumps(arguments, ensure_ascii=False)
    return text[: len(text) // 2], text[len(text) // 2 :]


def dump(value: Any) -> bytes:
    # A lone surrogate that came in as an escape must not end the connection.
    return _JSON.encode(value).encode("utf-8", "replace")
