"""What the client of an encrypted session sealed for a turn: rows that waited, and results."""

from dataclasses import dataclass, field
from typing import NamedTuple

from smista.core.answers import envelopes_of
from smista.core.messages import Message, ToolResults
from smista.core.opening import arrive, without_lost
from smista.core.records import SessionState, Unsealed
from smista.core.secret import Envelope


class SealedResult(NamedTuple):
    """What a client sealed of a tool's result: its *text*, as *form* says."""

    text: str
    envelope: Envelope
    form: str


@dataclass(slots=True)
class Seals:
    """Owned by one draft. *arrived* are the rows that the message's envelopes complete."""

    arrived: Unsealed = field(default_factory=Unsealed)
    _results: dict[str, SealedResult] = field(default_factory=dict[str, SealedResult])

    def take(self, state: SessionState, message: Message) -> SessionState:
        """Return *state* with what *message* brings; without envelopes, lost rows are given up."""
        given = envelopes_of(message)
        if given is None:
            return without_lost(state)
        if isinstance(message, ToolResults):
            self._results = {
                each.call_id: SealedResult(
                    each.content, given[f"tool_call:{each.call_id}"], each.sealed_as or "text"
                )
                for each in message.data.results
            }
        state, self.arrived = arrive(state, given)
        return state

    def of_result(self, call_id: str, content: str) -> SealedResult | None:
        """Return what was sealed as the result of a call.

        None if that says something else than *content*: then the words are the router's own.
        """
        sealed = self._results.get(call_id)
        return sealed if sealed is not None and sealed.text == content else None
