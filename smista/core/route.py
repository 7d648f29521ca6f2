"""Walks a route's chain to the first model that can and may serve, one reason per rejection."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from smista.core.errors import (
    ContextWindowExceeded,
    FallbackExhausted,
    MissingCapability,
    MissingProviderCredentials,
    NoRoute,
    OverrideNotAllowed,
    RoutingError,
    UnknownModel,
)
from smista.core.intents import Mode
from smista.core.locality import Locality
from smista.core.model_ref import ModelDescriptor, ModelRef, Unavailable
from smista.core.requirements import Requirements
from smista.core.resolve import REMOTE_PROVIDERS, Index, index_models, resolve
from smista.core.rules import Route
from smista.core.snapshot import Attempt, Snapshot
from smista.core.tokens import effective_budget

_LISTING_CODES: Final = {
    "authentication": "provider_authentication",
    "context_length": "context_length_exceeded",
    "invalid_configuration": "invalid_provider_configuration",
    "invalid_credentials": "invalid_provider_credentials",
    "invalid_request": "invalid_request",
    "missing_credentials": "missing_provider_credentials",
    "model_not_found": "model_not_found",
    "provider_unavailable": "provider_unavailable",
    "rate_limit": "rate_limited",
    "storage": "storage_error",
    "timeout": "request_timeout",
    "unknown": "provider_error",
    "unsupported_capability": "provider_unsupported_capability",
}
_OWN_ERRORS: Final[Mapping[str, type[RoutingError]]] = {
    kind.code: kind
    for kind in (
        *(UnknownModel, MissingProviderCredentials, MissingCapability),
        *(ContextWindowExceeded, OverrideNotAllowed, NoRoute),
    )
}
_SHARED: Final = frozenset({ContextWindowExceeded.code, MissingCapability.code})


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model that serves, its place in the chain, and those before it that do not."""

    model: ModelDescriptor
    place: int
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Judges one candidate after the other. Everything it looks at is fixed for the turn."""

    index: Index
    snapshot: Snapshot
    needs: Requirements
    locality: Locality | None
    override: bool
    failed: Mapping[ModelRef, Attempt] = field(default_factory=dict[ModelRef, Attempt])

    def judge(self, ref: ModelRef) -> ModelDescriptor | Attempt:
        """Return the model that *ref* means if it can serve, else why it cannot."""
        model = resolve(ref, self.index)
        failed = self.failed.get(ref) or (self.failed.get(model.ref) if model else None)
        if failed is not None:
            return Attempt(model=ref, code=failed.code, reason=failed.reason)
        if model is None:
            return self._unlisted(ref)
        for code, reason in self._objections(model):
            return Attempt(model=ref, code=code, reason=reason)
        return model

    def _objections(self, model: ModelDescriptor) -> Iterator[tuple[str, str]]:
        if self.locality is not None and not model.local:
            yield self._barred(self.locality)
        if model.local and self.snapshot.request.policy.privacy.local.mode is Mode.DENY:
            yield NoRoute.code, "privacy.local.mode is deny"
        if model.requires_api_key and model.provider not in self.snapshot.credentials:
            reason = f"no credential for {model.provider} came with the request"
            yield MissingProviderCredentials.code, reason
        supported = model.capabilities.supported()
        for capability, why in self.needs.capabilities.items():
            if capability not in supported:
                yield MissingCapability.code, f"it lacks {capability.value}: {why}"
        yield from self._overflow(model)

    def _overflow(self, model: ModelDescriptor) -> Iterator[tuple[str, str]]:
        budget, most = effective_budget(model), self.snapshot.max_context_bytes
        if self.needs.tokens > budget:
            reason = (
                f"the required context takes about {self.needs.tokens} tokens, and it has"
                f" {budget} of {model.max_context_tokens} for context"
            )
            yield ContextWindowExceeded.code, reason
        if self.needs.size > most:
            reason = f"the required context has {self.needs.size} bytes, the limit is {most}"
            yield ContextWindowExceeded.code, reason

    def _unlisted(self, ref: ModelRef) -> Attempt:
        if self.locality is not None and ref.provider in REMOTE_PROVIDERS:
            code, reason = self._barred(self.locality)
            return Attempt(model=ref, code=code, reason=reason)
        out = _unavailable(ref.provider, self.snapshot.unavailable)
        if out is not None:
            code = _LISTING_CODES.get(out.reason, "provider_error")
            detail = f": {out.message}" if out.message else ""
            reason = f"{ref.provider} could not be listed ({out.reason}){detail}"
            return Attempt(model=ref, code=code, reason=reason)
        reason = f"the router knows no model {ref.model!r} of {ref.provider}"
        return Attempt(model=ref, code=UnknownModel.code, reason=reason)

    def _barred(self, locality: Locality) -> tuple[str, str]:
        code = OverrideNotAllowed.code if self.override else NoRoute.code
        return code, f"it is remote, and only local models may serve: {locality.reason}"


def gate(
    snapshot: Snapshot, needs: Requirements, locality: Locality | None, *, override: bool
) -> Gate:
    """Return the gate of one turn."""
    return Gate(
        index=index_models(snapshot.models),
        snapshot=snapshot,
        needs=needs,
        locality=locality,
        override=override,
        failed={attempt.model: attempt for attempt in snapshot.failed},
    )


def walk(route: Route, gate: Gate) -> Choice | tuple[Attempt, ...]:
    """Return the first of the chain that can serve, or why none of them can."""
    attempts: list[Attempt] = []
    for place, ref in enumerate(route.chain):
        verdict = gate.judge(ref)
        if isinstance(verdict, ModelDescriptor):
            return Choice(model=verdict, place=place, attempts=tuple(attempts))
        attempts.append(verdict)
    return tuple(attempts)


def exhausted(route: Route, attempts: Sequence[Attempt], locality: Locality | None) -> RoutingError:
    """Return the error that fits how every candidate failed (decisions, *Failures*)."""
    details: dict[str, Any] = {"attempts": [attempt_body(attempt) for attempt in attempts]}
    codes = {attempt.code for attempt in attempts}
    listed = "; ".join(f"{attempt.model}: {attempt.reason}" for attempt in attempts)
    if route.override:
        kind = _OWN_ERRORS.get(attempts[0].code, FallbackExhausted)
        return kind(f"the requested model cannot serve: {listed}", **details)
    if locality is not None and (locality.content or codes == {NoRoute.code}):
        return NoRoute(f"no local model can serve this turn ({route.reason}): {listed}", **details)
    if len(codes) == 1 and codes <= _SHARED:
        kind = _OWN_ERRORS[attempts[0].code]
        return kind(f"no candidate can serve this turn ({route.reason}): {listed}", **details)
    return FallbackExhausted(f"every candidate failed ({route.reason}): {listed}", **details)


def attempt_body(attempt: Attempt) -> dict[str, str]:
    """Return the JSON members of one rejected candidate."""
    return {"model": str(attempt.model), "code": attempt.code, "reason": attempt.reason}


def _unavailable(provider: str, listed: Sequence[Unavailable]) -> Unavailable | None:
    return next((entry for entry in listed if entry.provider == provider), None)
