"""Session keys as text that travels to another machine: one line a key, with its sessions. Pure.

kf_… <key> <session id> <session id> …
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pydantic import SecretStr

from cli.failures import BadUsage
from smista.core.session_key import BadKey, SessionKey, is_key_id

HEADING: Final = "# smista session keys; whoever has this text can read these sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Travelling:
    """A key on its way, and the sessions it opens as far as they are known."""

    key: SessionKey
    sessions: tuple[str, ...]


def written(keys: Iterable[Travelling]) -> SecretStr:
    """Return *keys* as text for `read_keys`."""
    lines = [
        " ".join((each.key.key_id, each.key.text().get_secret_value(), *each.sessions))
        for each in keys
    ]
    return SecretStr("".join(f"{line}\n" for line in (HEADING, *lines)))


def read_keys(text: SecretStr) -> list[Travelling]:
    """Return the keys in *text*, each checked against its fingerprint. Raises BadUsage.

    The error names the line and never quotes it.
    """
    lines = enumerate(text.get_secret_value().splitlines(), start=1)
    read = [
        _read(number, line.split())
        for number, line in lines
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not read:
        raise BadUsage("there is no key in what was given; `smista keys export` writes one a line")
    return read


def _read(number: int, words: list[str]) -> Travelling:
    key_id = words.pop(0) if is_key_id(words[0]) else None
    if not words:
        raise BadUsage(f"line {number}: this is the id of a key, not the key itself")
    try:
        key = SessionKey.parse(SecretStr(words.pop(0)))
        sessions = tuple(str(UUID(word)) for word in words)
    except BadKey as error:
        raise BadUsage(f"line {number}: {error}") from None
    except ValueError:
        raise BadUsage(f"line {number}: behind the key there should be session ids") from None
    if key_id is not None and key.key_id != key_id:
        raise BadUsage(
            f"line {number}: the key does not have the fingerprint {key_id}; it was damaged on "
            "its way, export it again"
        )
    return Travelling(key=key, sessions=sessions)
