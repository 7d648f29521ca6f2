"""Google's Gemini API, `streamGenerateContent`. Pure."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from pydantic import SecretStr

from smista.core.errors import ProviderError
from smista.core.prompt import Prompt, Tool
from smista.providers.event_answer import EventAnswer
from smista.providers.gemini_contents import TOOL_NAME, TOOL_NAME_LENGTH, gemini_contents
from smista.providers.gemini_errors import judge
from smista.providers.gemini_generation import is_plain, thinking_config, wants_signatures
from smista.providers.gemini_schema import gemini_schema
from smista.providers.gemini_turn import GeminiTurn
from smista.providers.json_values import json_bytes
from smista.providers.masking import Mask
from smista.providers.rejections import rejection
from smista.providers.tool_names import foreign, prompt_names
from smista.providers.wire import Caps, WireRequest

PROVIDER: Final = "gemini"
BASE_URL: Final = "https://generativelanguage.googleapis.com"


class Gemini:
    """The Dialect of the Gemini API. The key travels in a header, never in the query."""

    def __init__(self, *, base_url: str = BASE_URL, caps: Caps | None = None) -> None:
        self._url = f"{base_url.rstrip('/')}/v1beta/models"
        self._caps = caps or Caps()

    @property
    def models_url(self) -> str:
        """The list of models: one page, which holds them all."""
        return f"{self._url}?pageSize=1000"

    @property
    def models_headers(self) -> Mapping[str, str]:
        return {"Accept": "application/json"}

    def request(self, prompt: Prompt) -> WireRequest:
        names = prompt_names(prompt, unsafe=TOOL_NAME, limit=TOOL_NAME_LENGTH)
        body = json_bytes(_body(prompt, names))
        model = quote(prompt.model.removeprefix("models/"), safe="")
        return WireRequest(
            url=f"{self._url}/{model}:streamGenerateContent?alt=sse",
            body=body,
            stream=True,
            headers={"Accept": "text/event-stream"},
            names=foreign(names),
        )

    def key_headers(self, key: SecretStr) -> Mapping[str, str]:
        return {"x-goog-api-key": key.get_secret_value()}

    def decoder(self, request: WireRequest, mask: Mask) -> EventAnswer:
        turn = GeminiTurn(calls=self._caps.calls, names=request.names, mask=mask)
        return EventAnswer(provider=PROVIDER, request=request, caps=self._caps, turn=turn)

    def failure(self, status: int, body: bytes, mask: Mask) -> ProviderError:
        return rejection(
            *(PROVIDER, self._url, status, body, mask), depth=self._caps.depth, judge=judge
        )


def _body(prompt: Prompt, names: Mapping[str, str]) -> dict[str, Any]:
    signed = wants_signatures(prompt.model)
    contents = gemini_contents(prompt, provider=PROVIDER, names=names, signed=signed)
    body: dict[str, Any] = {"contents": contents}
    plain = is_plain(prompt.model)
    if prompt.system.strip() and plain:
        contents[0]["parts"].insert(0, {"text": prompt.system})
    elif prompt.system.strip():
        body["systemInstruction"] = {"parts": [{"text": prompt.system}]}
    if prompt.tools and not plain:
        offered = [_tool(tool, names[tool.name]) for tool in prompt.tools]
        body["tools"] = [{"functionDeclarations": offered}]
    if config := _config(prompt):
        body["generationConfig"] = config
    return body


def _tool(tool: Tool, name: str) -> dict[str, Any]:
    parameters = gemini_schema(tool.parameters)
    declared = {"name": name, "description": tool.description}
    return declared if parameters is None else {**declared, "parameters": parameters}


def _config(prompt: Prompt) -> dict[str, Any]:
    limit = prompt.max_output_tokens
    config: dict[str, Any] = {} if limit is None else {"maxOutputTokens": limit}
    if prompt.effort is not None:
        thinking = thinking_config(prompt.model, prompt.effort, limit=limit)
        config |= {"thinkingConfig": thinking} if thinking else {}
    return config
