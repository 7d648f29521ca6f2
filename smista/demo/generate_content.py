"""Gemini's format, `generateContent`: bodies to requests, steps to bytes. No sockets here."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import unquote

from smista.demo.asked import Asked, BadBody, By, Said, compose, tells_of_failure
from smista.demo.json_body import (
    dump,
    is_list,
    is_object,
    read_object,
)
from smista.demo.script import Failure, Reasoning, Step, Text, Tokens, Tool, split

STREAM_TYPE: Final = "text/event-stream"
_METHODS: Final = ("generateContent", "streamGenerateContent")
_STATUS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def read_request(body: bytes, path: str) -> Asked:
    """Return what *body* asks; *path* names the model and the method. Raises BadBody."""
    model, _, method = path.rpartition("/")[2].partition(":")
    if method not in _METHODS:
        raise BadBody(f"the method is one of {', '.join(_METHODS)}")
    data = read_object(body)
    contents: Any = data.get("contents")
    if not is_list(contents):
        raise BadBody("the body needs `contents`")
    system = _parts(data.get("systemInstruction"))
    return compose(
        unquote(model),
        [*(Said(by=By.SYSTEM, text=_text(part)) for part in system), *_said(contents)],
        tools=_tool_names(data.get("tools")),
        stream=method == "streamGenerateContent",
        body=data,
        prompt=[system, contents],
    )


def _said(contents: list[Any]) -> Iterator[Said]:
    for content in filter(is_object, contents):
        by = By.MODEL if content.get("role") == "model" else By.USER
        for part in _parts(content):
            match part:
                case {"text": str(text)}:
                    yield Said(by=by, text=text)
                case {"functionResponse": {"name": str(name), "response": response}}:
                    yield _result(name, response)
                case _:
                    continue


def _parts(content: Any) -> list[dict[str, Any]]:
    parts = content.get("parts") if is_object(content) else None
    return list(filter(is_object, parts)) if is_list(parts) else []


def _text(part: dict[str, Any]) -> str:
    return str(part.get("text", ""))


def _result(name: str, response: Any) -> Said:
    answer = response if is_object(response) else {}
    failed = "error" in answer
    said: Any = answer.get("error" if failed else "output", answer)
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return Said(by=By.TOOL, text=text, tool=name, failed=failed or tells_of_failure(text))


def _tool_names(tools: Any) -> Iterator[str]:
    for tool in filter(is_object, tools if is_list(tools) else ()):
        declared: Any = tool.get("functionDeclarations")
        for function in declared if is_list(declared) else ():
            match function:
                case {"name": str(name)}:
                    yield name
                case _:
                    continue


def error_body(failure: Failure) -> bytes:
    """Return the JSON body of an HTTP error; a *body* of the script goes out as it is."""
    if failure.body is not None:
        return failure.body.encode()
    status = _STATUS.get(failure.status, "UNKNOWN")
    error = {"code": failure.status, "message": failure.message, "status": status}
    return dump({"error": error})


def models_body(models: Iterable[str]) -> bytes:
    return dump({"models": [_model(name) for name in models]})


def _model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "version": "1",
        "displayName": name,
        "inputTokenLimit": 32_768,
        "outputTokenLimit": 8192,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": True,
    }


class EventWriter:
    """Writes one streamed answer, step by step; a call always goes out in one piece."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._calls = 0

    def begin(self) -> bytes:
        """Return nothing: the format has no head."""
        return b""

    def step(self, step: Step) -> Iterator[bytes]:
        """Yield the events of a step that says something; others yield nothing."""
        match step:
            case Text():
                yield from (self._part({"text": piece}) for piece in split(step))
            case Reasoning():
                pieces = split(step)
                yield from (self._part({"text": piece, "thought": True}) for piece in pieces)
            case Tool():
                yield self._part(_call(self._asked, step, self._calls))
                self._calls += 1
            case _:
                return

    def error(self, failure: Failure) -> bytes:
        """Return an error in the middle of the stream."""
        return b"data: %b\n\n" % error_body(failure)

    def end(self, tokens: Tokens) -> bytes:
        last = _candidate([{"text": ""}]) | {"finishReason": "STOP"}
        return self._event({"candidates": [last], "usageMetadata": _usage(tokens)})

    def _part(self, part: dict[str, Any]) -> bytes:
        return self._event({"candidates": [_candidate([part])]})

    def _event(self, chunk: dict[str, Any]) -> bytes:
        return b"data: %b\n\n" % dump({**chunk, **_foot(self._asked)})


def create_writer(asked: Asked, tokens: Tokens) -> EventWriter:
    return EventWriter(asked)


def whole_body(asked: Asked, steps: Iterable[Step], tokens: Tokens) -> bytes:
    """Return the answer as one JSON body, for a client that does not stream."""
    parts: list[dict[str, Any]] = []
    calls = 0
    for step in steps:
        match step:
            case Text():
                parts.append({"text": step.text})
            case Reasoning():
                parts.append({"text": step.reasoning, "thought": True})
            case Tool():
                parts.append(_call(asked, step, calls))
                calls += 1
            case _:
                continue
    whole = _candidate(parts) | {"finishReason": "STOP"}
    return dump({"candidates": [whole], "usageMetadata": _usage(tokens), **_foot(asked)})


def _candidate(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": parts}, "index": 0}


def _call(asked: Asked, step: Tool, index: int) -> dict[str, Any]:
    call_id = step.id or f"call_{asked.digest}_{index}"
    return {"functionCall": {"id": call_id, "name": step.tool, "args": step.arguments}}


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "promptTokenCount": tokens.input,
        "cachedContentTokenCount": tokens.cached,
        "candidatesTokenCount": max(tokens.output - tokens.reasoning, 0),
        "thoughtsTokenCount": tokens.reasoning,
        "totalTokenCount": tokens.input + tokens.output,
    }


def _foot(asked: Asked) -> dict[str, Any]:
    return {"modelVersion": asked.model, "responseId": asked.digest}
