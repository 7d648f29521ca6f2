"""The Responses format of OpenAI: bodies to requests, steps to bytes. No sockets here."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from smista.demo.asked import Asked, BadBody, By, Said, compose, tells_of_failure
from smista.demo.json_body import (
    content_text,
    dump,
    in_two,
    is_list,
    is_object,
    read_object,
    tool_names,
)
from smista.demo.script import Failure, Reasoning, Step, Text, Tokens, Tool, split

STREAM_TYPE: Final = "text/event-stream"
_ROLES: Final = {"system": By.SYSTEM, "developer": By.SYSTEM, "assistant": By.MODEL}
_ERRORS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_exceeded",
}


def read_request(body: bytes, path: str = "") -> Asked:
    """Return what *body* asks. Raises BadBody."""
    data = read_object(body)
    if not isinstance(data.get("model"), str):
        raise BadBody("the body needs `model` and `input`")
    items = _items(data.get("input"))
    if items is None:
        raise BadBody("`input` is a text or a list of items")
    instructions = data.get("instructions")
    said = [Said(by=By.SYSTEM, text=instructions)] if isinstance(instructions, str) else []
    return compose(
        data["model"],
        [*said, *_said(items)],
        tools=tool_names(data.get("tools")),
        stream=data.get("stream") is True,
        body=data,
        prompt=[instructions, items],
    )


def _items(given: Any) -> list[dict[str, Any]] | None:
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return list(filter(is_object, given)) if is_list(given) else None


def _said(items: list[dict[str, Any]]) -> Iterator[Said]:
    names: dict[str, str] = {}
    for item in items:
        match item:
            case {"type": "function_call", "call_id": str(call_id), "name": str(name)}:
                names[call_id] = name
            case {"type": "function_call_output", "call_id": str(call_id)}:
                text = content_text(item.get("output"))
                tool, failed = names.get(call_id, "tool"), tells_of_failure(text)
                yield Said(by=By.TOOL, text=text, tool=tool, failed=failed)
            case {"role": str(role)}:
                yield Said(by=_ROLES.get(role, By.USER), text=content_text(item.get("content")))
            case _:
                continue


def error_body(failure: Failure) -> bytes:
    """Return the JSON body of an HTTP error; a *body* of the script goes out as it is."""
    if failure.body is not None:
        return failure.body.encode()
    kind = _ERRORS.get(failure.status, "server_error")
    error = {"message": failure.message, "type": kind, "param": None, "code": None}
    return dump({"error": error})


class EventWriter:
    """Writes one streamed answer: each step is an output item of its own."""

    def __init__(self, asked: Asked, tokens: Tokens) -> None:
        self._asked = asked
        self._output: list[dict[str, Any]] = []
        self._number = 0

    def begin(self) -> bytes:
        response = _response(self._asked, "in_progress", [], None)
        return b"".join(
            self._event(f"response.{kind}", response=response)
            for kind in ("created", "in_progress")
        )

    def step(self, step: Step) -> Iterator[bytes]:
        """Yield the events of a step that says something; others yield nothing."""
        match step:
            case Text():
                yield from self._text(step)
            case Reasoning():
                yield from self._reasoning(step)
            case Tool():
                yield from self._call(step)
            case _:
                return

    def error(self, failure: Failure) -> bytes:
        """Return an error in the middle of the stream; a *body* of the script goes out as it is."""
        if failure.body is not None:
            return b"data: %b\n\n" % failure.body.encode()
        code = _ERRORS.get(failure.status, "server_error")
        return self._event("error", code=code, message=failure.message, param=None)

    def end(self, tokens: Tokens) -> bytes:
        response = _response(self._asked, "completed", self._output, tokens)
        return self._event("response.completed", response=response)

    def _text(self, step: Text) -> Iterator[bytes]:
        item = _message(self._asked, step, len(self._output))
        (part,) = item["content"]
        yield self._added({**item, "status": "in_progress", "content": []})
        place = {**self._place(item), "content_index": 0}
        yield self._event("response.content_part.added", **place, part={**part, "text": ""})
        for piece in split(step):
            yield self._event("response.output_text.delta", **place, delta=piece, logprobs=[])
        yield self._event("response.output_text.done", **place, text=step.text, logprobs=[])
        yield self._event("response.content_part.done", **place, part=part)
        yield self._done(item)

    def _reasoning(self, step: Reasoning) -> Iterator[bytes]:
        item = _thought(self._asked, step, len(self._output))
        (part,) = item["summary"]
        yield self._added({**item, "summary": []})
        place = {**self._place(item), "summary_index": 0}
        kind = "response.reasoning_summary"
        yield self._event(f"{kind}_part.added", **place, part={**part, "text": ""})
        for piece in split(step):
            yield self._event(f"{kind}_text.delta", **place, delta=piece)
        yield self._event(f"{kind}_text.done", **place, text=step.reasoning)
        yield self._event(f"{kind}_part.done", **place, part=part)
        yield self._done(item)

    def _call(self, step: Tool) -> Iterator[bytes]:
        item = _function_call(self._asked, step, len(self._output))
        yield self._added({**item, "status": "in_progress", "arguments": ""})
        place, kind = self._place(item), "response.function_call_arguments"
        for piece in in_two(step.arguments):
            yield self._event(f"{kind}.delta", **place, delta=piece)
        yield self._event(f"{kind}.done", **place, name=step.tool, arguments=item["arguments"])
        yield self._done(item)

    def _place(self, item: Mapping[str, Any]) -> dict[str, Any]:
        return {"item_id": item["id"], "output_index": len(self._output)}

    def _added(self, item: dict[str, Any]) -> bytes:
        index = len(self._output)
        return self._event("response.output_item.added", output_index=index, item=item)

    def _done(self, item: dict[str, Any]) -> bytes:
        self._output.append(item)
        index = len(self._output) - 1
        return self._event("response.output_item.done", output_index=index, item=item)

    def _event(self, kind: str, **more: Any) -> bytes:
        event = {"type": kind, "sequence_number": self._number, **more}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), dump(event))


def create_writer(asked: Asked, tokens: Tokens) -> EventWriter:
    return EventWriter(asked, tokens)


def whole_body(asked: Asked, steps: Iterable[Step], tokens: Tokens) -> bytes:
    """Return the answer as one JSON body, for a client that does not stream."""
    output: list[dict[str, Any]] = []
    for step in steps:
        match step:
            case Text():
                output.append(_message(asked, step, len(output)))
            case Reasoning():
                output.append(_thought(asked, step, len(output)))
            case Tool():
                output.append(_function_call(asked, step, len(output)))
            case _:
                continue
    return dump(_response(asked, "completed", output, tokens))


def _message(asked: Asked, step: Text, index: int) -> dict[str, Any]:
    part: dict[str, Any] = {
        "type": "output_text",
        "text": step.text,
        "annotations": [],
        "logprobs": [],
    }
    return {
        "type": "message",
        "id": f"msg_{asked.digest}_{index}",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def _thought(asked: Asked, step: Reasoning, index: int) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": step.reasoning}]
    return {"type": "reasoning", "id": f"rs_{asked.digest}_{index}", "summary": summary}


def _function_call(asked: Asked, step: Tool, index: int) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{asked.digest}_{index}",
        "call_id": step.id or f"call_{asked.digest}_{index}",
        "name": step.tool,
        "arguments": json.dumps(step.arguments, ensure_ascii=False),
        "status": "completed",
    }


def _response(
    asked: Asked, status: str, output: list[dict[str, Any]], tokens: Tokens | None
) -> dict[str, Any]:
    return {
        "id": f"resp_{asked.digest}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": asked.model,
        "output": output,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if tokens is None else _usage(tokens),
    }


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": 0},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    }
