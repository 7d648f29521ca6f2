"""The run as a table: which message a session takes when, and what it then does.

A state is a *lock* (is a turn being served, and what waits for its end) and a *pause* (the durable
checkpoint, `phase.py`). While the lock is held the pause does not matter. A pair that is missing
is refused: `run_in_flight` while a turn is served, else `invalid_request`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from smista.core import phase as phases
from smista.core.errors import InvalidRequest, RunInFlight, SmistaError


class Pause(StrEnum):
    """The checkpoint's kind."""

    IDLE = "Idle"
    TOOL = "AwaitingTool"
    APPROVAL = "AwaitingApproval"
    DECRYPT = "AwaitingDecrypt"
    ENCRYPT = "AwaitingEncrypt"


class Lock(StrEnum):
    """Who holds the run.

    TURN: a turn is served. The others wait for a cancelled turn to settle: SUPERSEDED with new
    input to go on with, STOPPED for a break, REDIRECTED with input that a break then stopped,
    ABANDONED because its reader is gone or the router leaves.
    """

    FREE = "free"
    TURN = "turn"
    SUPERSEDED = "superseded"
    STOPPED = "stopped"
    REDIRECTED = "redirected"
    ABANDONED = "abandoned"


class Told(StrEnum):
    """What a session can be told: the client's messages, then the house's own."""

    EXECUTE = "execute"
    TOOL_RESULTS = "tool_results"
    APPROVAL_DECISIONS = "approval_decisions"
    DECRYPTED = "decrypted"
    SEALED = "sealed"
    INJECT = "inject"
    BREAK = "break"
    LEAVE = "leave"  # delete or archive: break, then do it
    READER_LEFT = "reader_left"
    ABANDON = "abandon"
    ENDED = "ended"


class Act(StrEnum):
    """What the actor performs, in this order, when it takes a step."""

    START = "start a turn with the message"
    ANSWER_IDLE = "answer idle at once"
    KEEP = "let the message wait for the turn's end"
    CANCEL = "cancel the turn"
    GRACE = "give the reader time to come back"
    GO_ON = "start a turn with the input that waits"
    RESUME = "take the waiting messages anew, in order; a break that stopped a turn is answered"


@dataclass(frozen=True, slots=True)
class Step:
    lock: Lock
    acts: tuple[Act, ...] = ()


_START = Step(Lock.TURN, (Act.START,))
_LIVE: Final = (Pause.TOOL, Pause.APPROVAL, Pause.DECRYPT, Pause.ENCRYPT)

WAITING: Final[Mapping[tuple[Pause, Told], Step]] = {
    # With a free lock. A new task abandons whatever pause there was.
    **{(pause, Told.EXECUTE): _START for pause in Pause},
    (Pause.TOOL, Told.TOOL_RESULTS): _START,
    (Pause.APPROVAL, Told.APPROVAL_DECISIONS): _START,
    (Pause.DECRYPT, Told.DECRYPTED): _START,
    (Pause.ENCRYPT, Told.SEALED): _START,
    **{(pause, Told.INJECT): _START for pause in _LIVE},
    **{(pause, Told.BREAK): _START for pause in _LIVE},
    (Pause.IDLE, Told.BREAK): Step(Lock.FREE, (Act.ANSWER_IDLE,)),
    **{(pause, Told.LEAVE): _START for pause in Pause},
    # Late words about a turn that has ended by itself.
    **{(pause, Told.READER_LEFT): Step(Lock.FREE) for pause in Pause},
    **{(pause, Told.ABANDON): Step(Lock.FREE) for pause in Pause},
}

