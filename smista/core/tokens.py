"""How much room things take: a fixed, provider-blind estimate, and the room a model leaves.

Consistent rather than exact: the same text always weighs the same, whoever reads it.
"""

from typing import Final

from smista.core.envelopes import content_size
from smista.core.model_ref import ModelDescriptor
from smista.core.secret import Envelope

ASSUMED_REPLY: Final = 4096
"""Tokens of an answer whose length nobody bounds."""
IMAGE_TOKENS: Final = 1500
_CHARS_PER_TOKEN: Final = 4


def text_tokens(text: str) -> int:
    """Return the estimate for *text*: a quarter of its characters, rounded up."""
    return -(-len(text) // _CHARS_PER_TOKEN)


def sealed_tokens(envelope: Envelope) -> int:
    """Return the estimate for a sealed text, judged by the size of its ciphertext alone."""
    return -(-content_size(envelope) // _CHARS_PER_TOKEN)


def text_bytes(text: str) -> int:
    """Return the size of *text* in UTF-8."""
    # Plain ASCII is the common case, and its length is known without encoding it.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def reply_reserve(model: ModelDescriptor) -> int:
    """Return the tokens kept free for the answer: never more than half of the window."""
    wanted = ASSUMED_REPLY if model.max_output_tokens is None else model.max_output_tokens
    return min(wanted, model.max_context_tokens // 2)


def effective_budget(model: ModelDescriptor) -> int:
    """Return the tokens that context may take."""
    return model.max_context_tokens - reply_reserve(model)
