"""Ids as they stand in paths."""

import re
from typing import Final

from smista.core.errors import InvalidSessionId

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.IGNORECASE)


def session_uuid(text: str | None) -> str:
    """Return the session id *text* in lower case; raises InvalidSessionId for anything else."""
    if text is None or not _UUID.match(text):
        raise InvalidSessionId("the session id in the path is not a UUID")
    return text.lower()
