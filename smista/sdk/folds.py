"""What turns of an encrypted session fold: texts to seal, rows to open; and the answers to it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from smista.core.events import Status, TurnEnd
from smista.core.messages import SealedData, SealedRows, ToolResultEntry
from smista.core.secret import Envelope
from smista.sdk.errors import BadAnswer, is_object
from smista.sdk.sealing import MissingKey, Sealer


def to_encrypt(turn: TurnEnd) -> dict[str, str]:
    """Return the texts that *turn* asks its client to seal, by reference. Raises BadAnswer."""
    folded: Any = turn.data.get("to_encrypt", {})
    if not is_object(folded) or not all(isinstance(text, str) for text in folded.values()):
        raise BadAnswer("a `to_encrypt` that does not map references to texts")
    return cast("dict[str, str]", folded)


def check_key(turn: TurnEnd, sealer: Sealer | None) -> None:
    """Raise MissingKey if *turn* cannot be answered without a key."""
    waits = turn.status in (Status.AWAITING_DECRYPT, Status.AWAITING_ENCRYPT)
    if sealer is None and (waits or to_encrypt(turn)):
        raise MissingKey(
            "the session is encrypted and this client holds no key for it; bring the key with "
            "`smista keys import`, or begin a new session"
        )


async def sealed(
    turn: TurnEnd, sealer: Sealer | None, results: Sequence[ToolResultEntry] = ()
) -> dict[str, Envelope]:
    """Return the envelopes for what *turn* asks to seal, and for *results*; {} in clear ones."""
    if sealer is None:
        return {}
    own = {f"tool_call:{result.call_id}": _entry(result) for result in results}
    return await sealer.seal({**to_encrypt(turn), **own})


def marked(results: Sequence[ToolResultEntry]) -> tuple[ToolResultEntry, ...]:
    """Return *results*, saying what `sealed` puts into their envelopes."""
    return tuple(result.model_copy(update={"sealed_as": "entry"}) for result in results)


async def opened(turn: TurnEnd, sealer: Sealer) -> dict[str, str]:
    """Return the texts of the rows that *turn* needs opened. Raises BadAnswer, SealingError."""
    folded = turn.data.get("to_decrypt")
    if not is_object(folded):
        raise BadAnswer("a pause for rows to be opened without `to_decrypt`")
    return await sealer.open(folded)


async def closing(turn: TurnEnd, sealer: Sealer | None) -> SealedRows | None:
    """Return the message that stores what the ended *turn* left unsealed, if it left anything."""
    if sealer is None or not to_encrypt(turn):
        return None
    return SealedRows(data=SealedData(encrypted=await sealed(turn, sealer)))


def told(turn: TurnEnd) -> TurnEnd:
    """Return *turn* without what was between router and client alone."""
    if "to_encrypt" not in turn.data:
        return turn
    data = {name: value for name, value in turn.data.items() if name != "to_encrypt"}
    return replace(turn, data=data, allowed_continuations=())


def _entry(result: ToolResultEntry) -> str:
    members: Mapping[str, Any] = {
        "content": result.content,
        "is_error": result.is_error,
        "paths": None if result.paths is None else list(result.paths),
        "restricted": result.restricted,
    }
    return json.dumps(members, ensure_ascii=False)
