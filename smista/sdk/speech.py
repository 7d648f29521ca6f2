"""One message to a router and what the router says to it, read by a task of its own.

A connection that breaks is taken up once more, under the same Idempotency-Key; what was said
before is not said twice.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import trio

from smista.core.events import Event, ReasoningDeltaEvent, Status, TextDeltaEvent, TurnEnd
from smista.core.messages import Continuation
from smista.core.request import ExecuteRequest
from smista.sdk.client import Client, EventStream
from smista.sdk.errors import ApiError, BadAnswer, SdkError, Unreachable, is_object
from smista.sdk.folds import closing
from smista.sdk.sealing import Sealer

BACK_SECONDS: Final = 10.0
"""How long a router that is lost in the middle of a run may take to come back."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
_REFUSALS: Final = frozenset(
    {
        "invalid_request",
        "invalid_json",
        "invalid_token",
        "missing_credentials",
        "not_found",
        "rate_limited",
        "request_too_large",
        "router_busy",
        "session_not_found",
        "shutting_down",
        "storage_error",
        "token_expired",
        "token_revoked",
    }
)
"""What a router answers instead of beginning a turn."""

Message = ExecuteRequest | Continuation


@dataclass(frozen=True, slots=True)
class Line:
    """The way to one session of one router. *say* tells the person what happens on it.

    *sealer* holds the key of an encrypted session.
    """

    client: Client
    session_id: str
    say: Callable[[str], None]
    stream: bool = True
    sealer: Sealer | None = None

    async def ask(self, message: Continuation) -> TurnEnd:
        """Send *message* and return its outcome, without a stream and without a second try."""
        return await self.client.continue_run(self.session_id, message)

    async def seal(self, ending: TurnEnd) -> None:
        """Seal what *ending* lists, and what the router lists then, until nothing is left."""
        while (message := await closing(ending, self.sealer)) is not None:
            ending = await self.ask(message)


class Speech:
    """*message* on its way. *begun* is set once the router took or refused it.

    Read its events until the TurnEnd; then *fault* is None, or nothing more will come because
    of it.
    """

    def __init__(self, message: Message, line: Line, *, stream: bool) -> None:
        self.message = message
        self.begun = trio.Event()
        self.fault: SdkError | None = None
        self.replaced = False
        self.since = trio.current_time()
        self._line = line
        self._stream = stream
        self._key = str(uuid4())
        self._heard = Heard()
        self._put, self._events = trio.open_memory_channel[Event](0)

    def __aiter__(self) -> "Speech":
        return self

    async def __anext__(self) -> Event:
        return await anext(self._events)

    async def outcome(self) -> TurnEnd | None:
        """Hear it to its end; None if that did not come."""
        ended = None
        async for event in self:
            ended = event if isinstance(event, TurnEnd) else ended
        return ended

    async def run(self) -> None:
        """Send the message and hand over its events; a fault of the SDK is kept, not raised."""
        with self._put:
            try:
                await self._ask()
            except SdkError as fault:
                self.fault = fault
            finally:
                self.begun.set()

    async def _ask(self) -> None:
        try:
            return await self._ask_once()
        except Unreachable as lost:
            if self.replaced or not await self._router_is_back(lost):
                raise
        self._heard.begin_again()
        try:
            await self._ask_once()
        except ApiError as error:
            if error.code != "run_in_flight":
                raise
            reason = "the turn goes on there, and cannot be listened to again"
            raise Unreachable(self._line.client.url, reason) from error

    async def _ask_once(self) -> None:
        if not self._stream:
            await self._hand_over(await self._buffered())
            return
        async with self._open() as events:
            self.begun.set()
            async for event in events:
                await self._hand_over(event)
                if isinstance(event, TurnEnd):
                    return
        raise BadAnswer("the stream had no turn_end")

    def _open(self) -> AbstractAsyncContextManager[EventStream]:
        client, session_id = self._line.client, self._line.session_id
        if isinstance(self.message, ExecuteRequest):
            return client.stream_execute(session_id, self.message, key=self._key)
        return client.stream_continue(session_id, self.message, key=self._key)

    async def _buffered(self) -> TurnEnd:
        client, session_id = self._line.client, self._line.session_id
        if isinstance(self.message, ExecuteRequest):
            return await client.execute(session_id, self.message, key=self._key)
        return await client.continue_run(session_id, self.message, key=self._key)

    async def _hand_over(self, event: Event) -> None:
        fresh = self._heard.fresh(event)
        if fresh is not None:
            await self._put.send(fresh)

    async def _router_is_back(self, lost: Unreachable) -> bool:
        """Wait for the router; say so if it is not there at once."""
        pause = _FIRST_PAUSE
        with trio.move_on_after(BACK_SECONDS):
            while not await self._answers():
                if pause == _FIRST_PAUSE:
                    self._line.say(f"the router is gone ({lost.reason}); waiting for it")
                await trio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            self._line.say(f"the connection was lost ({lost.reason}); asking again")
            return True
        return False

    async def _answers(self) -> bool:
        try:
            await self._line.client.find_again()
        except Unreachable:
            return False
        return True


