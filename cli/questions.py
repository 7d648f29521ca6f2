"""What is asked, in words: who would see what, how much of it, and at what price. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from smista.core.events import ToolRequest
from smista.sdk.pauses import Approval

_KILO: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """*shown* is all that the answer is about; *asked* ends in a question mark."""

    title: str
    shown: str
    asked: str


def question_of(approval: Approval, sizes: Mapping[str, int]) -> Question:
    """Return *approval* as it is put before a person.

    *sizes* are the bytes of what this client sent, by path or `tool:<name>`.
    """
    detail = approval.detail
    match approval.kind:
        case "remote_disclosure":
            return _disclosure(detail, sizes)
        case "cost_limit":
            return _cost(detail)
        case "plan":
            return Question(
                title=f"plan {detail.get('path', '')}",
                shown=str(detail.get("content", "")),
                asked="carry this plan out?",
            )
        case _:
            lines = [f"{name}: {value}" for name, value in detail.items()]
            shown = "\n".join(lines)
            return Question(title=f"the router asks: {approval.kind}", shown=shown, asked="go on?")


def question_beyond(request: ToolRequest, real: str) -> Question:
    """Return *request*, which leads to *real*, as it is put before a person."""
    wanted = request.arguments
    lines = [f"path: {real}", "this is outside the project"]
    for name, mark in (("old", "-"), ("new", "+"), ("content", "+")):
        if isinstance(text := wanted.get(name), str):
            lines += [f"{mark}{line}" for line in text.split("\n")]
    reads = request.name not in ("write_file", "edit_file")
    return Question(
        title=f"{request.name} {wanted.get('path')}",
        shown="\n".join(lines),
        asked="let the model read it?" if reads else "look at it, to show you the change?",
    )


def question_of_router(request: ToolRequest) -> Question:
    """Return a call of a tool that the router runs itself as it is put before a person."""
    wanted = request.arguments
    if request.name == "use_skill":
        title = f"use_skill {wanted.get('name')}"
        return Question(title=title, shown="", asked="let the model read this skill?")
    lines = [f"{name}: {wanted[name]}" for name in ("scope", "key", "value") if wanted.get(name)]
    forgets = wanted.get("operation") == "forget"
    return Question(
        title=f"memory {wanted.get('operation')}",
        shown="\n".join(lines),
        asked="forget it?" if forgets else "remember it?",
    )


def _disclosure(detail: Mapping[str, Any], sizes: Mapping[str, int]) -> Question:
    model = _model(detail)
    where = "on this machine" if detail.get("local") is True else "on another machine"
    listed: object = detail.get("paths")
    things = (
        [str(thing) for thing in cast("list[object]", listed)] if isinstance(listed, list) else []
    )
    known = sum(sizes.get(thing, 0) for thing in things)
    total = f", {size_words(known)} known of it" if known else ""
    return Question(
        title=f"{model} {where} would see{total}:",
        shown="\n".join(_things(things, sizes)),
        asked=f"send this, and later other files of the project, to {detail.get('provider')}?",
    )


def _things(things: list[str], sizes: Mapping[str, int]) -> Iterator[str]:
    named = {
        "history": "what was said before in this session",
        "memory": "remembered facts about you or this session",
    }
    for thing in things:
        size = f" ({size_words(sizes[thing])})" if thing in sizes else ""
        if thing.startswith("tool:"):
            yield f"what the tool {thing.removeprefix('tool:')} answered{size}"
        else:
            yield f"{named.get(thing, thing)}{size}"


def _cost(detail: Mapping[str, Any]) -> Question:
    estimate, limit = detail.get("estimated_cost"), detail.get("cost_limit")
    spent = detail.get("spent")
    price = "its price is unknown" if estimate is None else f"up to {estimate} USD for this call"
    return Question(
        title=f"{_model(detail)} may cost more than your limit",
        shown=f"{price}\n{spent} USD spent in this run so far\n{limit} USD is the limit",
        asked="spend it?" if estimate is not None else "call it all the same?",
    )


def _model(detail: Mapping[str, Any]) -> str:
    return f"{detail.get('provider')}/{detail.get('model')}"


def size_words(count: int) -> str:
    """Return *count* bytes as a person reads them."""
    if count < _KILO:
        return f"{count} bytes"
    kilo = count / _KILO
    return f"{kilo:.1f} KB" if kilo < _KILO else f"{kilo / _KILO:.1f} MB"
