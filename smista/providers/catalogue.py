"""What can be routed to now: every source is asked in parallel, and what it said is kept a while.

Whoever asks waits for what nobody knows yet, is served at once what is known, and old news while
newer ones are on their way. A list belongs to the key it was asked with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Final, Protocol

import trio
from pydantic import SecretStr

from smista.core.errors import (
    ContextLengthExceeded,
    InvalidProviderConfiguration,
    InvalidProviderCredentials,
    ModelNotFound,
    ProviderAuthentication,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnsupportedCapability,
)
from smista.core.model_ref import Catalog, ModelDescriptor, Unavailable
from smista.ports.provider import Credentials
from smista.providers.facts import Facts

_REASONS: Final[tuple[tuple[type[ProviderError], str], ...]] = (
    (ProviderUnavailable, "provider_unavailable"),
    (ProviderRateLimited, "rate_limit"),
    (ProviderTimeout, "timeout"),
    (ProviderAuthentication, "authentication"),
    (InvalidProviderCredentials, "invalid_credentials"),
    (InvalidProviderConfiguration, "invalid_configuration"),
    (ProviderRejected, "invalid_request"),
    (ModelNotFound, "model_not_found"),
    (ContextLengthExceeded, "context_length"),
    (ProviderUnsupportedCapability, "unsupported_capability"),
)
_NOT_ASKED: Final = "it is remote, and only local hosts may be asked now"
# A list that takes longer than the longest deadline is of no use to anybody.
_LONGEST: Final = 60.0
_LISTS_PER_SOURCE: Final = 64
# A remote host that failed is left alone for so long, or each turn would wait for it anew.
_REST: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a source offers. *by_name*: not shown, but found by who knows the exact name."""

    models: tuple[ModelDescriptor, ...] = ()
    by_name: tuple[ModelDescriptor, ...] = ()


class Source(Protocol):
    """One place that offers models of *provider*. *fresh*: seconds that a list counts as new.

    *needs_key*: what to tell whoever comes without one; None: it can be asked without.
    *spare*: that it cannot be asked is worth no word.
    """

    @property
    def provider(self) -> str: ...

    @property
    def local(self) -> bool: ...

    @property
    def needs_key(self) -> str | None: ...

    @property
    def fresh(self) -> float: ...

    @property
    def spare(self) -> bool: ...

    async def list_models(self, key: SecretStr | None) -> Listing:
        """Raises ProviderError."""
        ...


@dataclass(slots=True, kw_only=True)
class _Entry:
    """What is known of one source with one key, and the question that is under way.

    *at*, *failed* and *begun* are the times of the list, of *error* and of the question.
    """

    listing: Listing | None = None
    at: float = 0.0
    error: ProviderError | None = None
    failed: float = 0.0
    asking: trio.Event | None = None
    begun: float = 0.0


@dataclass(slots=True)
class _Found:
    listings: dict[int, Listing] = field(default_factory=dict[int, Listing])
    unavailable: dict[int, Unavailable] = field(default_factory=dict[int, Unavailable])


