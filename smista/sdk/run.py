"""The driver of a whole run: execute, show, answer each pause, until the run is over.

It knows the protocol and nothing of the user's machine; that is its host's part.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import trio

from smista.core.events import Event, Status, ToolRequest, TurnEnd
from smista.core.messages import (
    ApprovalDecision,
    ApprovalDecisions,
    ApprovalDecisionsData,
    Break,
    Continuation,
    ToolResultEntry,
    ToolResults,
    ToolResultsData,
)
from smista.core.request import ExecuteRequest
from smista.sdk import lost_calls
from smista.sdk.client import Client, EventStream
from smista.sdk.errors import BadAnswer, SdkError, Unreachable, is_object
from smista.sdk.frames import tool_request

BREAK_SECONDS: Final = 2.0
"""How long a leaving client tries to tell the router that the run is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question with no tool to run; *detail* says what is at stake."""

    approval_id: str
    kind: str
    detail: Mapping[str, Any]


class Host(Protocol):
    """The machine and the person a run works for."""

    async def show(self, event: Event) -> None: ...

    async def run_tools(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolResultEntry, ...]:
        """Return one result for each of *requests*, in their order."""
        ...

    async def decide(self, approval: Approval) -> ApprovalDecision: ...


async def drive(
    client: Client,
    session_id: str,
    request: ExecuteRequest,
    host: Host,
    *,
    stream: bool = True,
) -> TurnEnd:
    """Run *request* to its end and return the last turn's outcome.

    If it is cancelled, or the host fails, the run is broken off before this returns. If the
    router is lost, the run stays at its last checkpoint.
    """
    over = False
    try:
        turn = await _ask(client, session_id, request, host, stream=stream)
        while True:
            answer = await _answer(turn, host)
            if answer is None:
                over = True
                return turn
            turn = await _ask(client, session_id, answer, host, stream=stream)
    except Unreachable:
        over = True
        raise
    finally:
        if not over:
            await _break_off(client, session_id)


async def _ask(
    client: Client,
    session_id: str,
    message: ExecuteRequest | Continuation,
    host: Host,
    *,
    stream: bool,
) -> TurnEnd:
    if stream:
        async with _open(client, session_id, message) as events:
            return await _show_all(events, host)
    if isinstance(message, ExecuteRequest):
        turn = await client.execute(session_id, message)
    else:
        turn = await client.continue_run(session_id, message)
    await host.show(turn)
    return turn


def _open(
    client: Client, session_id: str, message: ExecuteRequest | Continuation
) -> AbstractAsyncContextManager[EventStream]:
    if isinstance(message, ExecuteRequest):
        return client.stream_execute(session_id, message)
    return client.stream_continue(session_id, message)


async def _show_all(events: EventStream, host: Host) -> TurnEnd:
    async for event in events:
        await host.show(event)
        if isinstance(event, TurnEnd):
            return event
    raise BadAnswer("the stream had no turn_end")


async def _answer(turn: TurnEnd, host: Host) -> Continuation | None:
    match turn.status:
        case Status.COMPLETED | Status.IDLE | Status.ERROR:
            return None
        case Status.AWAITING_TOOL:
            entries = cast("list[dict[str, Any]]", turn.data.get("tool_requests", []))
            requests = tuple(tool_request(entry) for entry in entries)
            wanted = lost_calls.runnable(requests)
            results = await host.run_tools(wanted) if wanted else ()
            results = (*results, *lost_calls.answers(requests))
            return ToolResults(data=ToolResultsData(results=results))
        case Status.AWAITING_APPROVAL:
            decision = await host.decide(_approval(turn.data))
            return ApprovalDecisions(data=ApprovalDecisionsData(decisions=(decision,)))
        case Status.AWAITING_DECRYPT | Status.AWAITING_ENCRYPT:
            raise BadAnswer("the session is encrypted and this client holds no key for it")


def _approval(data: Mapping[str, Any]) -> Approval:
    asked = data.get("approval")
    if is_object(asked):
        approval_id, kind, detail = asked.get("approval_id"), asked.get("kind"), asked.get("detail")
        if isinstance(approval_id, str) and isinstance(kind, str) and is_object(detail):
            return Approval(approval_id=approval_id, kind=kind, detail=detail)
    raise BadAnswer("an approval without approval_id, kind or detail")


async def _break_off(client: Client, session_id: str) -> None:
    with trio.move_on_after(BREAK_SECONDS, shield=True), suppress(SdkError):
        await client.continue_run(session_id, Break())