SERVING: Final[Mapping[tuple[Lock, Told], Step]] = {
    (Lock.TURN, Told.ENDED): Step(Lock.FREE),
    (Lock.TURN, Told.INJECT): Step(Lock.SUPERSEDED, (Act.KEEP, Act.CANCEL)),
    (Lock.TURN, Told.BREAK): Step(Lock.STOPPED, (Act.KEEP, Act.CANCEL)),
    (Lock.TURN, Told.LEAVE): Step(Lock.STOPPED, (Act.KEEP, Act.CANCEL)),
    (Lock.TURN, Told.READER_LEFT): Step(Lock.TURN, (Act.GRACE,)),
    (Lock.TURN, Told.ABANDON): Step(Lock.ABANDONED, (Act.CANCEL,)),
    (Lock.SUPERSEDED, Told.INJECT): Step(Lock.SUPERSEDED, (Act.KEEP,)),
    (Lock.SUPERSEDED, Told.BREAK): Step(Lock.REDIRECTED, (Act.KEEP,)),
    (Lock.SUPERSEDED, Told.LEAVE): Step(Lock.REDIRECTED, (Act.KEEP,)),
    (Lock.SUPERSEDED, Told.ENDED): Step(Lock.TURN, (Act.GO_ON,)),
    (Lock.STOPPED, Told.BREAK): Step(Lock.STOPPED, (Act.KEEP,)),
    (Lock.STOPPED, Told.LEAVE): Step(Lock.STOPPED, (Act.KEEP,)),
    (Lock.STOPPED, Told.ENDED): Step(Lock.FREE, (Act.RESUME,)),
    (Lock.REDIRECTED, Told.BREAK): Step(Lock.REDIRECTED, (Act.KEEP,)),
    (Lock.REDIRECTED, Told.LEAVE): Step(Lock.REDIRECTED, (Act.KEEP,)),
    # The input was accepted before the break, so it is kept: its turn begins and ends at once.
    (Lock.REDIRECTED, Told.ENDED): Step(Lock.STOPPED, (Act.GO_ON, Act.CANCEL)),
    (Lock.ABANDONED, Told.INJECT): Step(Lock.SUPERSEDED, (Act.KEEP,)),
    (Lock.ABANDONED, Told.BREAK): Step(Lock.STOPPED, (Act.KEEP,)),
    (Lock.ABANDONED, Told.LEAVE): Step(Lock.STOPPED, (Act.KEEP,)),
    (Lock.ABANDONED, Told.ENDED): Step(Lock.FREE),
    **{
        (lock, told): Step(lock)
        for lock in (Lock.SUPERSEDED, Lock.STOPPED, Lock.REDIRECTED, Lock.ABANDONED)
        for told in (Told.READER_LEFT, Told.ABANDON)
    },
}

_ALLOWED: Final[Mapping[Pause, tuple[str, ...]]] = {
    Pause.IDLE: (),
    Pause.TOOL: ("tool_results", "inject", "break"),
    Pause.APPROVAL: ("approval_decisions", "break"),
    Pause.DECRYPT: ("decrypted", "break"),
    Pause.ENCRYPT: ("sealed", "break"),
}


def pause_of(phase: phases.Phase) -> Pause:
    """Return the kind of *phase*."""
    return Pause(phase.name)


def allowed_continuations(pause: Pause) -> tuple[str, ...]:
    """Return what the client is told it may send next (*Responses*)."""
    return _ALLOWED[pause]


def advance(lock: Lock, pause: Pause, told: Told) -> Step | None:
    """Return the step for *told*, or None if this state refuses it."""
    if lock is Lock.FREE:
        return WAITING.get((pause, told))
    return SERVING.get((lock, told))


def refusal(lock: Lock, pause: Pause, told: Told) -> SmistaError:
    """Return the error for a message that `advance` refused."""
    if lock is Lock.STOPPED and told is Told.INJECT:
        return InvalidRequest("the run was stopped; send a new execute")
    if lock is not Lock.FREE:
        return RunInFlight(
            "a turn of this session is being served; wait for it, or send break or inject"
        )
    if pause is Pause.IDLE:
        return InvalidRequest(f"{told.value} needs a live run and this session has none")
    expected = ", ".join(allowed_continuations(pause))
    return InvalidRequest(
        f"the run waits for something else than {told.value}; send one of: {expected}",
        expected=list(allowed_continuations(pause)),
    )
