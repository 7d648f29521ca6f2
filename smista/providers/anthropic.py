"""Anthropic's Messages API. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import SecretStr

from smista.core.errors import ModelNotFound, ProviderError, ProviderFailure
from smista.core.prompt import Prompt, Tool
from smista.providers.anthropic_messages import TOOL_NAME, TOOL_NAME_LENGTH, anthropic_messages
from smista.providers.anthropic_thinking import thinking
from smista.providers.anthropic_turn import AnthropicTurn
from smista.providers.event_answer import EventAnswer
from smista.providers.faults import Complaint
from smista.providers.json_values import json_bytes, member, text
from smista.providers.masking import Mask
from smista.providers.rejections import rejection
from smista.providers.tool_names import foreign, prompt_names
from smista.providers.wire import Caps, WireRequest

PROVIDER: Final = "anthropic"
BASE_URL: Final = "https://api.anthropic.com"
VERSION: Final = {"anthropic-version": "2026-10-21"}
# The API wants a limit; every model since Claude 4 takes this one.
_LIMIT: Final = 32_000
_MARK: Final = {"cache_control": {"type": "ephemeral"}}
_COMBINED: Final = ("oneOf", "allOf", "anyOf")


class Anthropic:
    """The Dialect of the Messages API.

    Reasoning is not sent back. A signed block counts only while everything before it stays as
    it was, and a prompt is composed anew for every turn.
    """

    def __init__(self, *, base_url: str = BASE_URL, caps: Caps | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self._url = f"{self._base_url}/v1/messages"
        self._caps = caps or Caps()

    @property
    def models_url(self) -> str:
        """The list of models: one page, which holds them all."""
        return f"{self._base_url}/v1/models?limit=1000"

    @property
    def models_headers(self) -> Mapping[str, str]:
        return {"Accept": "application/json", **VERSION}

    def request(self, prompt: Prompt) -> WireRequest:
        names = prompt_names(prompt, unsafe=TOOL_NAME, limit=TOOL_NAME_LENGTH)
        body = json_bytes(_body(prompt, names))
        return WireRequest(
            url=self._url,
            body=body,
            stream=True,
            headers={"Accept": "text/event-stream", **VERSION},
            names=foreign(names),
        )

    def key_headers(self, key: SecretStr) -> Mapping[str, str]:
        return {"x-api-key": key.get_secret_value()}

    def decoder(self, request: WireRequest, mask: Mask) -> EventAnswer:
        turn = AnthropicTurn(calls=self._caps.calls, names=request.names, mask=mask)
        return EventAnswer(provider=PROVIDER, request=request, caps=self._caps, turn=turn)

    def failure(self, status: int, body: bytes, mask: Mask) -> ProviderError:
        return rejection(
            *(PROVIDER, self._url, status, body, mask), depth=self._caps.depth, judge=_judge
        )


def _body(prompt: Prompt, names: Mapping[str, str]) -> dict[str, Any]:
    limit = prompt.max_output_tokens or _LIMIT
    messages = anthropic_messages(prompt, provider=PROVIDER, names=names)
    body: dict[str, Any] = {
        "model": prompt.model,
        "max_tokens": limit,
        "stream": True,
        "messages": messages,
    }
    if prompt.system.strip():
        body["system"] = [{"type": "text", "text": prompt.system, **_MARK}]
    if prompt.tools:
        body["tools"] = [_tool(tool, names[tool.name]) for tool in prompt.tools]
        # A run with tools is likely to ask again, with this prompt as its beginning.
        messages[-1]["content"][-1].update(_MARK)
    return body | thinking(prompt, limit=limit)


def _tool(tool: Tool, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": tool.description,
        "input_schema": _schema(tool.parameters),
    }


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return *parameters* as an object schema; alternatives at its top are refused there."""
    plain = {name: value for name, value in parameters.items() if name not in _COMBINED}
    dropped = {name: parameters[name] for name in _COMBINED if name in parameters}
    if dropped:
        note = f"Also: {json.dumps(dropped, ensure_ascii=False)}"
        plain["description"] = " ".join(filter(None, (text(plain.get("description")), note)))
    return {"properties": {}, **plain, "type": "object"}


def _judge(complaint: Complaint, said: Any) -> ProviderError | None:
    """Return the error for words that are this API's own, None if others know them too."""
    code = text(member(member(member(said, "error"), "details"), "error_code"))
    if "spend_limit" in code or "billing" in code:
        return ProviderFailure(
            complaint.text, kind="billing", provider=PROVIDER, status=complaint.status
        )
    if "not_found_error" in complaint.words and complaint.message.startswith("model"):
        return ModelNotFound(complaint.text, provider=PROVIDER, status=complaint.status)
    return None
