"""Everything a prompt could hold, as one list that knows no model: nothing is judged here."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from smista.core.diffs import FileDiff, split_diff
from smista.core.envelopes import content_size
from smista.core.exchanges import Exchange, exchanges
from smista.core.history import Message, Role
from smista.core.prompt import Image
from smista.core.request import ContextFile, Instruction, Skill, Workspace
from smista.core.skills import directory_note, summary
from smista.core.snapshot import Fact, Snapshot
from smista.core.tokens import IMAGE_TOKENS, sealed_tokens, text_bytes, text_tokens

PROMPT_LABEL: Final = "the prompt"
_IMAGE: Final = re.compile(r"data:(image/[\w.+-]+);base64,")


class Kind(StrEnum):
    """The kinds of context a trace names."""

    MESSAGE = "message"
    FILE = "file"
    INSTRUCTION = "instruction"
    SKILL = "skill"
    MEMORY = "memory"
    DIFF = "diff"


class Origin(StrEnum):
    """Where a candidate comes from; it decides what it is worth and where it goes."""

    INSTRUCTION = "instruction"
    INVOKED_SKILL = "invoked skill"
    MEMORY = "memory"
    OFFERED_SKILL = "offered skill"
    HISTORY = "history"
    FILE = "file"
    DIFF = "diff"
    RUN = "this run"


Source = ContextFile | Instruction | Skill | Fact | FileDiff | Exchange


class Candidate(NamedTuple):
    """One thing that could go into the prompt. *source* is what it was made of.

    *path* is its name for people and for merging, *paths* all names it is judged by, *text* what
    the model would read (an offered skill: its summary). *also* names the twins merged into it.
    """

    origin: Origin
    kind: Kind
    label: str
    text: str
    tokens: int
    size: int
    source: Source
    path: str | None = None
    paths: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


def image_of(file: ContextFile) -> Image | None:
    """Return the picture that *file* carries, None for text."""
    if not file.content.startswith("data:"):
        return None
    head = _IMAGE.match(file.content)
    return Image(media_type=head[1], data=file.content[head.end() :]) if head else None


def candidates(snapshot: Snapshot, diff: Sequence[FileDiff]) -> list[Candidate]:
    """Return all candidates, in the order a prompt would hold them. *diff* is the split one."""
    attachments = snapshot.request.attachments
    found = [_instruction(item) for item in attachments.instructions]
    found += [_invoked(skill) for skill in attachments.invoked_skills]
    found += [_memory(fact) for fact in snapshot.memory]
    found += [_offered(skill) for skill in attachments.available_skills]
    history = with_prompt(snapshot)
    units = exchanges(history)
    found += [_exchange(unit, Origin.HISTORY) for unit in units if unit.run_id != snapshot.run_id]
    found += [_file(file) for file in attachments.files]
    found += [_diff(part) for part in diff]
    own = [unit for unit in units if unit.run_id == snapshot.run_id]
    found += [_own(unit, _prompt(history, snapshot)) for unit in own]
    return found


def with_prompt(snapshot: Snapshot) -> tuple[Message, ...]:
    """Return the history with the user's text in it, exactly once."""
    if _prompt(snapshot.history, snapshot) is not None:
        return snapshot.history
    prompt = Message(uuid="", role=Role.USER, text=snapshot.text, run_id=snapshot.run_id)
    return (*snapshot.history, prompt)


def split_git_diff(workspace: Workspace) -> tuple[FileDiff, ...]:
    """Return the workspace's diff by file; empty if there is none."""
    text = workspace.git_diff
    return split_diff(text) if text and text.strip() else ()


def task_paths(snapshot: Snapshot, diff: Sequence[FileDiff]) -> tuple[str, ...]:
    """Return the paths a routing rule is matched against, each once (*The routing context*)."""
    request = snapshot.request
    found = [*request.workspace.referenced_paths]
    if request.workspace.active_file:
        found.append(request.workspace.active_file)
    found += [file.path for file in request.attachments.files]
    found += [name for part in diff for name in part.names]
    return tuple(dict.fromkeys((*found, *snapshot.touched_paths)))


def _instruction(item: Instruction) -> Candidate:
    path = item.source
    return _text(Origin.INSTRUCTION, Kind.INSTRUCTION, path, item.content, item, (path,))


def _invoked(skill: Skill) -> Candidate:
    label = f"skill {skill.name}"
    paths = (skill.path,) if skill.path else ()
    found = _text(Origin.INVOKED_SKILL, Kind.SKILL, label, skill.content, skill, paths)
    return _sized(found, directory_note(skill) + skill.content)