class Catalogue:
    """Asks the *sources*; questions outlive who asked them, in the nursery *tasks*."""

    def __init__(self, sources: Sequence[Source], facts: Facts, tasks: trio.Nursery) -> None:
        self._sources = sources
        self._facts = facts
        self._tasks = tasks
        self._known: list[dict[str, _Entry]] = [{} for _ in sources]
        self._made: tuple[object, Catalog] = (None, Catalog())

    def settled(self, credentials: Credentials) -> bool:
        """Tell if no remote host would be asked now (`ports.provider`)."""
        return all(self._is_settled(number, credentials) for number in range(len(self._sources)))

    async def catalog(
        self, credentials: Credentials, *, local_only: bool = False, deadline: float = 10.0
    ) -> Catalog:
        """Return what can be listed within *deadline* seconds (`ports.provider`)."""
        found = _Found()
        async with trio.open_nursery() as askers:
            for number, source in enumerate(self._sources):
                key = credentials.get(source.provider)
                askers.start_soon(self._ask, number, key, local_only, deadline, found)
        return self._catalog(found)

    def _is_settled(self, number: int, credentials: Credentials) -> bool:
        source = self._sources[number]
        key = credentials.get(source.provider)
        if source.local or (source.needs_key is not None and key is None):
            return True
        entry = self._known[number].get(_digest(key))
        return entry is not None and self._rests(number, entry)

    def _rests(self, number: int, entry: _Entry) -> bool:
        """Tell if there is no need to ask: the list is new, or the host failed just now."""
        source, now = self._sources[number], trio.current_time()
        fresh = entry.listing is not None and now - entry.at < source.fresh
        failed = entry.error is not None and now - entry.failed < _REST
        return fresh or (failed and not source.local)

    def known(self, number: int, key: SecretStr | None) -> Listing | None:
        """Return what source *number* said last, however long ago."""
        entry = self._known[number].get(_digest(key))
        return entry.listing if entry is not None else None

    async def _ask(
        self,
        number: int,
        key: SecretStr | None,
        local_only: bool,
        deadline: float,
        found: _Found,
    ) -> None:
        source = self._sources[number]
        out: tuple[str, str] | None = None
        if source.needs_key is not None and key is None:
            out = ("missing_credentials", source.needs_key)
        elif local_only and not source.local:
            listing = self.known(number, key)
            out = None if listing is not None else ("provider_unavailable", _NOT_ASKED)
            found.listings[number] = listing or Listing()
        else:
            try:
                found.listings[number] = await self._listing(number, key, deadline)
            except trio.TooSlowError:
                out = ("timeout", f"it did not answer within {deadline:g} seconds")
            except ProviderError as error:
                out = (_reason(error), error.message)
        if out is not None and not source.spare:
            reason, message = out
            found.unavailable[number] = Unavailable(
                provider=source.provider, reason=reason, message=message
            )

    async def _listing(self, number: int, key: SecretStr | None, deadline: float) -> Listing:
        """Return what is known, or wait for it; the wait counts from the question's beginning."""
        entry = self._entry(number, key)
        if not self._rests(number, entry):
            self._start(number, key, entry)
        if entry.listing is None and entry.asking is not None:
            with trio.fail_at(entry.begun + deadline):
                await entry.asking.wait()
        else:
            await trio.lowlevel.checkpoint()
        if entry.listing is None:
            raise entry.error or ProviderUnavailable("the list could not be had")
        return entry.listing

    def _entry(self, number: int, key: SecretStr | None) -> _Entry:
        known, digest = self._known[number], _digest(key)
        if digest not in known and len(known) >= _LISTS_PER_SOURCE:
            idle = (name for name, entry in known.items() if entry.asking is None)
            known.pop(next(idle, next(iter(known))))
        return known.setdefault(digest, _Entry())

    def _start(self, number: int, key: SecretStr | None, entry: _Entry) -> None:
        """Ask, unless the same question is under way."""
        if entry.asking is None:
            entry.asking, entry.begun = trio.Event(), trio.current_time()
            self._tasks.start_soon(self._refresh, self._sources[number], key, entry, entry.asking)

    async def _refresh(
        self, source: Source, key: SecretStr | None, entry: _Entry, asking: trio.Event
    ) -> None:
        try:
            with trio.fail_after(_LONGEST):
                entry.listing = await source.list_models(key)
            entry.at, entry.error = trio.current_time(), None
        except trio.TooSlowError:
            entry.failed = trio.current_time()
            entry.error = ProviderTimeout(f"{source.provider} did not answer", kind="stalled")
        except ProviderError as error:
            entry.failed, entry.error = trio.current_time(), error
            if isinstance(error, InvalidProviderCredentials | ProviderAuthentication):
                entry.listing = None  # what was listed with this key cannot be used any more
        finally:
            entry.asking = None
            asking.set()

    def _catalog(self, found: _Found) -> Catalog:
        """Return *found* at today's prices: the same object as long as nothing is new."""
        day = datetime.now(UTC).date()
        listings = tuple(found.listings[number] for number in sorted(found.listings))
        unavailable = tuple(found.unavailable[number] for number in sorted(found.unavailable))
        mark = (day, unavailable, listings)
        if self._made[0] != mark:
            self._made = (mark, self._at_prices(listings, unavailable, day))
        return self._made[1]

    def _at_prices(
        self, listings: Sequence[Listing], unavailable: tuple[Unavailable, ...], day: date
    ) -> Catalog:
        models = [model for listing in listings for model in listing.models]
        named = [model for listing in listings for model in listing.by_name]
        return Catalog(
            tuple(self._facts.priced(model, day) for model in models),
            unavailable,
            tuple(self._facts.priced(model, day) for model in named),
        )


def _digest(key: SecretStr | None) -> str:
    """Return a name for *key* that does not tell it."""
    return sha256(key.get_secret_value().encode("utf-8", "replace")).hexdigest() if key else ""


def _reason(error: ProviderError) -> str:
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), "unknown")
