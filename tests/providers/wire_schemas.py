"""What each maker's API accepts as a request, written down by hand from its documentation.

A check fails on members the API does not have, on values of another kind, and on calls and
results that do not belong together. It returns the texts of the conversation, for comparison.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Check = Callable[[Any], list[str]]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_CLAUDE_ID = re.compile(r"[A-Za-z0-9_-]+")


def members(value: Any, required: str, optional: str = "") -> Mapping[str, Any]:
    """Fail unless *value* is an object with the members named."""
    assert isinstance(value, dict)
    needed, allowed = set(required.split()), set(optional.split())
    assert needed <= set(value) <= needed | allowed, set(value) ^ needed
    return value


def text(value: Any) -> str:
    assert isinstance(value, str)
    assert value.strip()
    value.encode()  # no lone surrogate ever goes out
    return value


def name(value: Any) -> str:
    assert _NAME.fullmatch(text(value))
    return value


def answered(calls: Sequence[str], results: Sequence[str]) -> None:
    """Fail unless each call has its one result, in order."""
    assert list(calls) == list(results)
    assert len(set(calls)) == len(calls)


def object_text(value: Any) -> None:
    assert isinstance(json.loads(text(value)), dict)


def function_tool(tool: Any) -> None:
    members(tool, "type function")
    assert tool["type"] == "function"
    members(tool["function"], "name description parameters")
    name(tool["function"]["name"])
    assert isinstance(tool["function"]["parameters"], dict)


def check_chat(body: Any) -> list[str]:
    optional = "stream_options tools max_tokens reasoning_effort"
    members(body, "model messages stream", optional)
    for tool in body.get("tools", []):
        function_tool(tool)
    said: list[str] = []
    open_calls: list[str] = []
    for at, message in enumerate(body["messages"]):
        role = message["role"]
        if role != "tool":
            assert not open_calls, "a call without its result"
        match role:
            case "system":
                assert at == 0
                text(message["content"])
            case "user":
                said.append(text(members(message, "role content")["content"]))
            case "assistant":
                members(message, "role content", "tool_calls")
                calls = message.get("tool_calls", [])
                assert calls or message["content"]
                said += [message["content"]] if message["content"] else []
                open_calls = [chat_call(call) for call in calls]
                assert len(set(open_calls)) == len(open_calls)
            case "tool":
                members(message, "role tool_call_id content")
                assert message["tool_call_id"] == open_calls.pop(0)
                said.append(text(message["content"]))
            case _:
                raise AssertionError(role)
    assert not open_calls
    return said


def chat_call(call: Any) -> str:
    members(call, "id type function")
    assert call["type"] == "function"
    members(call["function"], "name arguments")
    name(call["function"]["name"])
    object_text(call["function"]["arguments"])
    return text(call["id"])


def check_responses(body: Any) -> list[str]:
    optional = "instructions tools max_output_tokens reasoning include"
    members(body, "model input stream store", optional)
    for tool in body.get("tools", []):
        members(tool, "type name description parameters strict")
        name(tool["name"])
    said: list[str] = []
    calls: list[str] = []
    results: list[str] = []
    for item in body["input"]:
        match item["type"]:
            case "message":
                members(item, "type role content")
                assert item["role"] in ("user", "assistant", "system", "developer")
                said.append(text(item["content"]))
            case "function_call":
                members(item, "type call_id name arguments")
                name(item["name"])
                object_text(item["arguments"])
                calls.append(text(item["call_id"]))
                assert len(item["call_id"]) <= 64
            case "function_call_output":
                members(item, "type call_id output")
                assert item["call_id"] in calls
                results.append(item["call_id"])
                said.append(text(item["output"]))
            case _:
                raise AssertionError(item["type"])
    answered(calls, results)
    return said


def check_messages(body: Any) -> list[str]:
    optional = "system tools thinking output_config"
    members(body, "model max_tokens stream messages", optional)
    assert isinstance(body["max_tokens"], int)
    for tool in body.get("tools", []):
        members(tool, "name description input_schema", "cache_control")
        name(tool["name"])
        assert tool["input_schema"]["type"] == "object"
    marks = json.dumps(body).count('"cache_control"')
    assert marks <= 4
    roles = [message["role"] for message in body["messages"]]
    assert roles == [("user", "assistant")[at % 2] for at in range(len(roles))]
    assert roles[-1] == "user"
    said: list[str] = []
    calls: list[str] = []
    for message in body["messages"]:
        members(message, "role content")
        assert message["content"]
        said += [t for block in message["content"] for t in claude_block(message["role"], block)]
        blocks = message["content"]
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        answered(calls, results)
        assert [b["type"] for b in blocks[: len(results)]] == ["tool_result"] * len(results)
        calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
    assert not calls
    return said


def claude_block(role: str, block: Any) -> list[str]:
    match block["type"]:
        case "text":
            members(block, "type text", "cache_control")
            return [text(block["text"])]
        case "tool_use":
            assert role == "assistant"
            members(block, "type id name input")
            assert _CLAUDE_ID.fullmatch(block["id"])
            name(block["name"])
            assert isinstance(block["input"], dict)
            return []
        case "tool_result":
            assert role == "user"
            members(block, "type tool_use_id", "content is_error cache_control")
            return [text(block["content"])] if "content" in block else []
        case _:
            raise AssertionError(block["type"])


def check_contents(body: Any) -> list[str]:
    members(body, "contents", "systemInstruction tools generationConfig")
    for tool in body.get("tools", []):
        members(tool, "functionDeclarations")
        for declared in tool["functionDeclarations"]:
            members(declared, "name description", "parameters")
            name(declared["name"])
            assert declared.get("parameters", {"type": "OBJECT"})["type"] == "OBJECT"
    said: list[str] = []
    calls: list[tuple[str, str]] = []
    for content in body["contents"]:
        members(content, "role parts")
        assert content["role"] in ("user", "model")
        assert content["parts"]
        said += [t for part in content["parts"] for t in gemini_part(content["role"], part)]
        responses = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
        assert [(r["id"], r["name"]) for r in responses] == calls
        found = [p for p in content["parts"] if "functionCall" in p]
        assert [bool(p.get("thoughtSignature")) for p in found] == [
            at == 0 for at in range(len(found))
        ]
        calls = [(p["functionCall"]["id"], p["functionCall"]["name"]) for p in found]
    assert not calls
    assert body["contents"][0]["role"] == body["contents"][-1]["role"] == "user"
    return said


def gemini_part(role: str, part: Any) -> list[str]:
    match part:
        case {"text": said}:
            members(part, "text")
            return [text(said)]
        case {"functionCall": call}:
            assert role == "model"
            members(part, "functionCall", "thoughtSignature")
            members(call, "id name args")
            name(call["name"])
            assert isinstance(call["args"], dict)
            return []
        case {"functionResponse": response}:
            assert role == "user"
            members(response, "id name response")
            ((key, said),) = response["response"].items()
            assert key in ("output", "error")
            assert isinstance(said, str)
            return [said]
        case _:
            raise AssertionError(part)


def check_ollama(body: Any) -> list[str]:
    members(body, "model messages stream", "tools options think truncate shift keep_alive")
    for tool in body.get("tools", []):
        function_tool(tool)
    said: list[str] = []
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] != "tool":
            assert not open_calls
        match message["role"]:
            case "system" | "user":
                members(message, "role content", "images")
                said += [text(message["content"])] if message["role"] == "user" else []
            case "assistant":
                members(message, "role content", "tool_calls thinking")
                calls = message.get("tool_calls", [])
                said += [message["content"]] if message["content"] else []
                open_calls = [ollama_call(call) for call in calls]
                assert calls or message["content"]
            case "tool":
                members(message, "role tool_name content", "tool_call_id")
                assert message["tool_name"] == open_calls.pop(0)
                said.append(text(message["content"]))
            case _:
                raise AssertionError(message["role"])
    assert not open_calls
    return said


def ollama_call(call: Any) -> str:
    members(call, "function", "id")
    members(call["function"], "name arguments", "index")
    assert isinstance(call["function"]["arguments"], dict)
    return text(call["function"]["name"])


CHECKS: Mapping[str, Check] = {
    "/chat/completions": check_chat,
    "/responses": check_responses,
    "/messages": check_messages,
    "/api/chat": check_ollama,
}


def check_request(path: str, body: Any) -> list[str]:
    """Check *body* against the format that *path* takes."""
    if ":streamGenerateContent" in path:
        return check_contents(body)
    return CHECKS[path.removeprefix("/v1")](body)
