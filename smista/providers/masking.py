"""What a provider says may quote the key it was sent; nobody else is to read it."""

import re
from collections.abc import Callable
from typing import Final

from pydantic import SecretStr

from smista.core.key_shapes import LOOSE

Mask = Callable[[str], str]
MASKED: Final = "[masked]"

_SHAPES: Final = re.compile(LOOSE + r"|\bkey[-_][A-Za-z0-9_-]{12,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
_BEARER: Final = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)


def create_mask(key: SecretStr | None) -> Mask:
    """Return a function that hides *key* and whatever has the shape of a key."""
    exact = key.get_secret_value() if key is not None else ""

    def mask(said: str) -> str:
        shown = said.replace(exact, MASKED) if exact else said
        return _SHAPES.sub(MASKED, _BEARER.sub(rf"\1 {MASKED}", shown))

    return mask
