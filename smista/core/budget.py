"""Rate arithmetic: how much allowance is left and how long until the next request fits.

A token bucket as a value: the caller keeps it, brings the time and stores what comes back.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At most *burst* requests at once; one request of allowance comes back per *period*."""

    burst: int
    period: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """*level* requests were left at the time *at* (seconds of any clock that never goes back)."""

    level: float
    at: float


def full(rate: Rate, now: float) -> Bucket:
    """Return the bucket of someone who has not asked for a long time."""
    return Bucket(float(rate.burst), now)


def refilled(rate: Rate, bucket: Bucket, now: float) -> Bucket:
    """Return *bucket* with the allowance that came back until *now*."""
    grown = bucket.level + max(0.0, now - bucket.at) / rate.period
    return Bucket(min(float(rate.burst), grown), now)


def take(rate: Rate, bucket: Bucket, now: float) -> tuple[Bucket, float]:
    """Return the bucket after one request, and the seconds to wait first (0.0: go ahead).

    A refused request takes nothing.
    """
    ready = refilled(rate, bucket, now)
    if ready.level >= 1.0:
        return Bucket(ready.level - 1.0, now), 0.0
    return ready, (1.0 - ready.level) * rate.period
