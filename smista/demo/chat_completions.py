"""The Chat Completions format: bodies to requests, steps to bytes. No sockets here."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from smista.demo.asked import Asked, BadBody, By, Said, compose, tells_of_failure
from smista.demo.json_body import (
    content_text,
    dump,
    in_two,
    is_list,
    is_object,
    objects,
    read_object,
    tool_names,
)
from smista.demo.script import Failure, Reasoning, Step, Text, Tokens, Tool, split

STREAM_TYPE: Final = "text/event-stream"
_ROLES: Final = {
    "system": By.SYSTEM,
    "developer": By.SYSTEM,
    "user": By.USER,
    "tool": By.TOOL,
}


def read_request(body: bytes, path: str = "") -> Asked:
    """Return what *body* asks. Raises BadBody."""
    data = read_object(body)
    if not is_list(data.get("messages")) or not isinstance(data.get("model"), str):
        raise BadBody("the body needs `model` and `messages`")
    messages, options = objects(data["messages"]), data.get("stream_options")
    asked = compose(
        data["model"],
        _said(messages),
        tools=tool_names(data.get("tools")),
        stream=data.get("stream") is True,
        body=data,
        prompt=messages,
    )
    return replace(asked, usage_wanted=is_object(options) and options.get("include_usage") is True)


def _said(messages: Iterable[dict[str, Any]]) -> Iterator[Said]:
    names: dict[str, str] = {}
    for message in messages:
        text, by = content_text(message.get("content")), _ROLES.get(str(message.get("role")))
        names |= _call_names(message)
        if by is By.TOOL:
            tool = names.get(str(message.get("tool_call_id")), "tool")
            yield Said(by=by, text=text, tool=tool, failed=tells_of_failure(text))
        else:
            yield Said(by=by or By.MODEL, text=text)


def _call_names(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for call in objects(message.get("tool_calls")):
        match call:
            case {"id": str(call_id), "function": {"name": str(name)}}:
                yield call_id, name
            case _:
                continue


def error_body(failure: Failure) -> bytes:
    """Return the JSON body of an HTTP error."""
    return dump({"error": _error(failure)}) if failure.body is None else failure.body.encode()


def models_body(models: Iterable[str]) -> bytes:
    entries = [{"id": m, "object": "model", "created": 0, "owned_by": "smista"} for m in models]
    return dump({"object": "list", "data": entries})


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
        index = self._calls
        self._calls += 1
        name = {"name": step.tool, "arguments": ""}
        opening = {"index": index, "id": _call_id(self._asked, step, index), "type": "function"}
        yield self._delta({"tool_calls": [{**opening, "function": name}]})
        for piece in in_two(step.arguments):
            yield self._delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return self._chunk([_choice(delta, None)])

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return b"data: %b\n\n" % dump({**self._head, "choices": choices, **more})


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
    return dump(
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
