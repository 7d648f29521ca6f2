"""A turn's record as storage may hold it; much text is searched in a thread."""

from typing import Final

import trio

from actors.parts import Parts
from smista.core.masking import masked_record
from smista.core.records import Session, TurnRecord
from smista.core.secret import Plain

HEAVY: Final = 65_536
"""Characters above which a search would hold other sessions up: it takes milliseconds."""


async def stored_form(record: TurnRecord, session: Session, parts: Parts) -> TurnRecord:
    """Return *record* without the keys in its calls; that of an encrypted session is sealed."""
    if session.encrypted:
        return record
    if _weight(record) < HEAVY:
        return masked_record(record)
    return await trio.to_thread.run_sync(masked_record, record, limiter=parts.deciders)


def _weight(record: TurnRecord) -> int:
    calls = record.tool_calls
    contents = [part for call in calls for part in (call.arguments, call.result, call.error)]
    contents += [diff.body for diff in record.diffs]
    return sum(len(content.text) for content in contents if isinstance(content, Plain))
