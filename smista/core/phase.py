"""Where a run waits between turns: the durable checkpoint (*The pause states*).

A phase holds references to stored rows and the resume step, never content.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from smista.core.intents import Mode, TaskIntent


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing outstanding; no live run."""

    name: ClassVar[str] = "Idle"
    resume: ClassVar[str | None] = None


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call the client was asked to run: its row id, `allow` or `ask`, and what to warn of."""

    call_id: str
    mode: Mode
    restricted_in_view: bool = False


@dataclass(frozen=True, slots=True)
class AwaitingTool:
    """The client runs *calls*; then the next turn."""

    calls: tuple[PendingCall, ...]
    name: ClassVar[str] = "AwaitingTool"
    resume: ClassVar[str | None] = "NextTurn"


@dataclass(frozen=True, slots=True)
class AwaitingApproval:
    """The user decides *approval_id*; *kind*: `remote_disclosure`, `cost_limit` or `plan`.

    *detail* is what the user is shown, but for a plan's content, which is stored with the plan.
    *command* is the intent that the user named for the model call which waits.
    """

    approval_id: str
    kind: str
    resume: str
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    command: TaskIntent | None = None
    name: ClassVar[str] = "AwaitingApproval"


@dataclass(frozen=True, slots=True)
class AwaitingDecrypt:
    """The client opens the rows *references* name (`kind:id`).

    *command* is the intent that the user named for the turn which waits.
    """

    references: tuple[str, ...]
    command: TaskIntent | None = None
    name: ClassVar[str] = "AwaitingDecrypt"
    resume: ClassVar[str | None] = "BuildPrompt"


@dataclass(frozen=True, slots=True)
class AwaitingEncrypt:
    """The client seals the rows *references* name (`kind:id`)."""

    references: tuple[str, ...]
    name: ClassVar[str] = "AwaitingEncrypt"
    resume: ClassVar[str | None] = "Finalize"


Phase = Idle | AwaitingTool | AwaitingApproval | AwaitingDecrypt | AwaitingEncrypt


def phase_to_json(phase: Phase) -> dict[str, Any]:
    """Return the stored form: one member named after the phase."""
    match phase:
        case Idle():
            return {phase.name: {}}
        case AwaitingTool(calls):
            entries = [
                {"call_id": c.call_id, "mode": c.mode.value, "restricted": c.restricted_in_view}
                for c in calls
            ]
            return {phase.name: {"resume": phase.resume, "calls": entries}}
        case AwaitingApproval(approval_id, kind, resume, detail, command):
            asked = {"resume": resume, "approval_id": approval_id, "kind": kind}
            return {phase.name: {**asked, "detail": dict(detail), **_named(command)}}
        case AwaitingDecrypt(references, command):
            waiting = {"resume": phase.resume, "references": list(references)}
            return {phase.name: {**waiting, **_named(command)}}
        case AwaitingEncrypt(references):
            return {phase.name: {"resume": phase.resume, "references": list(references)}}


def phase_from_json(stored: dict[str, Any]) -> Phase:
    """Return the phase that *stored* describes; raises ValueError for one this build lacks."""
    ((name, body),) = stored.items()
    match name:
        case "Idle":
            return Idle()
        case "AwaitingTool":
            calls = body["calls"]
            return AwaitingTool(
                tuple(PendingCall(c["call_id"], Mode(c["mode"]), c["restricted"]) for c in calls)
            )
        case "AwaitingApproval":
            detail = body.get("detail", {})
            asked = (body["approval_id"], body["kind"], body["resume"], detail)
            return AwaitingApproval(*asked, _command(body))
        case "AwaitingDecrypt":
            return AwaitingDecrypt(tuple(body["references"]), _command(body))
        case "AwaitingEncrypt":
            return AwaitingEncrypt(tuple(body["references"]))
        case _:
            raise ValueError(f"unknown phase {name!r}: written by a newer smista")


def _named(command: TaskIntent | None) -> dict[str, str]:
    return {} if command is None else {"command": command.value}


def _command(body: Mapping[str, Any]) -> TaskIntent | None:
    named = body.get("command")
    return None if named is None else TaskIntent(named)
