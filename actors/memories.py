"""What is remembered for users, as every session of theirs sees it; and what one turn changes."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from smista.core.events import TurnEnd
from smista.core.facts import newest_first, text_of
from smista.core.records import ForgottenFact, MemoryRecord, MemoryScope
from smista.ports.journal import Journal

_MOST_USERS: Final = 256


class Memories:
    """Users' facts as storage holds them; one for all sessions of a router.

    A commit that changes some is told to `changed`: then they are read anew, so that their order
    is the one of the commits. In a store that other routers use nothing is kept at all.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[MemoryRecord, ...]] = OrderedDict()
        self._version = 0

    async def of(self, user_id: str, journal: Journal) -> tuple[MemoryRecord, ...]:
        """Return what is remembered for a user, newest first. Raises StorageError."""
        known = self._known.get(user_id)
        if known is not None:
            self._known.move_to_end(user_id)
            return known
        version = self._version
        found = await journal.facts(MemoryScope.USER, user_id)
        # What was read while a commit was under way may be older than it.
        if version == self._version and not journal.shared:
            self._known[user_id] = found
            while len(self._known) > _MOST_USERS:
                self._known.popitem(last=False)
        return found

    def changed(self, user_id: str) -> None:
        """Forget what is known of a user; what is just being read will not be kept either."""
        self._version += 1
        self._known.pop(user_id, None)


class FactChanges:
    """The facts one turn writes and drops, on top of those its *user* had when it read them."""

    def __init__(self) -> None:
        self.user: tuple[MemoryRecord, ...] = ()
        self._written: dict[str, MemoryRecord] = {}
        self._dropped: dict[str, ForgottenFact] = {}
        self._told: dict[str, dict[str, Any]] = {}

    @property
    def written(self) -> tuple[MemoryRecord, ...]:
        return tuple(self._written.values())

    @property
    def dropped(self) -> tuple[ForgottenFact, ...]:
        return tuple(self._dropped.values())

    @property
    def of_user(self) -> tuple[MemoryRecord, ...]:
        """The user's facts as they will be once the turn is committed."""
        kept = {fact.id: fact for fact in self.user if fact.id not in self._dropped}
        own = {f.id: f for f in self.written if f.scope is MemoryScope.USER}
        return newest_first((kept | own).values())

    @property
    def touch_user(self) -> bool:
        scopes = {f.scope for f in self.written} | {f.scope for f in self.dropped}
        return MemoryScope.USER in scopes

    def write(self, fact: MemoryRecord) -> None:
        known = {each.id for each in self.of_user}
        self._dropped.pop(fact.id, None)
        self._written[fact.id] = fact
        if fact.scope is MemoryScope.USER:
            self._tell("updated" if fact.id in known else "recorded", fact)

    def drop(self, fact: MemoryRecord) -> None:
        self._written.pop(fact.id, None)
        self._dropped[fact.id] = ForgottenFact(id=fact.id, scope=fact.scope)
        if fact.scope is MemoryScope.USER:
            self._tell("forgotten", fact)

    def forget(self, fact_id: str) -> None:
        """Take back a fact that its user has deleted meanwhile."""
        self._written.pop(fact_id, None)

    def shown(self, ending: TurnEnd) -> TurnEnd:
        """Return *ending* with what it now remembers of the user, whose right it is to see it."""
        if not self._told:
            return ending
        told: Mapping[str, Any] = {**ending.data, "remembered": list(self._told.values())}
        return replace(ending, data=told)

    def _tell(self, operation: str, fact: MemoryRecord) -> None:
        key = {} if fact.key is None else {"key": fact.key}
        entry = {"operation": operation, "id": fact.id, **key, "content": text_of(fact) or ""}
        before = self._told.get(fact.id)
        if before is not None and operation == "updated":
            entry["operation"] = before["operation"].replace("forgotten", "updated")
        self._told[fact.id] = entry


def with_fact(facts: tuple[MemoryRecord, ...], fact: MemoryRecord) -> tuple[MemoryRecord, ...]:
    """Return *facts* with *fact* among them, in the place of its earlier self."""
    return newest_first((fact, *without_fact(facts, fact.id)))


def without_fact(facts: tuple[MemoryRecord, ...], fact_id: str) -> tuple[MemoryRecord, ...]:
    return tuple(each for each in facts if each.id != fact_id)
