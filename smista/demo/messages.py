"""The Messages format of Anthropic: bodies to requests, steps to bytes. No sockets here."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from smista.demo.asked import Asked, BadBody, By, Said, compose, tells_of_failure
from smista.demo.json_body import (
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
_ERRORS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_SIGNATURE: Final = "c21pc3RhLWRlbW8="


def read_request(body: bytes, path: str = "") -> Asked:
    """Return what *body* asks. Raises BadBody."""
    data = read_object(body)
    messages: Any = data.get("messages")
    if not is_list(messages) or not isinstance(data.get("model"), str):
        raise BadBody("the body needs `model`, `max_tokens` and `messages`")
    if not isinstance(data.get("max_tokens"), int):
        raise BadBody("max_tokens: Field required")
    return compose(
        data["model"],
        [*_system(data.get("system")), *_said(messages)],
        tools=tool_names(data.get("tools")),
        stream=data.get("stream") is True,
        body=data,
        prompt=[data.get("system"), messages],
    )


def _system(system: Any) -> Iterator[Said]:
    for block in _blocks(system):
        yield Said(by=By.SYSTEM, text=str(block.get("text", "")))


def _said(messages: list[Any]) -> Iterator[Said]:
    names: dict[str, str] = {}
    for message in objects(messages):
        by = By.MODEL if message.get("role") == "assistant" else By.USER
        for block in _blocks(message.get("content")):
            match block:
                case {"type": "text", "text": str(text)}:
                    yield Said(by=by, text=text)
                case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
                    names[call_id] = name
                case {"type": "tool_result", "tool_use_id": str(call_id)}:
                    yield _result(block, names.get(call_id, "tool"))
                case _:
                    continue


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(filter(is_object, content)) if is_list(content) else []


def _result(block: Mapping[str, Any], tool: str) -> Said:
    text = "".join(str(part.get("text", "")) for part in _blocks(block.get("content")))
    failed = block.get("is_error") is True or tells_of_failure(text)
    return Said(by=By.TOOL, text=text, tool=tool, failed=failed)


def error_body(failure: Failure) -> bytes:
    """Return the JSON body of an HTTP error; a *body* of the script goes out as it is."""
    if failure.body is not None:
        return failure.body.encode()
    kind = _ERRORS.get(failure.status, "api_error")
    return dump({"type": "error", "error": {"type": kind, "message": failure.message}})


def models_body(models: Iterable[str]) -> bytes:
    """Return the list of models, newest first."""
    names = list(models)
    entries = [_model(name) for name in names]
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return dump({"data": entries, "has_more": False, **ends})


def _model(name: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 32_768,
        "max_tokens": 8192,
    }


class EventWriter:
    """Writes one streamed answer: each step is a content block of its own."""

    def __init__(self, asked: Asked, tokens: Tokens) -> None:
        self._asked = asked
        self._tokens = tokens
        self._blocks = 0
        self._calls = 0

    def begin(self) -> bytes:
        usage = {**_usage(self._tokens), "output_tokens": 1}
        head: dict[str, Any] = {
            **_head(self._asked),
            "content": [],
            "stop_reason": None,
            "usage": usage,
        }
        return _event("message_start", message=head) + _event("ping")

    def step(self, step: Step) -> Iterator[bytes]:
        """Yield the events of a step that says something; others yield nothing."""
        match step:
            case Text():
                deltas = [{"type": "text_delta", "text": piece} for piece in split(step)]
                yield from self._block({"type": "text", "text": ""}, deltas)
            case Reasoning():
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in split(step)]
                deltas.append({"type": "signature_delta", "signature": _SIGNATURE})
                block = {"type": "thinking", "thinking": "", "signature": ""}
                yield from self._block(block, deltas)
            case Tool():
                yield from self._call(step)
            case _:
                return

    def error(self, failure: Failure) -> bytes:
        """Return an error in the middle of the stream."""
        return b"event: error\ndata: %b\n\n" % error_body(failure)

    def end(self, tokens: Tokens) -> bytes:
        delta = {"stop_reason": _stop(self._calls), "stop_sequence": None}
        return _event("message_delta", delta=delta, usage=_usage(tokens)) + _event("message_stop")

    def _call(self, step: Tool) -> Iterator[bytes]:
        block: dict[str, Any] = {**_tool_use(self._asked, step, self._calls), "input": {}}
        self._calls += 1
        pieces = ("", *in_two(step.arguments))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield from self._block(block, deltas)

    def _block(self, block: dict[str, Any], deltas: Iterable[dict[str, str]]) -> Iterator[bytes]:
        index = self._blocks
        self._blocks += 1
        yield _event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)


def create_writer(asked: Asked, tokens: Tokens) -> EventWriter:
    return EventWriter(asked, tokens)


def whole_body(asked: Asked, steps: Iterable[Step], tokens: Tokens) -> bytes:
    """Return the answer as one JSON body, for a client that does not stream."""
    content: list[dict[str, Any]] = []
    calls = 0
    for step in steps:
        match step:
            case Text():
                content.append({"type": "text", "text": step.text})
            case Reasoning():
                thought = {"thinking": step.reasoning, "signature": _SIGNATURE}
                content.append({"type": "thinking", **thought})
            case Tool():
                content.append(_tool_use(asked, step, calls))
                calls += 1
            case _:
                continue
    end = {"stop_reason": _stop(calls), "stop_sequence": None, "usage": _usage(tokens)}
    return dump({**_head(asked), "content": content, **end})


def _head(asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_{asked.digest}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
    }


def _tool_use(asked: Asked, step: Tool, index: int) -> dict[str, Any]:
    call_id = step.id or f"toolu_{asked.digest}_{index}"
    return {"type": "tool_use", "id": call_id, "name": step.tool, "input": step.arguments}


def _stop(calls: int) -> str:
    return "tool_use" if calls else "end_turn"


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": max(tokens.input - tokens.cached, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
        "output_tokens_details": {"thinking_tokens": tokens.reasoning},
    }


def _event(kind: str, **more: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), dump({"type": kind, **more}))
