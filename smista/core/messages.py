"""What a session can be told: a new task, the answers to a pause, the two escape hatches.

The continuations are wire types (*Continuations*): `{type, data}`, tagged by `type`.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from smista.core.policy import Frozen, Intent
from smista.core.request import ExecuteRequest
from smista.core.secret import Envelope

Decision = Literal["approved", "rejected"]


class ToolResultEntry(Frozen):
    """What became of one call. *paths*: given and real path of every file that gave bytes.

    *sealed_as* says what its envelope holds: the content (`text`, if absent), or all of this as
    JSON (`entry`).
    """

    call_id: str
    content: str
    is_error: bool = False
    decision: Decision | None = None
    paths: tuple[str, ...] | None = None
    restricted: bool | None = None
    sealed_as: Literal["text", "entry"] | None = None


class ToolResultsData(Frozen):
    results: tuple[ToolResultEntry, ...]
    encrypted: dict[str, Envelope] = {}


class ApprovalDecision(Frozen):
    approval_id: str
    decision: Decision
    reason: str | None = None


class ApprovalDecisionsData(Frozen):
    decisions: tuple[ApprovalDecision, ...]
    encrypted: dict[str, Envelope] = {}


class DecryptedData(Frozen):
    plaintext: dict[str, str]
    encrypted: dict[str, Envelope] = {}


class SealedData(Frozen):
    encrypted: dict[str, Envelope]


class InjectMessage(Frozen):
    """New input in the middle of a run; *command* fixes the intent of the next turn."""

    text: str
    ciphertext: Envelope | None = None
    command: Intent | None = None


class InjectData(Frozen):
    messages: tuple[InjectMessage, ...]


class ToolResults(Frozen):
    type: Literal["tool_results"] = "tool_results"
    data: ToolResultsData


class ApprovalDecisions(Frozen):
    type: Literal["approval_decisions"] = "approval_decisions"
    data: ApprovalDecisionsData


class Decrypted(Frozen):
    type: Literal["decrypted"] = "decrypted"
    data: DecryptedData


class SealedRows(Frozen):
    type: Literal["sealed"] = "sealed"
    data: SealedData


class Inject(Frozen):
    type: Literal["inject"] = "inject"
    data: InjectData


class Break(Frozen):
    type: Literal["break"] = "break"


Continuation = Annotated[
    ToolResults | ApprovalDecisions | Decrypted | SealedRows | Inject | Break,
    Field(discriminator="type"),
]


class Execute(Frozen):
    """A new task."""

    type: ClassVar[str] = "execute"
    request: ExecuteRequest


Message = Execute | ToolResults | ApprovalDecisions | Decrypted | SealedRows | Inject | Break
