"""Content that is stored in clear or sealed, and the envelope that only a client can open."""

from dataclasses import dataclass

from pydantic import StrictInt

from smista.core.policy import Frozen


class Envelope(Frozen):
    """An AEAD ciphertext; *nonce* and *ciphertext* are base64 (*Decrypt and encrypt*)."""

    version: StrictInt
    algorithm: str
    key_id: str
    nonce: str
    ciphertext: str


@dataclass(frozen=True, slots=True)
class Plain:
    text: str


@dataclass(frozen=True, slots=True)
class Opened(Plain):
    """A text at hand whose *envelope* is what storage holds of it."""

    envelope: Envelope


@dataclass(frozen=True, slots=True)
class Sealed:
    envelope: Envelope


SecretContent = Plain | Sealed
