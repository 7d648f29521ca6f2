"""Puts the selected candidates into the order and form of a prompt. It leaves nothing out."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from smista.core.candidates import Candidate, Origin, image_of
from smista.core.exchanges import Exchange
from smista.core.history import Message, Role
from smista.core.intents import Effort
from smista.core.model_ref import ModelDescriptor
from smista.core.preamble import preamble
from smista.core.prompt import Image, Prompt, Tool
from smista.core.request import ContextFile
from smista.core.snapshot import Snapshot
from smista.core.tokens import reply_reserve

_FENCE: Final = re.compile(r"`{3,}")


def assemble(
    snapshot: Snapshot,
    model: ModelDescriptor,
    held: Sequence[Candidate],
    tools: tuple[Tool, ...],
    effort: Effort,
) -> Prompt:
    """Return the prompt for *model*: preamble, history, files and diff, then this run."""
    request = snapshot.request
    system = preamble(held, request.workspace, tools, plan_mode=snapshot.plan_mode)
    bounded = model.max_output_tokens is not None
    return Prompt(
        model=model.model,
        system=system,
        messages=tuple(_messages(snapshot, held)),
        tools=tools,
        images=tuple(_images(held)),
        effort=effort if model.capabilities.reasoning else None,
        max_output_tokens=reply_reserve(model) if bounded else None,
        local=model.local,
    )


def _messages(snapshot: Snapshot, held: Sequence[Candidate]) -> Iterator[Message]:
    yield from _said(held, Origin.HISTORY)
    shown = "\n\n".join(_material(held))
    if shown:
        yield Message(uuid="", role=Role.USER, text=shown, run_id=snapshot.run_id)
    yield from _said(held, Origin.RUN)


def _said(held: Sequence[Candidate], origin: Origin) -> Iterator[Message]:
    for item in held:
        if item.origin is origin and isinstance(item.source, Exchange):
            yield from item.source.messages


def _material(held: Sequence[Candidate]) -> Iterator[str]:
    for item in held:
        if item.origin is Origin.FILE:
            names = ", ".join((item.label, *item.also))
            is_image = isinstance(item.source, ContextFile) and image_of(item.source) is not None
            yield f"Image: {names}" if is_image else f"File: {names}\n{_fenced(item.text)}"
    for item in held:
        if item.origin is Origin.DIFF:
            yield f"{item.label[0].upper()}{item.label[1:]}\n{_fenced(item.text)}"


def _fenced(text: str) -> str:
    # One mark more than any run inside, so that no file can end its own block.
    longest = max((len(run) for run in _FENCE.findall(text)), default=2) if "```" in text else 2
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def _images(held: Sequence[Candidate]) -> Iterator[Image]:
    for item in held:
        if item.origin is Origin.FILE and isinstance(item.source, ContextFile):
            image = image_of(item.source)
            if image is not None:
                yield image
