"""The seam between a provider's words and the bytes on the wire.

A dialect is pure: prompt in, request out; bytes in, events out. The transport does the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import SecretStr

from smista.core.errors import ProviderError
from smista.core.prompt import Prompt
from smista.core.stream import StreamEvent
from smista.providers.masking import Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A POST of JSON. *headers* never hold a secret; *stream* is what the body asks for.

    *names*: tool name on the wire → ours, where the format did not take ours as it is.
    """

    url: str
    body: bytes = field(repr=False)
    stream: bool
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    names: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """What one answer may cost us, whatever the server sends: bytes, calls, JSON levels.

    *line_bytes* bounds what has to be in memory at once: an event, or a whole JSON body.
    """

    answer_bytes: int = 64 * 1024 * 1024
    line_bytes: int = 4 * 1024 * 1024
    calls: int = 64
    depth: int = 64


class Decoder(Protocol):
    """Reads one answer, cut into pieces anywhere.

    It never raises. *done*: the answer is complete, or *fault* says why it never will be;
    events that came before the fault have been returned. *beats* counts signs of life that are
    not mere heartbeats.
    """

    @property
    def done(self) -> bool: ...

    @property
    def fault(self) -> ProviderError | None: ...

    @property
    def beats(self) -> int: ...

    def feed(self, data: bytes) -> list[StreamEvent]: ...

    def close(self) -> list[StreamEvent]:
        """Take notice that no more bytes will come."""
        ...


class Dialect(Protocol):
    """One wire format, spoken to one provider."""

    def request(self, prompt: Prompt) -> WireRequest: ...

    def key_headers(self, key: SecretStr) -> Mapping[str, str]: ...

    def decoder(self, request: WireRequest, mask: Mask) -> Decoder: ...

    def failure(self, status: int, body: bytes, mask: Mask) -> ProviderError:
        """Return the error that a *status* outside 200..299 and its *body* stand for."""
        ...
