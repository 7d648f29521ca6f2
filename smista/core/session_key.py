"""The key of one encrypted session and its fingerprint, the only thing a router learns of it.

Nothing here makes a key: its bytes come from whoever has a source of chance.
"""

import re
from base64 import b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from typing import Final, NoReturn

from pydantic import SecretStr

KEY_BYTES: Final = 32
_KEY_ID: Final = re.compile(r"kf_[A-Za-z0-9_-]{43}")
_STANDARD: Final = str.maketrans("-_", "+/")


class BadKey(ValueError):
    """What should be a session key is none. The text never quotes it."""


class SessionKey:
    """32 bytes that open one session. They show in no text, log, copy or comparison."""

    __slots__ = ("_secret", "key_id")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise BadKey(f"a session key has {KEY_BYTES} bytes; this has {len(secret)}")
        self._secret = secret
        self.key_id: Final = key_id_of(secret)

    @classmethod
    def parse(cls, text: SecretStr) -> "SessionKey":
        """Return the key that *text* (base64) holds. Raises BadKey."""
        try:
            secret = from_base64(text.get_secret_value().strip())
        except ValueError as error:
            raise BadKey("a session key is 43 characters of base64; this is not") from error
        return cls(secret)

    def text(self) -> SecretStr:
        """Return the key as it is kept in a file: base64url without padding."""
        return SecretStr(to_base64(self._secret))

    def secret(self) -> bytes:
        """Return the bytes, for the cipher alone."""
        return self._secret

    def __repr__(self) -> str:
        return f"SessionKey({self.key_id})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a session key is not copied into other places")


def key_id_of(secret: bytes) -> str:
    """Return the fingerprint of the key *secret*."""
    return f"kf_{to_base64(sha256(secret).digest())}"


def is_key_id(text: str) -> bool:
    """Return whether *text* has the shape of a fingerprint; only then it may name a file."""
    return _KEY_ID.fullmatch(text) is not None


def to_base64(content: bytes) -> str:
    """Return *content* in the alphabet for URLs, without padding."""
    return urlsafe_b64encode(content).decode().rstrip("=")


def from_base64(text: str) -> bytes:
    """Return what *text* encodes, in either alphabet, padded or not. Raises ValueError."""
    digits = text.rstrip("=").translate(_STANDARD)
    try:
        return b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except NotBase64 as error:
        raise ValueError("this is not base64") from error