class Heard:
    """What a turn has said so far, so that a turn that is told again is not heard twice."""

    def __init__(self) -> None:
        self._parts: dict[type[Event], list[str]] = {}
        self._marks: list[Event] = []
        self._known_marks: list[Event] = []
        self._known: dict[type[Event], str] = {}
        self._repeated: dict[type[Event], str] = {}

    def begin_again(self) -> None:
        """Say that the turn is told from its beginning, as it was or anew."""
        self._known = {kind: "".join(parts) for kind, parts in self._parts.items()}
        self._repeated = dict.fromkeys(self._known, "")
        self._known_marks = list(self._marks)

    def fresh(self, event: Event) -> Event | None:
        """Return *event*, or that part of it which was not heard yet."""
        match event:
            case TextDeltaEvent(delta):
                rest = self._rest(TextDeltaEvent, delta)
                return TextDeltaEvent(rest) if rest else None
            case ReasoningDeltaEvent(delta):
                rest = self._rest(ReasoningDeltaEvent, delta)
                return ReasoningDeltaEvent(rest) if rest else None
            case _:
                return self._mark(event)

    def _rest(self, kind: type[Event], delta: str) -> str:
        known = self._known.get(kind)
        if known is not None:
            delta = self._catch_up(kind, known, delta)
        self._parts.setdefault(kind, []).append(delta)
        return delta

    def _catch_up(self, kind: type[Event], known: str, delta: str) -> str:
        again = self._repeated[kind] + delta
        self._repeated[kind] = again
        if known.startswith(again):
            return ""
        # Beyond what was heard; or another answer, which is then told whole.
        del self._known[kind]
        if again.startswith(known):
            return again[len(known) :]
        self._parts[kind] = []
        return f"\n{again}"

    def _mark(self, event: Event) -> Event | None:
        if event in self._known_marks:
            self._known_marks.remove(event)
            return None
        self._marks.append(event)
        return event


def needs_live_run(fault: SdkError | None) -> bool:
    """Say if *fault* is a router's answer to input for a run that is over."""
    if not isinstance(fault, ApiError) or "fields" in fault.details:
        return False
    return fault.code == "invalid_request"


def is_taken_over(fault: SdkError) -> bool:
    """Say if envelopes were refused because another client's message goes on with their rows."""
    if not isinstance(fault, ApiError):
        return False
    faulty = fault.details.keys() & {"missing", "unknown", "malformed", "fields"}
    return fault.code == "run_in_flight" or (fault.code == "invalid_request" and not faulty)


def is_outcome(fault: SdkError) -> bool:
    """Say if *fault* is how the turn of some input ended, not why there was none."""
    return isinstance(fault, ApiError) and fault.code not in _REFUSALS


def error_code(turn: TurnEnd) -> str | None:
    """Return the code of the error that ended *turn*."""
    error = turn.data.get("error")
    return str(error.get("code")) if turn.status is Status.ERROR and is_object(error) else None
