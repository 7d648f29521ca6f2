"""When are two messages the same one, sent again? By the client's key, or by what they answer."""

from hashlib import sha256
from typing import NamedTuple

from smista.core.messages import (
    ApprovalDecisions,
    Break,
    Decrypted,
    Execute,
    Inject,
    Message,
    SealedRows,
    ToolResults,
)

_SEAL = {"data": {"encrypted"}}


class Identity(NamedTuple):
    """*key* names the message within its session and *route*, *digest* stands for its body."""

    route: str
    key: str
    digest: str


def identity(message: Message, key: str | None) -> Identity | None:
    """Return what *message* is recognised by, None if it is never the same again.

    An answer to a pause is recognised by its body without what was sealed, which differs each
    time it is sealed; a task and new input only by the *key* their client chose.
    """
    match message:
        case ToolResults() | ApprovalDecisions() | Decrypted():
            digest = _digest(message.model_dump_json(exclude=_SEAL))
            return Identity(message.type, digest, digest)
        case SealedRows(data=data):
            digest = _digest("\n".join(sorted(data.encrypted)))
            return Identity(message.type, digest, digest)
        case Execute(request=request) if key is not None:
            return Identity(message.type, key, _digest(request.model_dump_json()))
        case Inject() if key is not None:
            return Identity(message.type, key, _digest(message.model_dump_json()))
        case Execute() | Inject() | Break():
            return None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
