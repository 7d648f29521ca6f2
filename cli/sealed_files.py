"""How the client's own files of a session are kept: in clear, or sealed with the session's key."""

from typing import TYPE_CHECKING, Final

from cli.session_folder import Clear, Sealer, Withheld
from cli.surroundings import Surroundings
from smista.core.secret import Envelope
from smista.local.session_keys import SessionKeys

if TYPE_CHECKING:
    from smista.sdk import sealing

_REFERENCE: Final = "client_file"


def sealer_of(here: Surroundings, session_id: str) -> Sealer:
    """Return what seals the files of *session_id*; without its key they are not kept. Blocks."""
    keys = SessionKeys(here.places)
    key_id = keys.recorded(session_id)
    if key_id is None:
        return Clear()
    key = keys.find(key_id)
    if key is None:
        return Withheld()
    # Only sessions that need it pay for the import.
    from smista.sdk import sealing

    return _Sealed(sealing.Sealer(key, session_id))


class _Sealed:
    def __init__(self, sealer: "sealing.Sealer") -> None:
        self._sealer = sealer

    def seal(self, text: str) -> str | None:
        return self._sealer.seal_one(_REFERENCE, text).model_dump_json()

    def unseal(self, kept: str) -> str | None:
        from smista.sdk import sealing

        try:
            envelope = Envelope.model_validate_json(kept)
            return self._sealer.open_one(_REFERENCE, envelope)
        except (ValueError, sealing.SealingError):
            return None  # changed by somebody, or kept under another key
