"""Events → frames of Server-Sent Events (*Streaming*): `data: {json}`, LF, one empty line."""

from collections.abc import Iterable, Sequence
from typing import Final

from smista.core.events import Event, TurnEnd
from smista.front.mask import masked, without_keys
from smista.front.replies import Header, dump

KEEP_ALIVE: Final = b": keep-alive\n\n"
STREAM_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),
)


def frames(
    events: Iterable[Event], keys: Sequence[str] = (), hidden: Sequence[bytes] = ()
) -> bytes:
    """Return *events* as one piece of the stream, free of *keys* (*hidden* as JSON bytes)."""
    return b"".join(b"data: %b\n\n" % _json(event, keys, hidden) for event in events)


def _json(event: Event, keys: Sequence[str], hidden: Sequence[bytes]) -> bytes:
    body = event.body()
    if isinstance(event, TurnEnd) and event.error is not None:
        body = masked(body, keys)
    return without_keys(dump(body), hidden)
