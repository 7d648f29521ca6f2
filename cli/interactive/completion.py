"""What may follow at the prompt: slash commands, and the path after an @."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from cli.interactive.words import COMMANDS
from cli.visible import visible_line

_PATH: Final = re.compile(r"(?<![^\s(\[{<\"'])@(\S*)\Z")
_COMMAND: Final = re.compile(r"/(\w*)\Z")
_ARGUMENT: Final = re.compile(r"/(\w+)[ ]+(\S*)\Z")
_MOST: Final = 1_000


class PromptCompleter(Completer):
    """*arguments*: known words after a command, by its name; whoever learns them puts them in."""

    def __init__(self, start: Path) -> None:
        self._start = start
        self.arguments: dict[str, tuple[str, ...]] = {}

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        if path := _PATH.search(before[-4096:]):
            return self._paths(path[1])
        if command := _COMMAND.fullmatch(before):
            return _commands(command[1])
        if argument := _ARGUMENT.fullmatch(before):
            return self._arguments(argument[1], argument[2])
        return ()

    def _arguments(self, name: str, begun: str) -> Iterator[Completion]:
        for word in self.arguments.get(name, ()):
            if word.startswith(begun):
                yield Completion(word, start_position=-len(begun), display=visible_line(word))

    def _paths(self, typed: str) -> Iterator[Completion]:
        """Yield the entries of one directory whose name begins as the last segment does."""
        folder, slash, begun = typed.rpartition("/")
        base = self._start / f"{folder}{slash}"
        for name in _names(base, begun):
            shown = visible_line(name)
            yield Completion(name, start_position=-len(begun), display=shown)


def _names(base: Path, begun: str) -> list[str]:
    try:
        with os.scandir(base) as entries:
            # A blank ends a reference, and no prompt can hold what is not Unicode.
            names = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in entries
                if entry.name.startswith(begun) and _can_be_named(entry.name)
            ]
    except (OSError, ValueError):
        return []  # there is no such folder, or it is closed to us: nothing to offer
    return sorted(names)[:_MOST]


def _can_be_named(name: str) -> bool:
    return not any(char.isspace() or "\ud800" <= char <= "\udfff" for char in name)


def _commands(begun: str) -> Iterator[Completion]:
    for command in COMMANDS:
        if command.name.startswith(begun):
            text = f"/{command.name}{' ' if command.argument else ''}"
            yield Completion(
                text,
                start_position=-len(begun) - 1,
                display=f"/{command.name} {command.argument}".rstrip(),
                display_meta=command.summary,
            )
