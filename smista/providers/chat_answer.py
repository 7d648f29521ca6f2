"""The Decoder of Chat Completions: event stream or JSON, whatever was asked."""

from smista.providers.answer import Answer
from smista.providers.chat_turn import ChatTurn
from smista.providers.masking import Mask
from smista.providers.sse import SseReader
from smista.providers.wire import Caps, WireRequest


class ChatAnswer(Answer):
    """Server-sent events, understood by a ChatTurn."""

    def __init__(self, *, provider: str, request: WireRequest, caps: Caps, mask: Mask) -> None:
        super().__init__(
            provider=provider,
            request=request,
            caps=caps,
            turn=ChatTurn(provider=provider, calls=caps.calls, mask=mask),
            frames=SseReader(limit=caps.line_bytes),
        )
