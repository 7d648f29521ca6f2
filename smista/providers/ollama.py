"""Ollama's own chat API, local or in its cloud. Pure."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import SecretStr

from smista.core.errors import ProviderError
from smista.core.intents import Effort
from smista.core.prompt import Prompt, Tool
from smista.core.tokens import IMAGE_TOKENS
from smista.providers.event_answer import EventAnswer
from smista.providers.faults import Complaint, classify, read_complaint
from smista.providers.json_values import json_bytes
from smista.providers.jsonl import JsonLines
from smista.providers.masking import Mask
from smista.providers.ollama_errors import error_in
from smista.providers.ollama_facts import ON_OR_OFF, OllamaModel, Think
from smista.providers.ollama_messages import ollama_messages
from smista.providers.ollama_turn import OllamaTurn
from smista.providers.rejections import rejection
from smista.providers.wire import Caps, WireRequest

LOCAL_URL: Final = "http://127.0.0.1:11434"
CLOUD_URL: Final = "https://ollama.com"
_ACCEPT: Final = {"Accept": "application/x-ndjson"}
_LEVELS: Final = ("low", "medium", "high", "max")
_WANTED: Final = {Effort.LOW: 0, Effort.MEDIUM: 1, Effort.HIGH: 2, Effort.XHIGH: 3}
_LEAST_WINDOW: Final = 8192
_REPLY: Final = 4096
_BYTES_PER_TOKEN: Final = 3


def nothing_known(model: str) -> OllamaModel | None:
    """Return the facts of a server that was never asked."""
    return None


class Ollama:
    """The Dialect of Ollama. *known* tells what its server says of a model.

    A *local* server is told how much context to keep: its own default is often smaller than a
    prompt, and it would cut the prompt without a word.
    """

    def __init__(
        self,
        *,
        provider: str = "ollama",
        base_url: str = LOCAL_URL,
        local: bool = True,
        known: Callable[[str], OllamaModel | None] = nothing_known,
        caps: Caps | None = None,
    ) -> None:
        self._provider = provider
        self._url = f"{base_url.rstrip('/')}/api/chat"
        self._local = local
        self._known = known
        self._caps = caps or Caps()

    def request(self, prompt: Prompt) -> WireRequest:
        body = json_bytes(self._body(prompt))
        return WireRequest(url=self._url, body=body, stream=True, headers=_ACCEPT)

    def key_headers(self, key: SecretStr) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key.get_secret_value()}"}

    def decoder(self, request: WireRequest, mask: Mask) -> EventAnswer:
        return EventAnswer(
            provider=self._provider,
            request=request,
            caps=self._caps,
            turn=OllamaTurn(provider=self._provider, calls=self._caps.calls, mask=mask),
            frames=JsonLines(limit=self._caps.line_bytes),
        )

    def failure(self, status: int, body: bytes, mask: Mask) -> ProviderError:
        def unwrapped(complaint: Complaint, said: Any) -> ProviderError | None:
            inner = error_in(said)
            if inner is said:
                return None
            return classify(read_complaint(self._provider, status, inner, mask))

        return rejection(
            self._provider, self._url, status, body, mask, depth=self._caps.depth, judge=unwrapped
        )

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": prompt.model,
            "messages": ollama_messages(prompt),
            "stream": True,
            # An error is better than a prompt without its beginning.
            "truncate": False,
            "shift": False,
        }
        if prompt.tools:
            body["tools"] = [_tool(tool) for tool in prompt.tools]
        if prompt.effort is not None:
            known = self._known(prompt.model)
            body["think"] = _think(prompt.effort, ON_OR_OFF if known is None else known.thinking)
        options = self._options(prompt, body)
        return {**body, "options": options} if options else body

    def _options(self, prompt: Prompt, body: dict[str, Any]) -> dict[str, int]:
        options: dict[str, int] = {}
        if self._local:
            options["num_ctx"] = self._window(prompt, body)
        if prompt.max_output_tokens is not None:
            options["num_predict"] = prompt.max_output_tokens
        return options

    def _window(self, prompt: Prompt, body: dict[str, Any]) -> int:
        """Return the context to keep: a power of two, or all that the model has.

        A change of this number makes the server load the model anew, so it grows in few steps.
        """
        needed = max(_needed(body, prompt.max_output_tokens or _REPLY), _LEAST_WINDOW)
        wanted = 1 << (needed - 1).bit_length()
        known = self._known(prompt.model)
        return wanted if known is None else min(wanted, known.descriptor.max_context_tokens)


def _needed(body: dict[str, Any], reply: int) -> int:
    """Return about how many tokens *body* and a reply take."""
    messages: list[dict[str, Any]] = body["messages"]
    pictures = sum(len(message.get("images", ())) for message in messages)
    texts: list[dict[str, Any]] = [{**message, "images": []} for message in messages]
    said = json.dumps([texts, body.get("tools")], ensure_ascii=False).encode("utf-8", "replace")
    return len(said) // _BYTES_PER_TOKEN + pictures * IMAGE_TOKENS + reply


def _think(effort: Effort, values: tuple[Think, ...]) -> Think:
    """Return the value of `think` for *effort*: a level where the model has levels."""
    levels = [level for level in _LEVELS if level in values]
    if not levels:
        return effort is not Effort.LOW or False not in values
    below = [level for level in levels if _LEVELS.index(level) <= _WANTED[effort]]
    return below[-1] if below else levels[0]


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": {"type": "object", "properties": {}, **tool.parameters},
    }
    return {"type": "function", "function": function}
