"""History in units that stay or go together: a call and its results, or a single message.

No provider ever sees an orphaned result or an unanswered call, whatever was cut or interrupted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from smista.core.history import Message, Role


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages that belong together. *number* counts from 1, oldest first.

    *broken* says why the unit can be shown to no model; then *messages* is what it was made of.
    """

    number: int
    messages: tuple[Message, ...]
    broken: str | None = None

    @property
    def role(self) -> Role:
        return self.messages[0].role

    @property
    def run_id(self) -> str:
        return self.messages[0].run_id


def exchanges(history: Sequence[Message]) -> list[Exchange]:
    """Return *history* as whole exchanges, in order."""
    answers = {m.call_id: m for m in history if m.role is Role.TOOL and m.call_id is not None}
    asked = {call.call_id for message in history for call in message.calls}
    units: list[Exchange] = []
    for message in history:
        if message.role is Role.TOOL:
            if message.call_id not in asked:
                reason = "the call it answers is not part of the history"
                units.append(Exchange(len(units) + 1, (message,), reason))
        elif message.calls:
            units.append(_asking(len(units) + 1, message, answers))
        else:
            units.append(Exchange(len(units) + 1, (message,)))
    return units


def with_result(messages: tuple[Message, ...], result: Message) -> tuple[Message, ...]:
    """Place *result* behind the answer that asked for it and the results that are there.

    If nobody there asked for it, it has no place.
    """
    place = None
    for n, message in enumerate(messages):
        ours = {call.call_id for call in message.calls}
        if result.call_id in ours:
            place = n + 1
            while place < len(messages) and messages[place].call_id in ours:
                place += 1
    return messages if place is None else (*messages[:place], result, *messages[place:])


def has_calls(messages: Iterable[Message]) -> bool:
    """Say if any of *messages* asks for a tool."""
    return any(message.calls for message in messages)


def _asking(number: int, message: Message, answers: Mapping[str, Message]) -> Exchange:
    answered = tuple(call for call in message.calls if call.call_id in answers)
    if len(answered) < len(message.calls):
        if not answered and not message.text.strip():
            return Exchange(number, (message,), "its tool calls were never answered")
        message = replace(message, calls=answered)
    return Exchange(number, (message, *(answers[call.call_id] for call in answered)))
