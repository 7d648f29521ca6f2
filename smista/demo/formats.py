"""The wire formats the demo model speaks, and where: paths in, formats out."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

from smista.demo import chat_completions, generate_content, messages, ollama_chat, responses
from smista.demo.asked import Asked
from smista.demo.script import Failure, Script, Step, Tokens


class Writer(Protocol):
    """Writes one streamed answer, step by step."""

    def begin(self) -> bytes: ...

    def step(self, step: Step, /) -> Iterator[bytes]: ...

    def error(self, failure: Failure, /) -> bytes: ...

    def end(self, tokens: Tokens, /) -> bytes: ...


class Format(Protocol):
    """One wire format; a module is one."""

    @property
    def STREAM_TYPE(self) -> str: ...

    def read_request(self, body: bytes, path: str, /) -> Asked:
        """Return what *body*, sent to *path*, asks. Raises BadBody."""
        ...

    def create_writer(self, asked: Asked, tokens: Tokens, /) -> Writer: ...

    def whole_body(self, asked: Asked, steps: Iterable[Step], tokens: Tokens, /) -> bytes: ...

    def error_body(self, failure: Failure, /) -> bytes: ...


Fact = Callable[[Script, bytes], bytes]
"""Answers a question about the models: script and request body in, response body out."""

_ANTHROPIC: Final = "anthropic-version"
_GOOGLE: Final = "x-goog-api-key"
_GEMINI: Final = re.compile(r"/v1(?:beta)?/models/[^/:]+:")


def find_format(path: str) -> Format | None:
    """Return the format of the requests for an answer that *path* takes."""
    if _GEMINI.match(path):
        return generate_content
    return _FORMATS.get(path.removeprefix("/v1"))


def find_fact(method: str, path: str, headers: Mapping[str, str]) -> Fact | None:
    """Return what answers a question about the models asked of *path*."""
    match method, path.removeprefix("/v1"):
        case "GET", "/models" if _ANTHROPIC in headers:
            return lambda script, _: messages.models_body(script.models)
        case "GET", "beta/models":
            return lambda script, _: generate_content.models_body(script.models)
        case "GET", "/models" if _GOOGLE in headers:
            return lambda script, _: generate_content.models_body(script.models)
        case "GET", "/models":
            return lambda script, _: chat_completions.models_body(script.models)
        case "GET", "/api/tags":
            return lambda script, _: ollama_chat.tags_body(script)
        case "POST", "/api/show":
            return lambda _script, _body: ollama_chat.show_body()
        case _:
            return None


_FORMATS: Final[Mapping[str, Format]] = {
    "/chat/completions": chat_completions,
    "/messages": messages,
    "/responses": responses,
    "/api/chat": ollama_chat,
}
