"""What every session actor needs of the house, and how long things may take."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime

import trio

from actors.memories import Memories
from smista.core.ids import new_uuid7
from smista.core.tools import CLIENT_TOOLS, ROUTER_TOOLS
from smista.ports.journal import Journal
from smista.ports.provider import Providers

ALL_TOOLS = CLIENT_TOOLS | ROUTER_TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Seconds. One value holds them all, so that a test can shorten one."""

    idle: float = 60.0  # an actor with nothing to do goes to sleep after this
    unsealed: float = 1800.0  # the same, while it alone holds text that is not sealed yet
    orphan_grace: float = 10.0  # a turn without its reader goes on for this long
    reader_stall: float = 60.0  # a reader that takes nothing for this long counts as gone
    slot_wait: float = 120.0  # how long a turn waits for one of the slots
    settle: float = 10.0  # the last write of a cancelled turn
    backoff: float = 0.5  # the first wait before asking a provider again
    retry_after_cap: float = 20.0
    catalog: float = 10.0
    own_tool: float = 60.0  # how long a call that the router runs may wait for the store
    lease: float = 30.0  # a router that says nothing for this long has lost its sessions
    lease_renewal: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Counts and bytes that bound a run."""

    concurrent_turns: int = 8
    context_bytes: int = 5_242_880
    model_calls: int = 100
    retries: int = 2
    stream_events: int = 256
    said_bytes: int = 1_048_576


class Clock:
    """Wall time and randomness, in one place that a test can replace."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def entropy(self) -> int:
        """Return 74 random bits."""
        return secrets.randbits(74)

    def jitter(self) -> float:
        """Return a number from 0 to 1."""
        return secrets.randbelow(1 << 30) / (1 << 30)

    def new_id(self, *, after_ms: int = -1) -> str:
        """Return a new UUIDv7, later than *after_ms*."""
        ms = int(self.now().timestamp() * 1000)
        return new_uuid7(max(ms, after_ms + 1), self.entropy())


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """*slots* bounds the turns served at once, *deciders* the threads for large decisions.

    *offered_tools* are those that clients can run, and the router's own. *router* names this one
    among those that use the same store.
    """

    journal: Journal
    providers: Providers
    slots: trio.CapacityLimiter
    clock: Clock = field(default_factory=Clock)
    durations: Durations = field(default_factory=Durations)
    limits: Limits = field(default_factory=Limits)
    deciders: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(1))
    offered_tools: frozenset[str] = ALL_TOOLS
    memories: Memories = field(default_factory=Memories)
    router: str = ""
