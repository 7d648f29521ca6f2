"""Memory is given back once a crowd of sessions has gone to sleep, and not before."""

import gc
import weakref

from actors.memory import CROWD, Tide, find_trim


def test_it_is_given_back_once_half_of_a_crowd_sleeps():
    tide = Tide()
    looks = [4 * CROWD, 3 * CROWD, 2 * CROWD, 2 * CROWD, CROWD + 1, 0]
    assert [tide.is_out(awake) for awake in looks] == [False, False, True, False, False, True]


def test_a_few_that_sleep_are_not_worth_it():
    tide = Tide()
    looks = [CROWD - 1, 0, CROWD, 0]
    assert [tide.is_out(awake) for awake in looks] == [False, False, False, True]


def test_what_holds_itself_is_collected_before():
    class Ring:
        pass

    ring = Ring()
    ring.ring = ring
    left = weakref.ref(ring)
    gc.disable()
    try:
        del ring
        assert left() is not None
        find_trim()()
    finally:
        gc.enable()
    assert left() is None
