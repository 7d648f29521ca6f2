"""Ollama's own chat format: bodies to requests, steps to JSON lines. No sockets here."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

from smista.demo.asked import Asked, BadBody, By, Said, compose, tells_of_failure
from smista.demo.json_body import dump, is_list, objects, read_object, tool_names
from smista.demo.script import Failure, Reasoning, Script, Step, Text, Tokens, Tool, split

STREAM_TYPE: Final = "application/x-ndjson"
_LONG_AGO: Final = "2026-01-01T00:00:00Z"
_ROLES: Final = {"system": By.SYSTEM, "assistant": By.MODEL, "tool": By.TOOL}
_WINDOW: Final = 32_768
_FAMILY: Final = "demo"


def read_request(body: bytes, path: str = "") -> Asked:
    """Return what *body* asks. Raises BadBody."""
    data = read_object(body)
    messages: Any = data.get("messages")
    if not is_list(messages) or not isinstance(data.get("model"), str):
        raise BadBody("the body needs `model` and `messages`")
    return compose(
        data["model"],
        list(map(_said, objects(messages))),
        tools=tool_names(data.get("tools")),
        stream=data.get("stream") is not False,
        body=data,
        prompt=messages,
    )


def _said(message: dict[str, Any]) -> Said:
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    by = _ROLES.get(str(message.get("role")), By.USER)
    if by is not By.TOOL:
        return Said(by=by, text=text)
    tool = str(message.get("tool_name") or "tool")
    return Said(by=by, text=text, tool=tool, failed=tells_of_failure(text))


def error_body(failure: Failure) -> bytes:
    """Return the JSON body of an HTTP error; a *body* of the script goes out as it is."""
    return dump({"error": failure.message}) if failure.body is None else failure.body.encode()


def tags_body(script: Script) -> bytes:
    """Return the list of models."""
    return dump({"models": [_tag(name) for name in script.models]})


def show_body() -> bytes:
    """Return what there is to know of a model: the demo model is the same under every name."""
    return dump(
        {
            "details": _details(),
            "model_info": {
                "general.architecture": _FAMILY,
                f"{_FAMILY}.context_length": _WINDOW,
            },
            "capabilities": ["completion", "tools", "thinking", "vision"],
            "thinking": {"values": [False, True], "default": True},
            "modified_at": _LONG_AGO,
        }
    )


def _tag(name: str) -> dict[str, Any]:
    digest = sha256(name.encode("utf-8", "replace")).hexdigest()
    said = {"name": name, "model": name, "modified_at": _LONG_AGO, "size": 0, "digest": digest}
    return {**said, "details": _details()}


def _details() -> dict[str, Any]:
    size = {"parameter_size": "0", "quantization_level": "none"}
    return {"format": "script", "family": _FAMILY, "families": [_FAMILY], **size}


class LineWriter:
    """Writes one streamed answer, a line for each delta; tool calls are whole."""

    def __init__(self, asked: Asked, tokens: Tokens) -> None:
        self._asked = asked
        self._calls = 0

    def begin(self) -> bytes:
        return b""

    def step(self, step: Step) -> Iterator[bytes]:
        """Yield the lines of a step that says something; others yield nothing."""
        match step:
            case Text():
                yield from (self._line(content=piece) for piece in split(step))
            case Reasoning():
                yield from (self._line(content="", thinking=piece) for piece in split(step))
            case Tool():
                yield self._line(content="", tool_calls=[_call(self._asked, step, self._calls)])
                self._calls += 1
            case _:
                return

    def error(self, failure: Failure) -> bytes:
        """Return an error in the middle of the stream; a *body* of the script goes out as it is."""
        return error_body(failure) + b"\n"

    def end(self, tokens: Tokens) -> bytes:
        message = {"role": "assistant", "content": ""}
        return dump({**_head(self._asked), "message": message, **_last(tokens)}) + b"\n"

    def _line(self, **more: Any) -> bytes:
        message = {"role": "assistant", **more}
        return dump({**_head(self._asked), "message": message, "done": False}) + b"\n"


def create_writer(asked: Asked, tokens: Tokens) -> LineWriter:
    return LineWriter(asked, tokens)


def whole_body(asked: Asked, steps: Iterable[Step], tokens: Tokens) -> bytes:
    """Return the answer as one JSON body, for a client that does not stream."""
    said = list(steps)
    calls = [step for step in said if isinstance(step, Tool)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(step.text for step in said if isinstance(step, Text)),
    }
    thought = "".join(step.reasoning for step in said if isinstance(step, Reasoning))
    if thought:
        message["thinking"] = thought
    if calls:
        message["tool_calls"] = [_call(asked, step, at) for at, step in enumerate(calls)]
    return dump({**_head(asked), "message": message, **_last(tokens)})


def _head(asked: Asked) -> dict[str, Any]:
    return {"model": asked.model, "created_at": _LONG_AGO}


def _call(asked: Asked, step: Tool, index: int) -> dict[str, Any]:
    function = {"index": index, "name": step.tool, "arguments": step.arguments}
    return {"id": step.id or f"call_{asked.digest}_{index}", "function": function}


def _last(tokens: Tokens) -> dict[str, Any]:
    return {
        "done": True,
        "done_reason": "stop",
        "total_duration": 0,
        "load_duration": 0,
        "prompt_eval_count": tokens.input,
        "prompt_eval_cached_count": tokens.cached,
        "prompt_eval_duration": 0,
        "eval_count": tokens.output,
        "eval_duration": 0,
    }
