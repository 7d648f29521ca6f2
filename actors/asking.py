"""Asking one model, and when to ask again or to ask another."""

import trio

from actors.answer import Answer
from actors.parts import Parts
from smista.core.decision import Decision
from smista.core.errors import (
    BadStream,
    ContextLengthExceeded,
    MissingProviderCredentials,
    ModelNotFound,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderTimeout,
    ProviderUnavailable,
    SmistaError,
)
from smista.core.model_ref import ModelDescriptor
from smista.core.snapshot import Snapshot

_WALKS_ON = (
    BadStream,
    ModelNotFound,
    ProviderFailure,
    ProviderRateLimited,
    ProviderTimeout,
    ProviderUnavailable,
    MissingProviderCredentials,
    ContextLengthExceeded,
)


def may_fall_back(error: SmistaError, answer: Answer) -> bool:
    """Return whether the next candidate may be asked: never after output was shown."""
    return isinstance(error, _WALKS_ON) and not answer.heard


def may_retry(error: ProviderError, answer: Answer, *, tries: int, parts: Parts) -> bool:
    """Return whether the same model may be asked again after *tries* calls.

    Not if its provider asks for more patience than the turn has: then another model is next.
    """
    patient = (error.retry_after or 0.0) <= parts.durations.retry_after_cap
    return error.retryable and patient and not answer.heard and tries <= parts.limits.retries


async def wait_before_retry(error: ProviderError, *, tries: int, parts: Parts) -> None:
    """Wait with exponential backoff and full jitter, at least as long as the provider asks for."""
    durations = parts.durations
    pause = durations.backoff * 2 ** (tries - 1) * parts.clock.jitter()
    await trio.sleep(max(pause, error.retry_after or 0.0))


def served_model(
    decision: Decision, snapshot: Snapshot | None, served: str | None
) -> ModelDescriptor:
    """Return the facts of the model that answered: it is what its provider bills."""
    provider = decision.routing.provider
    models = () if snapshot is None or served is None else snapshot.models
    known = (model for model in models if model.provider == provider and model.model == served)
    return next(known, decision.descriptor)
