"""Every endpoint, a body that it takes, and how to spoil one."""

from copy import deepcopy
from typing import Any

import httpx

from tests.front.harness import EXECUTE_BODY, MINE

SESSION = f"/api/v1/sessions/{MINE}"
WITH_BODY = [
    ("POST", "/api/v1/sessions"),
    ("PUT", SESSION),
    ("POST", f"{SESSION}/execute"),
    ("POST", f"{SESSION}/continue"),
    ("POST", f"{SESSION}/preview"),
]
OF_SESSION = [
    ("GET", ""),
    ("PUT", ""),
    ("DELETE", ""),
    ("POST", "/execute"),
    ("POST", "/continue"),
    ("POST", "/preview"),
    ("GET", "/traces"),
    ("GET", "/usage"),
    ("GET", "/export"),
]
PRIVATE = [
    *((method, SESSION + path) for method, path in OF_SESSION),
    ("POST", "/api/v1/auth/sign-out"),
    ("GET", "/api/v1/auth/me"),
    ("GET", "/api/v1/sessions"),
    ("POST", "/api/v1/sessions"),
    ("GET", "/api/v1/usage"),
    ("GET", "/api/v1/memory"),
    ("GET", f"/api/v1/memory/{MINE}"),
    ("DELETE", f"/api/v1/memory/{MINE}"),
    ("GET", "/api/v1/llm/providers"),
    ("GET", "/api/v1/llm/models"),
]
CANARY = "sk-canary-0123456789abcdef"
JSON = {"Content-Type": "application/json"}


def code(answer: httpx.Response) -> str:
    """Return the code of an error answer of the documented shape."""
    error = answer.json()["error"]
    assert set(error) <= {"code", "message", "details"}
    assert isinstance(error["message"], str)
    return error["code"]


def body_for(path: str) -> Any:
    if path.endswith("continue"):
        return {"type": "break"}
    return EXECUTE_BODY if path.endswith(("execute", "preview")) else {"title": "t"}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Return a valid execute body with one member replaced."""
    body = deepcopy(EXECUTE_BODY)
    place: Any = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return body


def leaves(value: Any, path: tuple = ()) -> list[tuple]:
    """Return the path of every member of *value* that is not itself a container."""
    if isinstance(value, dict) and value:
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    return [path]
