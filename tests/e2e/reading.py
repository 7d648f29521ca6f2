"""Encrypted sessions as their owner reads them in a test: with the keys of a house."""

from typing import Any

import trio

from smista.local.paths import find_places
from smista.local.session_keys import SessionKeys
from smista.sdk.answers import SessionDetail
from smista.sdk.opening import open_messages
from smista.sdk.sealing import Sealer
from tests.e2e.house import House


def keys_of(house: House) -> SessionKeys:
    return SessionKeys(find_places({"SMISTA_HOME": str(house.home)}, house.folder / "user"))


def sealer_of(house: House, detail: SessionDetail) -> Sealer:
    """Return what opens the session, which has to be encrypted with a key of *house*."""
    assert detail.key_id is not None
    key = keys_of(house).find(detail.key_id)
    assert key is not None
    return Sealer(key, detail.id)


def said_in_sealed(house: House, session: dict[str, Any]) -> list[tuple[str, str]]:
    """Return who said what in the fetched *session*."""
    detail = SessionDetail.model_validate(session)
    told = trio.run(open_messages, sealer_of(house, detail), detail.messages)
    return [(message.role, message.content["plaintext"]) for message in told]
