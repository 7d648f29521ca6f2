"""The Decoder of Chat Completions: event stream or JSON, whatever was asked."""

from smista.providers.chat_turn import ChatTurn
from smista.providers.event_answer import EventAnswer
from smista.providers.masking import Mask
from smista.providers.wire import Caps, WireRequest


class ChatAnswer(EventAnswer):
    """An EventAnswer that a ChatTurn understands."""

    def __init__(self, *, provider: str, request: WireRequest, caps: Caps, mask: Mask) -> None:
        turn = ChatTurn(provider=provider, calls=caps.calls, mask=mask)
        super().__init__(provider=provider, request=request, caps=caps, turn=turn)