def _offered(skill: Skill) -> Candidate:
    label = f"skill {skill.name} (on offer)"
    paths = (skill.path,) if skill.path else ()
    return _text(Origin.OFFERED_SKILL, Kind.SKILL, label, summary(skill), skill, paths)


def _memory(fact: Fact) -> Candidate:
    label = f"{fact.scope} memory {fact.key or fact.id}"
    found = _text(Origin.MEMORY, Kind.MEMORY, label, fact.text, fact)
    if fact.sealed is None:
        return _sized(found, fact_line(fact))
    size, tokens = content_size(fact.sealed), sealed_tokens(fact.sealed)
    return found._replace(text="", tokens=tokens, size=size)


def fact_line(fact: Fact) -> str:
    """Return *fact* as a prompt shows it: on one line, so that it cannot pass for a section."""
    about = ": ".join(part for part in (fact.scope, " ".join((fact.key or "").split())) if part)
    own = f"[{fact.short}] " if fact.short else ""
    return f"- {own}({about}) {' '.join(fact.text.split())}"


def _sized(found: Candidate, shown: str) -> Candidate:
    """Return *found* with the size of what a prompt really shows of it."""
    return found._replace(tokens=text_tokens(shown), size=text_bytes(shown))


def _file(file: ContextFile) -> Candidate:
    given = (file.path,)
    paths = tuple(dict.fromkeys((*given, *file.paths))) if file.paths else given
    found = _text(Origin.FILE, Kind.FILE, file.path, file.content, file, paths)
    return found._replace(tokens=IMAGE_TOKENS) if image_of(file) else found


def _diff(part: FileDiff) -> Candidate:
    named = ", ".join(part.names) if part.readable else ""
    label = f"current git diff: {named}" if named else "current git diff"
    paths = tuple(dict.fromkeys((*part.names, *part.raw)))
    return _text(Origin.DIFF, Kind.DIFF, label, part.text, part, paths)


def _prompt(history: Sequence[Message], snapshot: Snapshot) -> Message | None:
    """Return the message of this run that holds the user's newest text."""
    own = (message for message in reversed(history) if message.run_id == snapshot.run_id)
    return next((m for m in own if m.role is Role.USER and m.text == snapshot.text), None)


def _own(unit: Exchange, prompt: Message | None) -> Candidate:
    found = _exchange(unit, Origin.RUN)
    return found._replace(label=PROMPT_LABEL) if unit.messages[0] is prompt else found


def _exchange(unit: Exchange, origin: Origin) -> Candidate:
    label = f"message {unit.number} ({unit.role})"
    # What is sealed weighs the same before and after it is opened. The run's own rows are open
    # whenever anything is decided.
    sealed = origin is Origin.HISTORY and any(m.sealed is not None for m in unit.messages)
    if len(unit.messages) == 1 and not unit.messages[0].calls and not sealed:
        return _text(origin, Kind.MESSAGE, label, unit.messages[0].text, unit)
    weights = [_weight(message, sealed=sealed) for message in unit.messages]
    named = dict.fromkeys(path for message in unit.messages for path in message.paths or ())
    results = len(unit.messages) - 1
    return Candidate(
        origin=origin,
        kind=Kind.MESSAGE,
        label=f"{label} with tool results ({results})" if results else label,
        text="",
        tokens=sum(tokens for tokens, _ in weights),
        size=sum(size for _, size in weights),
        source=unit,
        paths=tuple(named),
    )


def _weight(message: Message, *, sealed: bool) -> tuple[int, int]:
    """Return tokens and bytes of *message*."""
    if sealed and message.sealed is not None:
        return sealed_tokens(message.sealed), content_size(message.sealed)
    texts = tuple(_spoken(message))
    return sum(map(text_tokens, texts)), sum(map(text_bytes, texts))


def _spoken(message: Message) -> Iterator[str]:
    yield message.text
    for call in message.calls:
        yield call.name
        yield call.arguments


def _text(
    origin: Origin,
    kind: Kind,
    label: str,
    text: str,
    source: Source,
    paths: tuple[str, ...] = (),
) -> Candidate:
    path = paths[0] if paths and kind is not Kind.MESSAGE else None
    return Candidate(
        origin, kind, label, text, text_tokens(text), text_bytes(text), source, path, paths
    )
