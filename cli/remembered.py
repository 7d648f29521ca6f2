"""What is remembered, as a person reads it; and what a turn has just added to it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from cli.failures import BadUsage, CommandError
from cli.visible import visible_line
from smista.core.facts import handle, short_ids
from smista.sdk.answers import RememberedFact
from smista.sdk.client import Client
from smista.sdk.opening import open_facts
from smista.sdk.sealing import Sealer

_VERBS = {"recorded": "remembered", "updated": "remembered anew", "forgotten": "forgotten"}


async def known_facts(
    client: Client, *, session_id: str | None = None, sealer: Sealer | None = None
) -> tuple[RememberedFact, ...]:
    """Return what is remembered, that of the session too; *sealer* opens what is sealed."""
    facts = await client.facts(session_id=session_id)
    return facts if sealer is None else await open_facts(sealer, facts)


def facts_text(facts: Sequence[RememberedFact], words: str = "") -> str:
    """Return the facts that hold all of *words*, one on a line, with short ids to name them by."""
    short = short_ids(fact.id for fact in facts)
    wanted = words.casefold().split()
    lines = [
        _line(short[fact.id], fact) for fact in facts if all(w in _searched(fact) for w in wanted)
    ]
    if lines:
        return "\n".join(lines)
    return "nothing of that kind is remembered" if facts else "nothing is remembered"


def fact_text(fact: RememberedFact) -> str:
    """Return all that is known of *fact*."""
    about = {
        "id": fact.id,
        "scope": fact.scope,
        "key": fact.key,
        "restricted": "yes: it never reaches a remote model" if fact.restricted else None,
        "written": f"{fact.created_at:%Y-%m-%d %H:%M}",
        "changed": f"{fact.updated_at:%Y-%m-%d %H:%M}",
    }
    lines = [f"{name}: {visible_line(text)}" for name, text in about.items() if text is not None]
    return "\n".join((*lines, "", content_of(fact)))


def content_of(fact: RememberedFact) -> str:
    """Return what the fact says; a sealed one says that its session has to be named."""
    text = fact.content.get("plaintext")
    return str(text) if text is not None else "(sealed: its key is needed to read it)"


def chosen(facts: Sequence[RememberedFact], name: str) -> RememberedFact:
    """Return the fact that *name* means: a key, an id, or the beginning of a short id."""
    found = [fact for fact in facts if name in (fact.key, fact.id)]
    found = found or [fact for fact in facts if name and handle(fact.id).startswith(name.lower())]
    if not found:
        raise CommandError(f"nothing is remembered under {name!r}; see: smista memory list")
    if len(found) > 1:
        short = short_ids(fact.id for fact in facts)
        raise BadUsage(f"{name!r} may mean {', '.join(short[fact.id] for fact in found)}")
    return found[0]


def remembered_lines(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a turn's *data* says was remembered about the user, for the user to see."""
    told: object = data.get("remembered")
    entries = cast("list[object]", told) if isinstance(told, list) else []
    return tuple(_told(cast("dict[str, Any]", each)) for each in entries if isinstance(each, dict))


def _told(entry: Mapping[str, Any]) -> str:
    verb = _VERBS.get(str(entry.get("operation")), "remembered")
    key = f" ({entry['key']})" if entry.get("key") else ""
    short = handle(str(entry.get("id")))[:6]
    return visible_line(f"{verb}{key}: {entry.get('content', '')} [smista memory forget {short}]")


def _line(short: str, fact: RememberedFact) -> str:
    key = f"{fact.key}: " if fact.key else ""
    mark = " (restricted)" if fact.restricted else ""
    return visible_line(f"{short:<10}  {fact.scope:<7}  {key}{content_of(fact)}{mark}")


def _searched(fact: RememberedFact) -> str:
    return f"{fact.key or ''} {content_of(fact)}".casefold()


def as_json(facts: Iterable[RememberedFact]) -> list[dict[str, Any]]:
    return [fact.model_dump(mode="json", exclude_none=True) for fact in facts]
