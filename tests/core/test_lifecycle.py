"""The table of the run: admission, pauses, and that no order of messages can wedge it."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smista.core.errors import InvalidRequest, RunInFlight
from smista.core.lifecycle import (
    Act,
    Lock,
    Pause,
    Told,
    advance,
    allowed_continuations,
    refusal,
)

CLIENT = (
    Told.EXECUTE,
    Told.TOOL_RESULTS,
    Told.APPROVAL_DECISIONS,
    Told.DECRYPTED,
    Told.SEALED,
    Told.INJECT,
    Told.BREAK,
)
ANSWERS = {
    Pause.TOOL: Told.TOOL_RESULTS,
    Pause.APPROVAL: Told.APPROVAL_DECISIONS,
    Pause.DECRYPT: Told.DECRYPTED,
    Pause.ENCRYPT: Told.SEALED,
}


@pytest.mark.parametrize("pause", Pause)
def test_a_break_is_taken_in_every_state(pause):
    for lock in Lock:
        assert advance(lock, pause, Told.BREAK) is not None


@pytest.mark.parametrize("pause", [p for p in Pause if p is not Pause.IDLE])
def test_an_inject_is_taken_in_every_live_pause_and_while_a_turn_is_served(pause):
    assert advance(Lock.FREE, pause, Told.INJECT) is not None
    assert advance(Lock.TURN, pause, Told.INJECT) is not None


def test_other_messages_are_refused_as_busy_while_a_turn_is_served():
    others = [t for t in CLIENT if t not in (Told.INJECT, Told.BREAK)]
    for lock, told in product([lock for lock in Lock if lock is not Lock.FREE], others):
        assert advance(lock, Pause.IDLE, told) is None
        assert isinstance(refusal(lock, Pause.IDLE, told), RunInFlight)


def test_each_pause_takes_its_own_answer_and_no_other():
    for pause, told in product(ANSWERS, ANSWERS.values()):
        step = advance(Lock.FREE, pause, told)
        assert (step is not None) == (ANSWERS[pause] is told)
        if step is None:
            error = refusal(Lock.FREE, pause, told)
            assert isinstance(error, InvalidRequest)
            assert error.details["expected"] == list(allowed_continuations(pause))


def test_a_new_task_may_replace_any_pause():
    for pause in Pause:
        assert advance(Lock.FREE, pause, Told.EXECUTE).acts == (Act.START,)


def test_without_a_run_a_break_answers_idle_and_all_else_is_refused():
    assert advance(Lock.FREE, Pause.IDLE, Told.BREAK).acts == (Act.ANSWER_IDLE,)
    for told in (Told.INJECT, *ANSWERS.values()):
        assert isinstance(refusal(Lock.FREE, Pause.IDLE, told), InvalidRequest)
        assert advance(Lock.FREE, Pause.IDLE, told) is None


def test_an_inject_after_a_break_finds_no_run():
    assert advance(Lock.STOPPED, Pause.IDLE, Told.INJECT) is None
    assert isinstance(refusal(Lock.STOPPED, Pause.IDLE, Told.INJECT), InvalidRequest)


def test_the_continuations_on_offer_are_those_of_the_protocol():
    assert allowed_continuations(Pause.TOOL) == ("tool_results", "inject", "break")
    assert allowed_continuations(Pause.APPROVAL) == ("approval_decisions", "break")
    assert allowed_continuations(Pause.DECRYPT) == ("decrypted", "break")
    assert allowed_continuations(Pause.ENCRYPT) == ("sealed", "break")
    assert allowed_continuations(Pause.IDLE) == ()


class Run:
    """Plays the table: counts the turns that are open and the messages that wait."""

    def __init__(self) -> None:
        self.lock, self.pause, self.open, self.kept, self.answered, self.taken = (
            Lock.FREE,
            Pause.IDLE,
            0,
            [],
            0,
            0,
        )

    def tell(self, told: Told) -> None:
        step = advance(self.lock, self.pause, told)
        if step is None:
            return
        if told in CLIENT or told is Told.LEAVE:
            self.taken += 1
        if told is Told.ENDED:
            self.open -= 1
        self.lock = step.lock
        for act in step.acts:
            self.perform(act, told)

    def perform(self, act: Act, told: Told) -> None:
        match act:
            case Act.START:
                self.open += 1
                self.answered += 1
            case Act.ANSWER_IDLE:
                self.answered += 1
            case Act.KEEP:
                self.kept.append(told)
            case Act.GO_ON:
                assert self.kept
                self.answered += self.kept.count(Told.INJECT)
                self.kept = [k for k in self.kept if k is not Told.INJECT]
                self.open += 1
            case Act.RESUME:
                kept, self.kept, self.pause = self.kept, [], Pause.IDLE
                self.taken -= len(kept)
                for message in kept:
                    self.tell(message)


@given(st.lists(st.tuples(st.sampled_from(Told), st.sampled_from(Pause))))
def test_no_order_of_messages_opens_two_turns_loses_one_or_wedges_the_lock(script):
    run = Run()
    for told, pause in script:
        if told is Told.ENDED:
            if run.open == 0:
                continue
            run.pause = pause
        run.tell(told)
        assert run.open in (0, 1)
        assert (run.lock is Lock.FREE) == (run.open == 0)
    for _ in range(len(script) + 2):
        if run.open:
            run.pause = Pause.IDLE
            run.tell(Told.ENDED)
    assert run.lock is Lock.FREE
    assert run.kept == []
    assert run.answered == run.taken
