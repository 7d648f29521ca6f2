"""What is asked of the database about leases: who serves a session, and for how long."""

from collections.abc import Sequence
from typing import Any, Final

LOCKS: Final = "SELECT VALUE id FROM session_run_state WHERE active != NONE"

# The server's clock alone counts: those of the routers may differ.
_FREE: Final = "active = NONE OR active.lease.router = $router OR active.lease.until <= time::now()"
_UNTIL: Final = "time::now() + <duration>$length"
TAKE: Final = f"""
IF (SELECT VALUE id FROM $owner) {{ INSERT IGNORE INTO session_run_state $fresh RETURN NONE }};
UPDATE $state SET
    active = {{
        started_at: time::now(),
        lease: {{ router: $router, number: (lease ?? 0) + 1, until: {_UNTIL} }}
    }},
    lease = (lease ?? 0) + 1
    WHERE {_FREE} RETURN VALUE lease
"""
RENEW: Final = f"""
UPDATE $state SET active.lease.until = {_UNTIL}
    WHERE lease = $number AND active != NONE RETURN NONE;
SELECT VALUE lease FROM $state
"""
RELEASE: Final = """
UPDATE $state SET active = NONE, lease = lease + 1
    WHERE lease = $number AND active != NONE RETURN VALUE lease
"""
RELEASE_ALL: Final = f"""
UPDATE session_run_state SET active = NONE, lease = lease + 1
    WHERE active != NONE AND ({_FREE}) RETURN VALUE id
"""


def length_text(seconds: float) -> str:
    """Return *seconds* as the database reads a length of time."""
    # Cast in the query: the functions that make durations have other names in 3.x.
    return f"{round(seconds * 1000)}ms"


def last_list(answers: Sequence[Any]) -> list[Any]:
    """Return the last rows that a transaction answered: some servers answer its frame as well."""
    found: list[list[Any]] = [each for each in answers if isinstance(each, list)]
    return found[-1]
