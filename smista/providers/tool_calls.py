"""Tool calls from fragments: servers disagree on index, id and name, and this sorts them out."""

from dataclasses import dataclass, field
from typing import Any, Final

from smista.core.stream import StreamEvent, ToolCallEnded, ToolStarted
from smista.providers.json_values import is_object, items, member, object_text, text
from smista.providers.text_pairs import TextPairs

_NOTHING: Final = frozenset({"", "null"})


class TooManyCalls(Exception):
    """The answer holds more tool calls than one answer may."""


class _Balance:
    """Tells if JSON text in pieces is complete, looking at each character once."""

    def __init__(self) -> None:
        self._level = 0
        self._quoted = False
        self._escaped = False
        self._begun = False

    def feed(self, piece: str) -> None:
        for character in piece:
            if self._quoted:
                self._quoted = self._escaped or character != '"'
                self._escaped = not self._escaped and character == "\\"
            else:
                self._level += (character in "{[") - (character in "}]")
                self._quoted = character == '"'
            self._begun = self._begun or not character.isspace()

    @property
    def is_whole(self) -> bool:
        return self._begun and not self._quoted and self._level == 0


@dataclass(slots=True, kw_only=True)
class _Call:
    slot: int | None
    id: str
    name: str
    arguments: list[str] = field(default_factory=list[str])
    pairs: TextPairs = field(default_factory=TextPairs)
    balance: _Balance = field(default_factory=_Balance)
    weighed: int = 0

    def is_whole(self) -> bool:
        """Tell if the arguments are complete JSON, so that more of them is another call's."""
        self.balance.feed("".join(self.arguments[self.weighed :]))
        self.weighed = len(self.arguments)
        return self.balance.is_whole

    def is_blank(self) -> bool:
        return not any(piece.strip() for piece in self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fragment:
    slot: int | None
    id: str
    name: str
    arguments: str


class ToolCalls:
    """Collects the calls of one answer, at most *limit*."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._calls: list[_Call] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def read(self, entries: Any) -> list[StreamEvent]:
        """Take the `tool_calls` of a delta or message. Raises TooManyCalls."""
        return [event for entry in items(entries) for event in self._take(_fragment(entry))]

    def end(self) -> list[StreamEvent]:
        """Return the complete calls in order of appearance."""
        return [
            ToolCallEnded(index=at, id=call.id, name=call.name, arguments=_arguments(call))
            for at, call in enumerate(self._calls)
        ]

    def _take(self, fragment: _Fragment | None) -> list[StreamEvent]:
        if fragment is None:
            return []
        call = self._continued(fragment)
        started: list[StreamEvent] = []
        if call is None:
            call = self._open(fragment)
        call.id = call.id or fragment.id
        if fragment.name and not call.name:
            call.name = fragment.name
            started.append(ToolStarted(index=self._calls.index(call), name=call.name))
        call.arguments.append(call.pairs.join(fragment.arguments))
        return started

    def _open(self, fragment: _Fragment) -> _Call:
        if len(self._calls) >= self._limit:
            raise TooManyCalls
        call = _Call(slot=fragment.slot, id=fragment.id, name="")
        self._calls.append(call)
        return call

    def _continued(self, fragment: _Fragment) -> _Call | None:
        """Return the call that *fragment* goes on with, None if it opens one."""
        if fragment.id:
            same = next((c for c in self._calls if c.id == fragment.id), None)
            if same is not None:
                return same
        call = self._latest(fragment.slot)
        if call is None or _opens_another(call, fragment):
            return None
        return call

    def _latest(self, slot: int | None) -> _Call | None:
        known = [c for c in self._calls if slot is None or c.slot in (slot, None)]
        return known[-1] if known else None


def _opens_another(call: _Call, fragment: _Fragment) -> bool:
    if fragment.id and call.id:
        return True
    if not fragment.name or not call.name:
        return False
    if fragment.name != call.name:
        return call.is_whole() or call.is_blank()
    # Some servers repeat the name with every fragment; then only finished arguments tell.
    return bool(fragment.arguments.strip()) and call.is_whole()


def _fragment(entry: Any) -> _Fragment | None:
    if not is_object(entry):
        return None
    function = member(entry, "function")
    slot = entry.get("index")
    return _Fragment(
        slot=slot if isinstance(slot, int) else None,
        id=text(entry.get("id")),
        name=text(member(function, "name")),
        arguments=object_text(member(function, "arguments")),
    )


def _arguments(call: _Call) -> str:
    written = "".join(call.arguments) + call.pairs.rest()
    return "{}" if written.strip() in _NOTHING else written
