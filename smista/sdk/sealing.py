"""Sealing and opening what an encrypted session stores: XChaCha20-Poly1305, bound to its place.

The router never sees the key. An envelope opens only in the session and under the reference
that it was sealed for; that an older one was put in its place, or one left out, is not noticed.
"""

from collections.abc import Callable, Mapping
from secrets import token_bytes
from typing import Any, Final, TypeVar
from uuid import UUID

import trio
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
)
from nacl.exceptions import CryptoError
from pydantic import ValidationError

from smista.core.secret import Envelope
from smista.core.session_key import KEY_BYTES, SessionKey, from_base64, to_base64
from smista.sdk.errors import SdkError

ALGORITHM: Final = "xchacha20poly1305"
VERSION: Final = 2
NONCE_BYTES: Final = 24
HEAVY: Final = 256 * 1024
"""Characters from which on sealing and opening leave the loop to others."""
_TAG_BYTES: Final = 16
_UNBOUND: Final = 1
_DOMAIN: Final = "smista-e2e-v2"

T = TypeVar("T")


class SealingError(SdkError):
    """Something of an encrypted session cannot be sealed or opened."""


class MissingKey(SealingError):
    """The session is encrypted, and this machine has no key for it."""


class WrongKey(SealingError):
    """An envelope names another key than the session's."""

    def __init__(self, reference: str, named: str, key_id: str) -> None:
        super().__init__(
            f"{reference} was sealed with the key {named[:64]!r}, and this session's key is "
            f"{key_id}; it is left closed, since it does not belong to this session"
        )


class Tampered(SealingError):
    """An envelope was changed, or stands where another one belongs."""

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"{reference} does not open: it was changed, or moved here from elsewhere; do not "
            "trust what this router stores, and restore it from a backup"
        )


class UnknownEnvelope(SealingError):
    """An envelope of a kind that this version does not know, or none at all."""

    def __init__(self, reference: str, why: str) -> None:
        super().__init__(f"{reference} cannot be opened: {why}")


def new_key() -> SessionKey:
    """Return a fresh key for one session."""
    return SessionKey(token_bytes(KEY_BYTES))


class Sealer:
    """Seals and opens the contents of one session with its key."""

    def __init__(self, key: SessionKey, session_id: str) -> None:
        self._key = key
        # However a person wrote the id: it is part of what is sealed.
        self._session_id = str(UUID(session_id))

    @property
    def key_id(self) -> str:
        return self._key.key_id

    async def seal(self, texts: Mapping[str, str]) -> dict[str, Envelope]:
        """Return an envelope for each of *texts*, by reference."""

        def work() -> dict[str, Envelope]:
            return {name: self.seal_one(name, text) for name, text in texts.items()}

        return await _beside(work, sum(map(len, texts.values())))

    async def open(self, envelopes: Mapping[str, Any]) -> dict[str, str]:
        """Return the text in each of *envelopes* (parsed JSON). Raises SealingError."""
        read = {name: _read(name, envelope) for name, envelope in envelopes.items()}

        def work() -> dict[str, str]:
            return {name: self.open_one(name, envelope) for name, envelope in read.items()}

        return await _beside(work, sum(len(envelope.ciphertext) for envelope in read.values()))

    def seal_one(self, reference: str, text: str) -> Envelope:
        """Return *text* sealed for *reference* in this session."""
        nonce = token_bytes(NONCE_BYTES)
        sealed = crypto_aead_xchacha20poly1305_ietf_encrypt(
            text.encode("utf-8", "surrogatepass"),
            self._bound_to(reference),
            nonce,
            self._key.secret(),
        )
        return Envelope(
            version=VERSION,
            algorithm=ALGORITHM,
            key_id=self.key_id,
            nonce=to_base64(nonce),
            ciphertext=to_base64(sealed),
        )

    def open_one(self, reference: str, envelope: Envelope) -> str:
        """Return the text in *envelope*, which stands at *reference*. Raises SealingError."""
        if envelope.version not in (_UNBOUND, VERSION) or envelope.algorithm != ALGORITHM:
            kind = f"version {envelope.version}, {envelope.algorithm!r}"
            raise UnknownEnvelope(reference, f"this smista does not know {kind}; update smista")
        if envelope.key_id != self.key_id:
            raise WrongKey(reference, envelope.key_id, self.key_id)
        bound_to = b"" if envelope.version == _UNBOUND else self._bound_to(reference)
        try:
            opened = self._opened(envelope, bound_to)
            return opened.decode("utf-8", "surrogatepass")
        except (CryptoError, ValueError) as error:
            raise Tampered(reference) from error

    def _opened(self, envelope: Envelope, bound_to: bytes) -> bytes:
        nonce, sealed = from_base64(envelope.nonce), from_base64(envelope.ciphertext)
        if len(nonce) != NONCE_BYTES or len(sealed) < _TAG_BYTES:
            raise ValueError("nonce or ciphertext are too short")
        return crypto_aead_xchacha20poly1305_ietf_decrypt(
            sealed, bound_to, nonce, self._key.secret()
        )

    def _bound_to(self, reference: str) -> bytes:
        return "\0".join((_DOMAIN, self.key_id, self._session_id, reference)).encode()


def _read(reference: str, envelope: object) -> Envelope:
    try:
        return Envelope.model_validate(envelope)
    except ValidationError as error:
        raise UnknownEnvelope(reference, "what is stored there is no envelope") from error


async def _beside(work: Callable[[], T], size: int) -> T:
    """Do *work*, in a thread if it is much."""
    return work() if size < HEAVY else await trio.to_thread.run_sync(work)
