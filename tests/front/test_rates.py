"""The token bucket, for any order of requests and pauses."""

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from smista.core.budget import Bucket, Rate, full, take
from smista.front.rates import AddressRates

RATE = Rate(burst=5, period=0.5)


@given(st.lists(st.floats(0, 3), max_size=60))
def test_no_window_admits_more_than_burst_and_refill(pauses: list[float]):
    now, bucket, admitted = 0.0, full(RATE, 0.0), []
    for pause in pauses:
        now += pause
        bucket, wait = take(RATE, bucket, now)
        if wait == 0.0:
            admitted.append(now)
    for index, start in enumerate(admitted):
        for count, end in enumerate(admitted[index:], start=1):
            assert count <= RATE.burst + (end - start) / RATE.period + 1e-6


@given(st.floats(0, 0.999), st.floats(0, 100))
def test_whoever_waits_as_told_is_admitted(level: float, now: float):
    bucket, wait = take(RATE, Bucket(level, now), now)
    assert 0 < wait <= RATE.period
    assert take(RATE, bucket, now + wait + 1e-6)[1] == 0.0


def test_a_clock_that_jumps_back_takes_nothing_away():
    assert take(RATE, Bucket(2.0, 100.0), 50.0)[1] == 0.0


async def test_addresses_do_not_share_an_allowance_but_the_hosts_of_one_site_do():
    rates = AddressRates(Rate(burst=1, period=60.0))
    assert rates.charge(ip_address("10.0.0.1")) is None
    assert rates.charge(ip_address("10.0.0.2")) is None
    assert rates.charge(ip_address("10.0.0.1")) is not None
    assert rates.charge(ip_address("2001:db8::1")) is None
    assert rates.charge(ip_address("2001:db8::2")) is not None
    assert rates.charge(ip_address("2001:db8:0:1::2")) is None
    assert rates.charge(ip_address("::1")) is None
    assert rates.charge(None) is None


async def test_the_oldest_addresses_are_forgotten_first():
    rates = AddressRates(Rate(burst=1, period=60.0))
    for number in range(10_001):
        assert rates.charge(ip_address(number + 1)) is None
    assert rates.charge(ip_address(10_001)) is not None
    assert rates.charge(ip_address(1)) is None
