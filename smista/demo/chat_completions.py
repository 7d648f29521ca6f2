"""The Chat Completions format: bodies to requests, steps to bytes. No sockets here."""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, TypeGuard

from smista.demo.asked import Asked, BadBody, Result, tells_of_failure
from smista.demo.script import Failure, Reasoning, Step, Text, Tokens, Tool, split

STREAM_TYPE: Final = "text/event-stream"
_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_GIVEN: Final = ("system", "developer", "user")


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def read_request(body: bytes, path: str = "") -> Asked:
    """Return what *body* asks. Raises BadBody."""
    try:
        data: Any = json.loads(body)
    except ValueError as error:
        raise BadBody(f"the body is not JSON: {error}") from None
    if not _is_object(data):
        raise BadBody("the body is not a JSON object")
    messages: Any = data.get("messages")
    if not _is_list(messages) or not isinstance(data.get("model"), str):
        raise BadBody("the body needs `model` and `messages`")
    return _asked(data, list(filter(_is_object, messages)))


def _asked(data: dict[str, Any], messages: list[dict[str, Any]]) -> Asked:
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    newest = users[-1] if users else -1
    names = _call_names(messages)
    results = [m for m in messages[newest + 1 :] if m.get("role") == "tool"]
    options: Any = data.get("stream_options")
    digest = sha256(json.dumps([data["model"], messages], sort_keys=True).encode()).hexdigest()
    return Asked(
        model=data["model"],
        user=_text(messages[newest].get("content")) if users else "",
        texts=tuple(_text(message.get("content")) for message in messages),
        digest=digest[:16],
        given=tuple(_text(m.get("content")) for m in messages if m.get("role") in _GIVEN),
        results=tuple(_result(message, names) for message in results),
        tools=frozenset(_tool_names(data.get("tools"))),
        stream=data.get("stream") is True,
        usage_wanted=_is_object(options) and options.get("include_usage") is True,
        body=data,
    )


def _text(content: Any) -> str:
    if _is_list(content):
        return "".join(str(part.get("text", "")) for part in filter(_is_object, content))
    return content if isinstance(content, str) else ""


def _call_names(messages: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    names: dict[str, str] = {}
    for message in messages:
        calls: Any = message.get("tool_calls")
        for call in calls if _is_list(calls) else ():
            match call:
                case {"id": str(call_id), "function": {"name": str(name)}}:
                    names[call_id] = name
                case _:
                    continue
    return names


def _result(message: Mapping[str, Any], names: Mapping[str, str]) -> Result:
    text = _text(message.get("content"))
    return Result(
        tool=names.get(str(message.get("tool_call_id")), "tool"),
        text=text,
        failed=tells_of_failure(text),
    )


def _tool_names(tools: Any) -> Iterator[str]:
    for tool in tools if _is_list(tools) else ():
        match tool:
            case {"function": {"name": str(name)}}:
                yield name
            case _:
                continue


def error_body(failure: Failure) -> bytes:
    """Return the JSON body of an HTTP error."""
    return _dump({"error": _error(failure)}) if failure.body is None else failure.body.encode()


def models_body(models: Iterable[str]) -> bytes:
    entries = [{"id": m, "object": "model", "created": 0, "owned_by": "smista"} for m in models]
    return _dump({"object": "list", "data": entries})


def _error(failure: Failure) -> dict[str, Any]:
    return {"message": failure.message, "type": "demo_error", "code": failure.status}


class EventWriter:
    """Writes one streamed answer, step by step."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._calls = 0
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{asked.digest}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": asked.model,
        }

    def begin(self) -> bytes:
        return self._delta({"role": "assistant", "content": ""})

    def step(self, step: Step) -> Iterator[bytes]:
        """Yield the events of a step that says something; others yield nothing."""
        match step:
            case Text():
                yield from (self._delta({"content": piece}) for piece in split(step))
            case Reasoning():
                yield from (self._delta({"reasoning_content": piece}) for piece in split(step))
            case Tool():
                yield from self._call(step)
            case _:
                return

    def error(self, failure: Failure) -> bytes:
        """Return an error in the middle of the stream; a *body* of the script goes out as it is."""
        return b"data: %b\n\n" % error_body(failure)

    def end(self, tokens: Tokens) -> bytes:
        """Return the last events: the finish reason, the usage if asked for, the end mark."""
        last = self._chunk([_choice({}, _finish(self._calls))])
        usage = self._chunk([], usage=_usage(tokens)) if self._asked.usage_wanted else b""
        return last + usage + b"data: [DONE]\n\n"

    def _call(self, step: Tool) -> Iterator[bytes]:
        index, text = self._calls, json.dumps(step.arguments, ensure_ascii=False)
        self._calls += 1
        name = {"name": step.tool, "arguments": ""}
        opening = {"index": index, "id": _call_id(self._asked, step, index), "type": "function"}
        yield self._delta({"tool_calls": [{**opening, "function": name}]})
        middle = len(text) // 2
        for piece in (text[:middle], text[middle:]):
            yield self._delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return self._chunk([_choice(delta, None)])

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return b"data: %b\n\n" % _dump({**self._head, "choices": choices, **more})


def create_writer(asked: Asked, tokens: Tokens) -> EventWriter:
    return EventWriter(asked)


def whole_body(asked: Asked, steps: Iterable[Step], tokens: Tokens) -> bytes:
    """Return the answer as one JSON body, for a client that does not stream."""
    said = list(steps)
    calls = [step for step in said if isinstance(step, Tool)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(step.text for step in said if isinstance(step, Text)) or None,
        "reasoning_content": "".join(s.reasoning for s in said if isinstance(s, Reasoning)),
    }
    if calls:
        message["tool_calls"] = [_whole_call(asked, step, at) for at, step in enumerate(calls)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(len(calls))}
    return _dump(
        {
            "id": f"chatcmpl-{asked.digest}",
            "object": "chat.completion",
            "created": 0,
            "model": asked.model,
            "choices": [choice],
            "usage": _usage(tokens),
        }
    )


def _whole_call(asked: Asked, step: Tool, index: int) -> dict[str, Any]:
    function = {"name": step.tool, "arguments": json.dumps(step.arguments, ensure_ascii=False)}
    return {"id": _call_id(asked, step, index), "type": "function", "function": function}


def _call_id(asked: Asked, step: Tool, index: int) -> str:
    return step.id or f"call_{asked.digest}_{index}"


def _choice(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _finish(calls: int) -> str:
    return "tool_calls" if calls else "stop"


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def _dump(value: Any) -> bytes:
    # A lone surrogate that came in as an escape must not end the connection.
    return _JSON.encode(value).encode("utf-8", "replace")
