"""Sessions as a person reads them: listings, and what was said in one. Pure."""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Final

from cli.visible import visible, visible_line
from smista.sdk.answers import SessionSummary, StoredMessage

SHORT: Final = 13
"""Characters of an id that a listing shows: its milliseconds, so hardly two are alike."""
_TITLE: Final = 60
_NAMES: Final = {"user": "you", "assistant": "model", "tool": "tool"}


def listing(
    sessions: Sequence[SessionSummary], *, projects: bool, zone: tzinfo | None = None
) -> str:
    """Return a line for each session; *projects* tells also where each belongs."""
    return "\n".join(_line(each, projects=projects, zone=zone) for each in sessions)


def _line(session: SessionSummary, *, projects: bool, zone: tzinfo | None) -> str:
    when = session.updated_at.astimezone(zone).strftime("%Y-%m-%d %H:%M")
    title = session.title or "(no title)"
    short = title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"
    words = [session.id[:SHORT], when, short]
    words += ["(encrypted)"] if session.encrypted else []
    words += ["(archived)"] if session.archived else []
    words += [f"[{session.scope}]"] if projects and session.scope else []
    return visible_line("  ".join(words))


def transcript(messages: Iterable[StoredMessage]) -> str:
    """Return what was said, a blank line between messages."""
    return "\n\n".join(_said(message) for message in messages)


def _said(message: StoredMessage) -> str:
    name = _NAMES.get(message.role, message.role)
    model = f" ({message.provider}/{message.model})" if message.model else ""
    text = message.content.get("plaintext")
    said = visible(text) if isinstance(text, str) else "sealed"
    return f"{visible_line(name + model)}: {said or '(asked for tools)'}"
