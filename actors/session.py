"""The session actor: owns the run lock and the inbox of one session.

One task reads the inbox and is the only one that changes lock and state; it goes on reading while
a turn is being served, so a break lands at once. What to do is said by the table in
`core/lifecycle.py`; this module performs it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import assert_never

import trio

from actors.envelope import Abandon, Envelope, Forget, House, Leave, ReaderLeft, TurnEnded
from actors.lease import Lease
from actors.memories import without_fact
from actors.parts import Parts
from actors.turn import Turn
from smista.core.answers import wrong_answer
from smista.core.errors import (
    InternalError,
    InvalidRequest,
    RouterBusy,
    RunInFlight,
    SessionNotFound,
    SmistaError,
    StorageUnavailable,
)
from smista.core.events import Status, TurnEnd, failed
from smista.core.identity import Identity
from smista.core.lifecycle import Act, Lock, Pause, Told, advance, pause_of, refusal
from smista.core.opening import lost, rolled_back
from smista.core.outcomes import tell_again
from smista.core.records import AnsweredRecord, SessionState
from smista.core.session_views import sealing_of, trace_id, with_rows

INBOX = 256
RESERVED = 16  # places that only the house's own words may take
ANSWERED = 1_000  # messages whose outcome is remembered for a session
KEPT = timedelta(hours=24)
_KEY_REUSED = InvalidRequest("this Idempotency-Key was sent with another body; choose a new one")


class SessionActor:
    """Serves one session until it has nothing to do for a while, leaves, or fails.

    *state* is what storage holds; after each turn it is replaced, never changed. *gone* is
    called, in the same step, when the actor takes no more messages.
    """

    def __init__(
        self, state: SessionState, parts: Parts, gone: Callable[["SessionActor"], None]
    ) -> None:
        self.state = state
        self._parts = parts
        self._gone = gone
        self._send, self._inbox = trio.open_memory_channel[Envelope | House](INBOX)
        self._lock = Lock.FREE
        self._turn: Turn | None = None
        self._kept: deque[Envelope | Leave] = deque()
        self._in_hand: Envelope | House | None = None
        self._answered = {(each.route, each.key): each for each in state.answered}
        self._serial = 0
        self._late = ""  # a fact that was deleted between a turn's commit and its end
        self._over = False
        self._last_word: SmistaError = StorageUnavailable("the session was closed; send it again")
        self._freed = trio.lowlevel.ParkingLot()
        # Where no other router can use the store, nothing of a lease is paid for.
        self._lease = Lease(state.session.id, parts) if parts.journal.shared else None

    @property
    def lock(self) -> Lock:
        return self._lock

    @property
    def newest(self) -> SessionState:
        """What storage holds, also of a turn that is written and about to end."""
        left = None if self._turn is None else self._turn.left
        return self.state if left is None else left

    @property
    def current(self) -> bool:
        """Whether *state* is what storage holds now; a lease may be lost without our knowing."""
        return self._lease is None

    async def wait_free(self) -> None:
        """Return once no turn of the session is served."""
        while self._lock is not Lock.FREE and not self._over:
            await self._freed.park()

    def tell_nowait(self, said: Envelope | Leave | Forget) -> None:
        """Put *said* into the inbox; raises RouterBusy when too much waits there."""
        if self._send.statistics().current_buffer_used >= INBOX - RESERVED:
            raise RouterBusy("this session has too many messages waiting; try again")
        self._send.send_nowait(said)

    def whisper(self, said: ReaderLeft | Abandon) -> None:
        """Tell what is only worth knowing while the actor lives."""
        try:
            self._send.send_nowait(said)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            return  # a turn whose actor is gone, or floods, ends without our word

    async def serve(self) -> None:
        """Read the inbox until there is nothing to do; the only task that changes the lock."""
        try:
            async with trio.open_nursery() as turns:
                while not self._over:
                    self._in_hand = said = await self._next()
                    if said is None:
                        self._over = True
                    elif self._lease is None:
                        self._handle(said, turns)
                    else:
                        await self._handle_leased(said, turns, self._lease)
                self._gone(self)
                turns.cancel_scope.cancel(reason="the session sleeps")
        finally:
            self._over = True
            self._freed.unpark_all()
            self._gone(self)
            self._refuse_the_rest()
        if self._lease is not None:
            await self._lease.give_back(self.state)

    async def _next(self) -> Envelope | House | None:
        """Return the next message, or None once the session has been idle long enough."""
        while True:
            durations = self._parts.durations
            with trio.move_on_after(durations.unsealed if self.state.texts else durations.idle):
                return await self._inbox.receive()
            if self._lock is Lock.FREE and not self._send.statistics().current_buffer_used:
                return None

    async def _handle_leased(
        self, said: Envelope | House, turns: trio.Nursery, lease: Lease
    ) -> None:
        """Handle *said*, under the session's lease if a turn may come of it.

        There is nothing to interrupt while the inbox waits for the store: no turn is served then.
        """
        ready = await self._take_lease(said, lease) if self._needs_lease(said) else said
        if ready is not None:
            self._handle(ready, turns)
        if self._lock is Lock.FREE and not self._over:
            self.state = await lease.give_back(self.state)

    def _needs_lease(self, said: Envelope | House) -> bool:
        match said:
            case Envelope() | Leave():
                return self._lock is Lock.FREE
            case TurnEnded(state=state):
                return bool(self._kept) and state is not None and not self._stale(said)
            case _:
                return False

    async def _take_lease(self, said: Envelope | House, lease: Lease) -> Envelope | House | None:
        """Return *said*, to be handled on what storage holds; None: whoever waited is refused."""
        known = said.state if isinstance(said, TurnEnded) and said.state else self.state
        self._keep(said)  # whatever ends the wait, it is answered
        try:
            state = known if lease.held else await lease.take(known)
        except SmistaError as error:
            self._turn_away(said, error)
            return None
        if state.answered is not known.answered:
            self._remember(state.answered)
        if isinstance(said, TurnEnded):
            return replace(said, state=state)
        self.state = state
        self._kept.pop()
        return said

    def _turn_away(self, said: Envelope | House, error: SmistaError) -> None:
        match said:
            case Envelope():
                self._kept.pop()
                said.refuse(error)
            case Leave():
                self._kept.pop()
                said.finish(error)
            case _:
                self._turn, self._lock = None, Lock.FREE  # it ended, and what waited cannot begin
        if self._kept or isinstance(error, SessionNotFound):
            self._over, self._last_word = True, error

    def _handle(self, said: Envelope | House, turns: trio.Nursery) -> None:
        # Not async on purpose: no other task can see a half-made transition.
        if isinstance(said, Forget):
            self._forget_fact(said)
            return
        if self._stale(said) or (isinstance(said, Envelope) and self._seen_before(said)):
            return
        if isinstance(said, TurnEnded):
            self._take_back(said)
            if self._over:
                self._lock = Lock.FREE  # whoever waits is answered when the inbox closes
                return
        told = _told(said)
        pause = self._pause(told)
        step = advance(self._lock, pause, told)
        error = refusal(self._lock, pause, told) if step is None else self._wrong(said)
        if error is not None and isinstance(said, Envelope):
            self._refuse(said, error)
        if step is None or error is not None:
            return
        self._lock = step.lock
        if self._lock is Lock.FREE:
            self._freed.unpark_all()
        for act in step.acts:
            self._perform(act, said, turns)
        if isinstance(said, Envelope):
            said.take()

    def _pause(self, told: Told) -> Pause:
        """Return the checkpoint that *told* meets.

        A break of a run that is over meets what it left unsealed, as a failed one does: its rows
        ride the next response, and by a break a client gets one.
        """
        pause = pause_of(self.state.run.phase)
        left = self._lock is Lock.FREE and bool(self.state.texts)
        return Pause.ENCRYPT if left and told is Told.BREAK and pause is Pause.IDLE else pause

    def _forget_fact(self, said: Forget) -> None:
        # A row that waits for its envelope is listed, so it goes when that comes (`arrive`).
        self.state = replace(self.state, facts=without_fact(self.state.facts, said.fact_id))
        if self._turn is not None:
            self._turn.forget_fact(said.fact_id)
            # One that is written already has given its state away: it is on its way here.
            self._late = said.fact_id if self._turn.committed else self._late
        said.done.set()

    def _wrong(self, said: Envelope | House) -> SmistaError | None:
        # While a turn is served its state is not the one a message will meet.
        if not isinstance(said, Envelope) or self._lock is not Lock.FREE:
            return None
        return wrong_answer(self.state, said.message)

    def _seen_before(self, said: Envelope) -> bool:
        """Attach a message that is being served now, or tell a keyed one its outcome again."""
        mark, turn = said.identity, self._turn
        if mark is None:
            return False
        self._roll_back(mark)
        served = turn.identity if turn is not None else None
        if turn is not None and served is not None and served[:2] == mark[:2]:
            self._attach(said, turn, same=served == mark)
            return True
        if said.told in (Told.EXECUTE, Told.INJECT) and mark[:2] in self._answered:
            self._tell_again(said, self._answered[mark[:2]])
            return True
        return False

    def _roll_back(self, mark: Identity) -> None:
        """Have a message served anew if its output was lost with a router, before it was sealed."""
        before = self.state.run.before
        if before is None or self._lock is not Lock.FREE or not lost(self.state):
            return
        answered = self._answered.get(mark[:2])
        if answered and answered.digest == mark.digest and answered.created_at == before.at:
            del self._answered[mark[:2]]
            self.state = rolled_back(self.state)

    def _attach(self, said: Envelope, turn: Turn, *, same: bool) -> None:
        if not same:
            said.refuse(_KEY_REUSED)
        elif not turn.stream.tellable:
            said.refuse(RunInFlight("the turn has said too much to be told again; wait for it"))
        else:
            said.reader = turn.stream.attach()
            said.take()

    def _refuse(self, said: Envelope, error: SmistaError) -> None:
        """Refuse *said*, unless it answered a pause that is over: then it has its outcome."""
        mark = said.identity
        known = None if mark is None or self._lock is not Lock.FREE else mark[:2]
        if known is not None and known in self._answered:
            self._tell_again(said, self._answered[known])
        else:
            said.refuse(error)

    def _tell_again(self, said: Envelope, answered: AnsweredRecord) -> None:
        mark = said.identity
        if mark is not None and answered.digest != mark.digest:
            said.refuse(_KEY_REUSED)
            return
        ending = tell_again(answered, self.state)
        if ending is None:
            said.refuse(InvalidRequest("this was answered long ago; fetch the session instead"))
            return
        said.take()
        said.stream.put(ending)

    def _stale(self, said: Envelope | House) -> bool:
        match said:
            case TurnEnded(serial=serial):
                return serial != self._serial
            case ReaderLeft(stream):
                return self._turn is None or self._turn.stream is not stream
            case Abandon(serial):
                return serial is not None and serial != self._serial
            case _:
                return False

    def _take_back(self, ended: TurnEnded) -> None:
        self._turn = None
        if ended.state is None:
            self._over = True  # what storage holds is not known: the next message reads it anew
        else:
            facts, self._late = without_fact(ended.state.facts, self._late), ""
            self.state = replace(ended.state, facts=facts)
            self._remember(ended.answered)

    def _remember(self, answered: tuple[AnsweredRecord, ...]) -> None:
        self._answered |= {(each.route, each.key): each for each in answered}
        oldest = self._parts.clock.now() - KEPT
        while self._answered:
            key, first = next(iter(self._answered.items()))
            if first.created_at >= oldest and len(self._answered) <= ANSWERED:
                return
            del self._answered[key]

    def _perform(self, act: Act, said: Envelope | House, turns: trio.Nursery) -> None:
        match act:
            case Act.START:
                self._start(said, turns)
            case Act.ANSWER_IDLE:
                self._answer_idle(said)
            case Act.KEEP:
                self._keep(said)
            case Act.CANCEL:
                self._cancel()
            case Act.GRACE:
                turns.start_soon(self._grace, self._serial)
            case Act.GO_ON:
                self._go_on(turns)
            case Act.RESUME:
                self._resume(turns)
            case _:
                assert_never(act)

    def _start(self, said: Envelope | House, turns: trio.Nursery) -> None:
        match said:
            case Envelope():
                said.take()
                self._begin((said,), turns)
            case Leave():
                self._serial += 1
                turns.start_soon(self._leave, said, self._serial)
            case _:
                raise TypeError(f"table and actor disagree: a turn cannot start with {said!r}")

    def _begin(self, inputs: tuple[Envelope, ...], turns: trio.Nursery) -> None:
        self._serial += 1
        self._turn = Turn(inputs, self.state, self._parts, why=lambda: self._lock)
        turns.start_soon(self._run, self._turn, self._serial)
        if not self._turn.stream.attached:
            turns.start_soon(self._grace, self._serial)

    def _answer_idle(self, said: Envelope | House) -> None:
        if isinstance(said, Envelope):
            said.take()
            said.stream.put(TurnEnd(Status.IDLE, {"trace_id": trace_id(self.state)}))

    def _keep(self, said: Envelope | House) -> None:
        if isinstance(said, Envelope | Leave):
            self._kept.append(said)

    def _cancel(self) -> None:
        if self._turn is not None:
            self._turn.scope.cancel(reason=f"session lock: {self._lock}")

    def _go_on(self, turns: trio.Nursery) -> None:
        """Start one turn with all the input that waits; a break behind it goes on waiting."""
        inputs = tuple(e for e in self._kept if isinstance(e, Envelope) and e.told is Told.INJECT)
        self._kept = deque(e for e in self._kept if e not in inputs)
        self._begin(inputs, turns)

    def _resume(self, turns: trio.Nursery) -> None:
        kept, self._kept = self._kept, deque()
        for said in kept:
            if isinstance(said, Envelope) and self._has_stopped(said):
                said.take()
                said.stream.put(with_rows(sealing_of(self.state), self.state))
            else:
                self._handle(said, turns)

    def _has_stopped(self, said: Envelope) -> bool:
        """Say if a break has had its effect, and it is left to ask for the envelopes."""
        free = self._lock is Lock.FREE
        return free and said.told is Told.BREAK and pause_of(self.state.run.phase) is Pause.ENCRYPT

    async def _grace(self, serial: int) -> None:
        await trio.sleep(self._parts.durations.orphan_grace)
        if self._serial == serial and self._turn is not None and not self._turn.stream.attached:
            self.whisper(Abandon(serial))

    async def _run(self, turn: Turn, serial: int) -> None:
        state, ending = await (self._lease.serve(turn) if self._lease else turn.run())
        # In this order: the lock is free before a reader can hear of the end and answer it.
        self._send.send_nowait(TurnEnded(serial, state, turn.answered))
        turn.say(ending)

    async def _leave(self, leave: Leave, serial: int) -> None:
        state: SessionState | None = self.state
        error: SmistaError | None = None
        try:
            if leave.update is None:
                await self._parts.journal.delete_session(self.state.session.id)
            else:
                state = await self._settled()
                await self._parts.journal.update_session(leave.update)
            self._last_word = SessionNotFound("the session is gone; create a new one")
            state = None
        except SmistaError as failure:
            error = failure
        self._send.send_nowait(TurnEnded(serial, state))
        leave.finish(error)

    async def _settled(self) -> SessionState:
        """Return the state after a pause, if there is one, was broken off."""
        if pause_of(self.state.run.phase) is Pause.IDLE:
            return self.state
        return await Turn.break_off(self.state, self._parts)

    def _refuse_the_rest(self) -> None:
        """Answer whoever still waits: nobody waits for ever on a session that ended."""
        rest: list[Envelope | House] = list(self._kept)
        last = self._in_hand
        if isinstance(last, Envelope) and not last.answered and last not in rest:
            last.refuse(InternalError("the router failed on this message"))
        while True:
            try:
                rest.append(self._inbox.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        for said in rest:
            match said:
                case Envelope() if said.answered:
                    said.stream.put(failed(self._last_word))
                case Envelope():
                    said.refuse(self._last_word)
                case Leave():
                    said.finish(self._last_word)
                case Forget():
                    said.done.set()
                case _:
                    pass
        if self._turn is not None:
            self._turn.say(failed(InternalError("the turn failed in the router; send it again")))
        self._send.close()
        self._inbox.close()


def _told(said: Envelope | House) -> Told:
    match said:
        case Envelope():
            return said.told
        case TurnEnded():
            return Told.ENDED
        case ReaderLeft():
            return Told.READER_LEFT
        case Abandon():
            return Told.ABANDON
        case Leave():
            return Told.LEAVE
        case Forget():
            raise TypeError("a fact is forgotten without a step of the run")
