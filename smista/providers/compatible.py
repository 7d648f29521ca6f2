"""Chat Completions, as the many servers speak it that call themselves compatible. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import SecretStr

from smista.core.errors import ProviderError
from smista.core.intents import Effort
from smista.core.model_ref import Capabilities
from smista.core.prompt import Prompt, Tool
from smista.providers.chat_answer import ChatAnswer
from smista.providers.chat_messages import chat_messages, tool_name
from smista.providers.json_values import json_bytes
from smista.providers.masking import Mask
from smista.providers.rejections import rejection
from smista.providers.wire import Caps, WireRequest

_ACCEPT: Final = {
    True: {"Accept": "text/event-stream, application/json"},
    False: {"Accept": "application/json"},
}
_DEFAULTS: Final = Capabilities(streaming=True, tools=True, system_prompt=True)
# Most servers know three levels; the highest of ours becomes the highest of theirs.
_EFFORTS: Final = {
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.XHIGH: "high",
}


class Compatible:
    """The Dialect of one compatible endpoint. *models* tells what each model can do."""

    def __init__(
        self,
        *,
        provider: str,
        base_url: str,
        models: Mapping[str, Capabilities],
        caps: Caps | None = None,
    ) -> None:
        self._provider = provider
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._models = models
        self._caps = caps or Caps()

    def request(self, prompt: Prompt) -> WireRequest:
        able = self._models.get(prompt.model, _DEFAULTS)
        body = json_bytes(self._body(prompt, able))
        return WireRequest(
            url=self._url,
            body=body,
            stream=able.streaming,
            headers=_ACCEPT[able.streaming],
        )

    def key_headers(self, key: SecretStr) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key.get_secret_value()}"}

    def decoder(self, request: WireRequest, mask: Mask) -> ChatAnswer:
        return ChatAnswer(provider=self._provider, request=request, caps=self._caps, mask=mask)

    def failure(self, status: int, body: bytes, mask: Mask) -> ProviderError:
        return rejection(self._provider, self._url, status, body, mask, depth=self._caps.depth)

    def _body(self, prompt: Prompt, able: Capabilities) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": prompt.model,
            "messages": chat_messages(
                prompt, provider=self._provider, system_role=able.system_prompt
            ),
            "stream": able.streaming,
        }
        if able.streaming:
            body["stream_options"] = {"include_usage": True}
        if prompt.tools:
            body["tools"] = [_tool(tool) for tool in prompt.tools]
        if prompt.max_output_tokens is not None:
            body["max_tokens"] = prompt.max_output_tokens
        if prompt.effort is not None and able.reasoning:
            body["reasoning_effort"] = _EFFORTS[prompt.effort]
        return body


def _tool(tool: Tool) -> dict[str, Any]:
    function = {
        "name": tool_name(tool.name),
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}
