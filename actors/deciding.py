"""What a turn decides on, and the decision: for execute and preview alike."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import trio

from actors.draft import Draft
from actors.own_calls import recall
from actors.parts import Parts
from actors.reading import for_prompt, grown_kinds, newest_text, touched
from smista.core.decision import Decision, Refusal
from smista.core.intents import TaskIntent
from smista.core.pipeline import decide, is_heavy, required_locality
from smista.core.records import SessionState
from smista.core.request import ExecuteRequest
from smista.core.snapshot import Attempt, Snapshot
from smista.ports.provider import Credentials

T = TypeVar("T")


async def preview_snapshot(
    state: SessionState, request: ExecuteRequest, credentials: Credentials, parts: Parts
) -> Snapshot:
    """Return the snapshot that an execute of *request* would decide on in its first turn."""
    draft = Draft(state, parts.clock.now())
    draft.begin_run(parts.clock.new_id(), request)
    draft.add_user(request.input.text)
    return await take_snapshot(draft, credentials, request.input.command, (), parts)


async def take_snapshot(
    draft: Draft,
    credentials: Credentials,
    command: TaskIntent | None,
    passed_over: tuple[Attempt, ...],
    parts: Parts,
    *,
    closed: bool = False,
) -> Snapshot:
    """Return all that the next decision may read; asks the catalog, and nothing else.

    *closed*: sealed history was opened for this decision, or one before it in the same turn.
    """
    draft.memory.user = await parts.memories.of(draft.state.session.user_id, parts.journal)
    state = draft.state
    snapshot = Snapshot(
        request=draft.input.request,
        text=newest_text(state),
        run_id=state.run.run_id,
        command=command,
        history=for_prompt(state.messages),
        credentials=frozenset(credentials),
        memory=recall(draft),
        touched_paths=touched(state),
        grown_kinds=grown_kinds(state),
        plan_mode=draft.input.plan_active,
        barred=state.run.barred,
        failed=passed_over,
        spent=state.run.spent.cost,
        max_context_bytes=parts.limits.context_bytes,
        offered_tools=parts.offered_tools,
        closed=closed,
    )
    providers, local_only = parts.providers, False
    if not providers.settled(credentials):
        # A turn that has to stay local makes no remote connection, not even to ask for models.
        local_only = await _thought(required_locality, snapshot, parts) is not None
    catalog = await providers.catalog(
        credentials, local_only=local_only, deadline=parts.durations.catalog
    )
    return replace(
        snapshot,
        models=(*catalog.models, *catalog.by_name),
        unavailable=catalog.unavailable,
    )


async def decided_on(snapshot: Snapshot, parts: Parts) -> Decision | Refusal:
    """Return the decision on *snapshot*."""
    return await _thought(decide, snapshot, parts)


async def _thought(think: Callable[[Snapshot], T], snapshot: Snapshot, parts: Parts) -> T:
    """Return what *think* makes of *snapshot*, in a thread if it would hold up other sessions."""
    if is_heavy(snapshot):
        return await trio.to_thread.run_sync(think, snapshot, limiter=parts.deciders)
    return think(snapshot)
