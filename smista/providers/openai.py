"""OpenAI's Responses API. Pure.

Nothing is stored at OpenAI (`store` is false), so each request carries its whole conversation.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import SecretStr

from smista.core.errors import ProviderError
from smista.core.intents import Effort
from smista.core.prompt import Prompt, Tool
from smista.providers.event_answer import EventAnswer
from smista.providers.json_values import json_bytes
from smista.providers.masking import Mask
from smista.providers.rejections import rejection
from smista.providers.responses_input import input_items
from smista.providers.responses_turn import ResponsesTurn
from smista.providers.strict_schema import strict_schema
from smista.providers.tool_names import foreign, prompt_names
from smista.providers.wire import Caps, WireRequest

BASE_URL: Final = "https://api.openai.com/v1"
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""All levels the API knows, from least to most; a model takes some of them."""
_ACCEPT: Final = {"Accept": "text/event-stream"}
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LENGTH: Final = 64
_USUAL: Final = ("low", "medium", "high")


def usual_efforts(model: str) -> Sequence[str]:
    """Return the levels that every reasoning model takes."""
    return _USUAL


class OpenAI:
    """The Dialect of OpenAI. *efforts* tells which levels of reasoning a model takes."""

    def __init__(
        self,
        *,
        provider: str = "openai",
        base_url: str = BASE_URL,
        efforts: Callable[[str], Sequence[str]] = usual_efforts,
        caps: Caps | None = None,
    ) -> None:
        self._provider = provider
        self._url = f"{base_url.rstrip('/')}/responses"
        self._efforts = efforts
        self._caps = caps or Caps()

    def request(self, prompt: Prompt) -> WireRequest:
        names = prompt_names(prompt, unsafe=_UNSAFE, limit=_NAME_LENGTH)
        body = json_bytes(self._body(prompt, names))
        return WireRequest(
            url=self._url,
            body=body,
            stream=True,
            headers=_ACCEPT,
            names=foreign(names),
        )

    def key_headers(self, key: SecretStr) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key.get_secret_value()}"}

    def decoder(self, request: WireRequest, mask: Mask) -> EventAnswer:
        turn = ResponsesTurn(
            provider=self._provider, calls=self._caps.calls, names=request.names, mask=mask
        )
        return EventAnswer(provider=self._provider, request=request, caps=self._caps, turn=turn)

    def failure(self, status: int, body: bytes, mask: Mask) -> ProviderError:
        return rejection(self._provider, self._url, status, body, mask, depth=self._caps.depth)

    def _body(self, prompt: Prompt, names: Mapping[str, str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": prompt.model,
            "input": input_items(prompt, names, provider=self._provider),
            "stream": True,
            "store": False,
        }
        if prompt.system:
            body["instructions"] = prompt.system
        if prompt.tools:
            body["tools"] = [_tool(tool, names) for tool in prompt.tools]
        if prompt.max_output_tokens is not None:
            body["max_output_tokens"] = prompt.max_output_tokens
        if prompt.effort is not None:
            level = nearest_effort(prompt.effort, self._efforts(prompt.model))
            body |= {"reasoning": {"effort": level}} if level else {}
        return body


def nearest_effort(effort: Effort, levels: Sequence[str]) -> str | None:
    """Return the highest of *levels* that is not above *effort*, else the lowest; None: no level.

    A model that reasons at full strength only is asked for just that.
    """
    known = [level for level in EFFORTS if level in levels and level != "none"]
    wanted = EFFORTS.index(effort.value)
    below = [level for level in known if EFFORTS.index(level) <= wanted]
    return below[-1] if below else next(iter(known), None)


def _tool(tool: Tool, names: Mapping[str, str]) -> dict[str, Any]:
    # `strict` wants every property required; only the tools that say so take a null for it.
    usual: dict[str, Any] = {"type": "object", "properties": {}, **tool.parameters}
    return {
        "type": "function",
        "name": names[tool.name],
        "description": tool.description,
        "parameters": strict_schema(tool.parameters) if tool.strict else usual,
        "strict": tool.strict,
    }
