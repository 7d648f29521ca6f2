"""The driver of a whole run: execute, show, answer each pause, until the run is over.

It knows the protocol and nothing of the user's machine; that is its host's part. Another task
may redirect or stop the run while it goes on.
"""

from collections import deque
from contextlib import suppress
from typing import Final, cast

import trio

from smista.core.events import Status, TurnEnd
from smista.core.messages import (
    Break,
    Continuation,
    Inject,
    InjectData,
    InjectMessage,
    SealedRows,
)
from smista.core.policy import Intent
from smista.core.request import ExecuteRequest
from smista.sdk.answers import SessionDetail
from smista.sdk.client import Client
from smista.sdk.errors import ApiError, SdkError, Unproven, Unreachable, is_object
from smista.sdk.folds import check_key, closing, told
from smista.sdk.frames import turn_of
from smista.sdk.pauses import Host, answer_to
from smista.sdk.sealing import Sealer
from smista.sdk.speech import (
    Line,
    Message,
    Speech,
    error_code,
    is_outcome,
    is_taken_over,
    needs_live_run,
)

BREAK_SECONDS: Final = 2.0
"""How long a leaving client tries to tell the router that the run is over."""
_ADMISSION: Final = 0.25
"""Seconds in which a router has surely taken a message that it does not refuse."""
_STOP_SECONDS: Final = 1.0
_STOP_TRIES: Final = 3
_TIMED_OUT: Final = 504
_NOTHING: Final = TurnEnd(Status.IDLE, {})
_OVER: Final = frozenset({Status.COMPLETED, Status.IDLE, Status.ERROR, Status.AWAITING_ENCRYPT})
"""After these nothing is asked of the host any more."""


class Steering:
    """Redirects or stops the run that it is given to, from any other task.

    It may be given to one run after the other. Between runs nothing is taken.
    """

    def __init__(self) -> None:
        self._run: _Run | None = None

    @property
    def live(self) -> bool:
        """Whether there is a run that can be steered."""
        return self._run is not None and not self._run.closing

    async def inject(self, text: str, *, command: Intent | None = None) -> bool:
        """Let the run go on with *text*; return whether it did.

        False: the run had ended, nothing is lost, and *text* can be sent as a new prompt. What
        ran at the host is cancelled first. Raises SdkError if the router cannot say or refuses
        the text itself; the run then goes its own way.
        """
        run = self._run
        if run is None or run.closing:
            return False
        said = InjectMessage(text=text, command=command)
        return await run.redirect(Inject(data=InjectData(messages=(said,))))

    async def stop(self) -> None:
        """Break the run off at once; returns when the router has been told, or the run is over."""
        if self._run is not None and not self._run.closing:
            await self._run.stop()

    def attach(self, run: "_Run") -> None:
        """Steer *run* from now on."""
        if self._run is not None:
            raise RuntimeError("this steering belongs to a run that is not over")
        self._run = run

    def detach(self) -> None:
        """Say that the run is over."""
        self._run = None


async def drive(
    client: Client,
    session_id: str,
    request: ExecuteRequest,
    host: Host,
    *,
    stream: bool = True,
    steering: Steering | None = None,
    seal: Sealer | None = None,
) -> TurnEnd:
    """Run *request* to its end and return the last turn's outcome.

    If it is cancelled, or the host fails, the run is broken off before this returns. If the
    router is lost and does not come back in time, the run stays at its last checkpoint. A run
    that was stopped ends `idle`. *seal* is for an encrypted session, and only for one: what the
    run leaves is sealed and stored when this returns. Raises SdkError.
    """
    line = Line(client, session_id, host.say, stream=stream, sealer=seal)
    return await _drive(_Run(line, host), request, steering)


def pending_pause(detail: SessionDetail) -> TurnEnd | None:
    """Return the pause that a fetched session's run waits in; None if there is none to answer.

    What an encrypted run said last is in its router's memory alone until it is sealed. If that is
    lost, only a new prompt goes on.
    """
    run = detail.metadata.get("run")
    pause = turn_of(run) if is_object(run) else None
    return None if pause is None or pause.data.get("lost") else pause


async def resume(
    client: Client,
    session_id: str,
    pause: TurnEnd,
    host: Host,
    *,
    stream: bool = True,
    steering: Steering | None = None,
    seal: Sealer | None = None,
) -> TurnEnd:
    """Answer *pause*, as `pending_pause` found it in a fetched session, and drive the run on."""
    line = Line(client, session_id, host.say, stream=stream, sealer=seal)
    return await _drive(_Run(line, host), pause, steering)


async def _drive(
    run: "_Run", start: ExecuteRequest | TurnEnd, steering: Steering | None
) -> TurnEnd:
    over = False
    try:
        turn = await _steered(run, start, steering or Steering())
        if turn.status is Status.ERROR:
            await run.seal_the_rest()
        over = True
        return turn
    except (Unreachable, Unproven):
        over = True
        raise
    except ApiError as fault:
        if is_outcome(fault):
            await run.seal_the_rest()
            over = True
        raise
    finally:
        if not over and not run.refused:
            await run.break_off()


