"""Deterministic row ids: the same unit of a turn always gets the same ids.

An id has the shape of a UUIDv7: 48 bits milliseconds of the run, then (12 bits) the turn,
(8 bits) the attempt, (14 bits) the ordinal and (40 bits) a digest over all of it and the table.
So ids sort by time, a re-sent unit overwrites itself, and a new attempt never does.
"""

from hashlib import sha256


def row_id(run_id: str, turn: int, attempt: int, ordinal: int, table: str) -> str:
    """Return the id (UUID text) of row *ordinal* that *table* gets in this attempt of a turn."""
    name = f"{run_id}/{turn}/{attempt}/{ordinal}/{table}".encode()
    digest = int.from_bytes(sha256(name).digest()[:5], "big")
    tail = (attempt & 0xFF) << 54 | (ordinal & 0x3FFF) << 40 | digest
    return _shape(run_ms(run_id), turn & 0xFFF, tail)


def new_uuid7(ms: int, entropy: int) -> str:
    """Return a UUIDv7 from *ms* since the epoch and 74 random bits."""
    return _shape(ms, entropy >> 62 & 0xFFF, entropy & (1 << 62) - 1)


def derived(first: str, offset: int) -> str:
    """Return the id of item *offset* of a packed row whose first item is *first*."""
    if offset == 0:
        return first
    digest = sha256(f"{first}/{offset}".encode()).digest()
    tail = int.from_bytes(digest[:8], "big") & (1 << 62) - 1
    number = int(first.replace("-", ""), 16)
    return _shape(number >> 80, (number >> 64) & 0xFFF, tail)


def run_ms(run_id: str) -> int:
    """Return the milliseconds since the epoch that *run_id* (a UUIDv7) was made at."""
    return int(run_id.replace("-", "")[:12], 16)


def _shape(ms: int, high: int, tail: int) -> str:
    number = ms << 80 | 7 << 76 | high << 64 | 2 << 62 | tail
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
