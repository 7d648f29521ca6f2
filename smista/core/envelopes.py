"""Envelopes as a router sees them: it checks their shape, and opens none."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from smista.core.errors import InvalidRequest, SmistaError
from smista.core.secret import Envelope

ALGORITHM: Final = "xchacha20poly1305"
VERSIONS: Final = (1, 2)
NONCE_BYTES: Final = 24
TAG_BYTES: Final = 16
_TOLD: Final = 50

# Both alphabets, padded or not; what no base64 has is one character alone at the end.
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_REFERENCE: Final = re.compile(
    r"(?:message|tool_call|diff|plan|memory|trace|run_input):[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)


def decoded_size(text: str) -> int | None:
    """Return how many bytes base64 *text* stands for, None if it is no base64."""
    if _BASE64.fullmatch(text) is None:
        return None
    digits = len(text.rstrip("="))
    return None if digits % 4 == 1 else digits * 3 // 4


def content_size(envelope: Envelope) -> int:
    """Return the bytes of the sealed text, as its ciphertext tells them."""
    return max(len(envelope.ciphertext.rstrip("=")) * 3 // 4 - TAG_BYTES, 0)


def fault_of(envelope: Envelope, key_id: str) -> str | None:
    """Return what is wrong with *envelope* for a session of *key_id*, None if nothing is."""
    nonce, ciphertext = decoded_size(envelope.nonce), decoded_size(envelope.ciphertext)
    if envelope.version not in VERSIONS:
        return "version"
    if envelope.algorithm != ALGORITHM:
        return "algorithm"
    if envelope.key_id != key_id:
        return "key_id"
    if nonce != NONCE_BYTES:
        return "nonce"
    return "ciphertext" if ciphertext is None or ciphertext < TAG_BYTES else None


def wrong_envelopes(
    wanted: Collection[str], given: Mapping[str, Envelope], key_id: str
) -> SmistaError | None:
    """Return the error unless *given* seals exactly the *wanted* references, in sound envelopes."""
    missing = sorted(set(wanted) - given.keys())
    unknown = given.keys() - set(wanted)
    faults = {name: fault_of(envelope, key_id) for name, envelope in given.items()}
    malformed = {name: fault for name, fault in faults.items() if fault and name in wanted}
    if not missing and not unknown and not malformed:
        return None
    details: dict[str, Any] = {
        "missing": missing[:_TOLD] or None,
        # What does not look like a reference is some other text of the client's.
        "unknown": sorted(filter(_REFERENCE.fullmatch, unknown))[:_TOLD] or None,
        "malformed": dict(list(malformed.items())[:_TOLD]) or None,
    }
    return InvalidRequest(
        "seal exactly what the last response listed under to_encrypt, with the session's key: "
        f"{len(missing)} missing, {len(unknown)} unknown, {len(malformed)} malformed",
        **details,
    )