async def _steered(run: "_Run", start: ExecuteRequest | TurnEnd, steering: Steering) -> TurnEnd:
    try:
        async with trio.open_nursery() as nursery:
            run.nursery = nursery
            steering.attach(run)
            try:
                turn = await run.go(start)
            finally:
                run.closing = True
                steering.detach()
            nursery.cancel_scope.cancel(reason="the run is over")
        return turn
    except BaseExceptionGroup as group:
        # Whoever drives a run knows nothing of the tasks in here.
        fault = _only(group)
        if fault is None:
            raise
        raise fault from fault.__cause__


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    first = group.exceptions[0]
    if len(group.exceptions) > 1:
        return None
    if isinstance(first, BaseExceptionGroup):
        return _only(cast("BaseExceptionGroup[BaseException]", first))
    return first


class _Redirection:
    """New input, and what became of it once *settled* is set."""

    def __init__(self, message: Inject) -> None:
        self.message = message
        self.settled = trio.Event()
        self.speech: Speech | None = None
        self.taken = False
        self.fault: SdkError | None = None


class _Run:
    """One run on its way. Only `go` decides what comes next.

    *_speeches* were taken by the router and are listened to in their order. *_undecided* is
    input of which it is not known yet whether the router takes it; until then nothing else is
    sent. *refused*: the router never had this run. *closing*: nothing can be told to it any more.
    """

    nursery: trio.Nursery

    def __init__(self, line: Line, host: Host) -> None:
        self._line = line
        self._host = host
        self._speeches: deque[Speech] = deque()
        self._latest: Speech | None = None
        self._undecided: list[_Redirection] = []
        self._order = trio.Lock()
        self._desk = trio.CancelScope()
        self._ear = trio.CancelScope()
        self._unwanted: SdkError | None = None
        self._stopping = False
        self._stopped: TurnEnd | SdkError | None = None
        self._told_to_stop = trio.Event()
        self._unsealed: TurnEnd | None = None
        self._silent = trio.Event()
        self.refused = False
        self.closing = False

    # --- the way through ---------------------------------------------------------------------

    async def go(self, start: ExecuteRequest | TurnEnd) -> TurnEnd:
        """Drive the run from *start* to its end."""
        turn = start if isinstance(start, TurnEnd) else _NOTHING
        if not isinstance(start, TurnEnd):
            self._say(start)
            turn = await self._hear(turn)
        while not self._stopping and turn.status not in _OVER:
            turn = await self._go_on(turn)
        self.closing = True
        if self._stopping:
            turn = await self._settled(turn)
        await self._close(self._stopped if isinstance(self._stopped, TurnEnd) else turn)
        if turn.status is Status.AWAITING_ENCRYPT:
            turn = TurnEnd(Status.IDLE, turn.data)
            await self._host.show(told(turn))
        return told(turn)

    async def _go_on(self, pause: TurnEnd) -> TurnEnd:
        """Answer *pause*, or leave that to newer input; return what came of it."""
        answer = await self._at_the_desk(pause)
        if answer is not None:
            self._say(answer)
        if self._speeches or self._stopping:
            return await self._hear(pause)
        # The desk was cleared for input, and the router did not take it.
        if self._unwanted is not None:
            raise self._unwanted
        return _NOTHING

    async def _at_the_desk(self, pause: TurnEnd) -> Continuation | None:
        """Return the answer to *pause*; None if it was not waited for, or came too late."""
        answer: Continuation | None = None
        with trio.CancelScope() as self._desk:
            answer = await answer_to(pause, self._host, self._line.sealer)
        while self._undecided:
            await self._undecided[0].settled.wait()
        return None if self._speeches or self._stopping else answer

    def _say(self, message: Message) -> None:
        speech = Speech(message, self._line, stream=self._line.stream)
        self.nursery.start_soon(speech.run)
        self._take(speech)

    def _take(self, speech: Speech) -> None:
        if self._latest is not None:
            self._latest.replaced = True
        self._latest = speech
        self._speeches.append(speech)

    async def _hear(self, turn: TurnEnd) -> TurnEnd:
        """Listen to all that was taken; return how the last turn ended, or *turn*."""
        while self._speeches or self._undecided:
            if self._speeches:
                turn = await self._listen(self._speeches.popleft())
            else:
                await self._undecided[0].settled.wait()
        return turn

    async def _listen(self, speech: Speech) -> TurnEnd:
        with trio.CancelScope() as self._ear:
            async for event in speech:
                if isinstance(event, TurnEnd) and self._makes_way(error_code(event)):
                    return event
                await self._host.show(event)
                if isinstance(event, TurnEnd):
                    return event
        return self._without_end(speech)

    def _makes_way(self, code: str | None) -> bool:
        """Say if a turn that ended with *code* was replaced by input of ours."""
        if code != "superseded":
            return False
        if self._undecided and (speech := self._undecided[0].speech) is not None:
            speech.begun.set()  # whose first word may be long in coming
        return bool(self._speeches or self._undecided)

    def _without_end(self, speech: Speech) -> TurnEnd:
        fault = speech.fault
        if fault is None or self._ear.cancelled_caught:
            return _NOTHING
        lost = isinstance(fault, Unreachable) and bool(self._speeches)
        if lost or (isinstance(fault, ApiError) and self._makes_way(fault.code)):
            return _NOTHING
        first = isinstance(speech.message, ExecuteRequest)
        self.refused = first and isinstance(fault, ApiError) and fault.status != _TIMED_OUT
        raise fault

    # --- new input ---------------------------------------------------------------------------

    async def redirect(self, message: Inject) -> bool:
        """Send *message* in the place of whatever goes on; return whether the router took it."""
        wanted = _Redirection(message)
        self._undecided.append(wanted)
        self.nursery.start_soon(self._redirect, wanted)
        await wanted.settled.wait()
        if wanted.fault is not None:
            raise wanted.fault
        return wanted.taken

    async def _redirect(self, wanted: _Redirection) -> None:
        try:
            async with self._order:  # one after the other, in the order they were typed
                if not self._stopping:
                    await self._try(wanted)
        finally:
            self._undecided.remove(wanted)
            wanted.settled.set()

    async def _try(self, wanted: _Redirection) -> None:
        self._desk.cancel(reason="newer input")
        self._unwanted = None
        before = self._latest
        if before is not None:
            with trio.move_on_at(before.since + _ADMISSION):
                await before.begun.wait()
        speech = await self._send(wanted)
        if needs_live_run(speech.fault) and before is not None and not before.begun.is_set():
            # It came before the message whose turn it was to replace.
            await before.begun.wait()
            speech = await self._send(wanted)
        if speech.fault is None or is_outcome(speech.fault):
            wanted.taken = True
            self._take(speech)
        elif not needs_live_run(speech.fault):
            wanted.fault = self._unwanted = speech.fault

    async def _send(self, wanted: _Redirection) -> Speech:
        speech = wanted.speech = Speech(wanted.message, self._line, stream=True)
        self.nursery.start_soon(speech.run)
        await speech.begun.wait()
        return speech

    # --- the end -----------------------------------------------------------------------------

    async def stop(self) -> None:
        """Break the run off at once; returns when the router has answered."""
        if not self._stopping:
            self._stopping = True
            self._desk.cancel(reason="stopped")
            self.nursery.start_soon(self._break)
        await self._told_to_stop.wait()

    async def _break(self) -> None:
        try:
            for _ in range(_STOP_TRIES):
                self._stopped = await self._line.ask(Break())
                self._told_to_stop.set()
                with trio.move_on_after(_STOP_SECONDS):
                    await self._silent.wait()
                    return
        except SdkError as fault:
            self._stopped = fault
        finally:
            self._told_to_stop.set()
        self._ear.cancel(reason="the router does not end the turn")

    async def _settled(self, turn: TurnEnd) -> TurnEnd:
        """Return how a run ended that was told to stop; it may have ended by itself before."""
        self._silent.set()
        await self._told_to_stop.wait()
        stopped = self._stopped
        if turn is not _NOTHING and turn.status in _OVER and error_code(turn) != "superseded":
            return turn
        if isinstance(stopped, SdkError):
            raise stopped
        return stopped or _NOTHING

    async def _close(self, ending: TurnEnd) -> None:
        """Seal what *ending* left, in as many messages as it takes; stored when this returns."""
        check_key(ending, self._line.sealer)
        self._unsealed = ending
        while (message := await closing(self._unsealed, self._line.sealer)) is not None:
            self._unsealed = await self._store(message)
        self._unsealed = None

    async def _store(self, message: SealedRows) -> TurnEnd:
        """Send *message* and return its outcome, which may ask for more."""
        speech = Speech(message, self._line, stream=False)
        self.nursery.start_soon(speech.run)
        outcome = await speech.outcome()
        if speech.fault is not None and not is_taken_over(speech.fault):
            raise speech.fault
        return outcome or _NOTHING

    async def seal_the_rest(self) -> None:
        """Try to have what a failed run left sealed; else it rides the session's next response."""
        if self._line.sealer is not None:
            with trio.move_on_after(BREAK_SECONDS), suppress(SdkError):
                await self._line.seal(await self._line.ask(Break()))

    async def break_off(self) -> None:
        """Try to tell the router, whatever else is going on, that the run is over."""
        with trio.move_on_after(BREAK_SECONDS, shield=True), suppress(SdkError):
            await self._line.seal(self._unsealed or await self._line.ask(Break()))
