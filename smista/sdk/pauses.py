"""What a run asks of its host, and how each pause is answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from smista.core.events import Event, Status, ToolRequest, TurnEnd
from smista.core.messages import (
    ApprovalDecision,
    ApprovalDecisions,
    ApprovalDecisionsData,
    Continuation,
    Decrypted,
    DecryptedData,
    ToolResultEntry,
    ToolResults,
    ToolResultsData,
)
from smista.sdk.errors import BadAnswer, is_object
from smista.sdk.folds import check_key, marked, opened, sealed
from smista.sdk.frames import tool_request
from smista.sdk.sealing import Sealer


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question with no tool to run; *detail* says what is at stake."""

    approval_id: str
    kind: str
    detail: Mapping[str, Any]


class Host(Protocol):
    """The machine and the person a run works for.

    *run_tools* and *decide* are cancelled when the run is redirected or stopped.
    """

    async def show(self, event: Event) -> None: ...

    def say(self, line: str) -> None:
        """Tell the person *line*, which is no part of the answer."""
        ...

    async def run_tools(self, requests: tuple[ToolRequest, ...]) -> tuple[ToolResultEntry, ...]:
        """Return one result for each of *requests*, in their order.

        One that is `masked` lost its arguments: it cannot be run, `lost_calls.lost` answers it.
        """
        ...

    async def decide(self, approval: Approval) -> ApprovalDecision: ...


async def answer_to(pause: TurnEnd, host: Host, sealer: Sealer | None) -> Continuation:
    """Return what answers *pause*: from *host*, and sealed or opened in an encrypted session."""
    check_key(pause, sealer)
    match pause.status:
        case Status.AWAITING_TOOL:
            return await _results(pause, host, sealer)
        case Status.AWAITING_APPROVAL:
            decision = await host.decide(_approval(pause.data))
            folded = await sealed(pause, sealer)
            data = ApprovalDecisionsData(decisions=(decision,), encrypted=folded)
            return ApprovalDecisions(data=data)
        case Status.AWAITING_DECRYPT if sealer is not None:
            plaintext, folded = await opened(pause, sealer), await sealed(pause, sealer)
            return Decrypted(data=DecryptedData(plaintext=plaintext, encrypted=folded))
        case _:
            raise ValueError(f"a run that is {pause.status} cannot be answered")


async def _results(pause: TurnEnd, host: Host, sealer: Sealer | None) -> ToolResults:
    entries = cast("list[dict[str, Any]]", pause.data.get("tool_requests", []))
    results = await host.run_tools(tuple(tool_request(entry) for entry in entries))
    if sealer is None:
        return ToolResults(data=ToolResultsData(results=results))
    folded = await sealed(pause, sealer, results)
    return ToolResults(data=ToolResultsData(results=marked(results), encrypted=folded))


def _approval(data: Mapping[str, Any]) -> Approval:
    asked = data.get("approval")
    if is_object(asked):
        approval_id, kind, detail = asked.get("approval_id"), asked.get("kind"), asked.get("detail")
        if isinstance(approval_id, str) and isinstance(kind, str) and is_object(detail):
            return Approval(approval_id=approval_id, kind=kind, detail=detail)
    raise BadAnswer("an approval without approval_id, kind or detail")
